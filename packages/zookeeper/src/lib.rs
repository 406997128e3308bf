//! One ZooKeeper session, for `snowdrift/lease/zookeeper`. What its nodes mean is said there; here are only the calls that it
//! needs, each as a promise.

mod certificates;
#[cfg(unix)]
mod memory;
mod reasons;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use napi_derive::napi;
use tracing::instrument::WithSubscriber;
use zookeeper_client::{
    Acls, Client, Connector, CreateMode, Error, MultiWriteError, MultiWriteResult, SessionState,
};

use crate::certificates::{Certificates, Tls};
use crate::reasons::Reasons;

/// The longest that one server of the ensemble may be silent before another one is tried.
const LONGEST_SILENCE: Duration = Duration::from_secs(2);

/// Whether this build has TLS.
#[napi]
pub const HAS_TLS: bool = cfg!(feature = "tls");

/// A session with a ZooKeeper ensemble. Ephemeral nodes live as long as it does.
#[napi]
pub struct Session {
    /// None once it is closed.
    client: Mutex<Option<Client>>,
    /// Who may use the nodes that it makes.
    acls: Acls<'static>,
    /// With TLS.
    certificates: Option<Certificates>,
}

impl Session {
    fn client(&self) -> napi::Result<Client> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        client.ok_or_else(|| failed(Error::ClientClosed))
    }
}

/// A change of one node. All of a list are made, or none.
#[napi(object)]
pub struct Change {
    /// What to do.
    #[napi(ts_type = "'create' | 'createEphemeral' | 'set' | 'delete'")]
    pub kind: String,
    /// Which node.
    pub path: String,
    /// What it is to hold.
    pub data: Option<String>,
}

/// What became of a list of changes.
#[napi(object)]
pub struct Outcome {
    /// False if a node was not as it should be: then none was made.
    pub is_done: bool,
    /// When a node was set, by the ensemble's clock, Unix ms.
    pub time: Option<f64>,
}

/// Connects to `host:port,host:port/chroot`. The session expires when the ensemble has not heard of it
/// for that long. With a login, which is `user:password`, the nodes that it makes are that user's only.
#[napi]
pub async fn connect(
    ensemble: String,
    session_timeout_ms: u32,
    login: Option<String>,
    tls: Option<Tls>,
) -> napi::Result<Session> {
    let session_timeout = Duration::from_millis(session_timeout_ms.into());
    let mut connector = Client::connector()
        .with_session_timeout(session_timeout)
        // So that there is time for another one before the session expires.
        .with_connection_timeout((session_timeout / 4).min(LONGEST_SILENCE))
        .with_fail_eagerly();
    let mut acls = Acls::anyone_all();
    if let Some(login) = login {
        connector = connector.with_auth("digest", login.as_bytes());
        acls = Acls::creator_all();
    }
    let reasons = Reasons::default();
    let connecting = open(connector, &ensemble, tls.as_ref());
    let opened = connecting.with_subscriber(reasons.clone()).await?;
    let (client, certificates) = opened.map_err(|error| match reasons.text() {
        reasons if reasons.is_empty() || !is_of_connecting(&error) => failed(error),
        reasons => napi::Error::from_reason(format!("ZooKeeper: {reasons}")),
    })?;
    // A follower may lag: reads of this session see all that earlier sessions wrote.
    client.sync("/").await.map_err(failed)?;
    Ok(Session { client: Mutex::new(Some(client)), acls, certificates })
}

/// Whether an error says only that there is no connection.
fn is_of_connecting(error: &Error) -> bool {
    matches!(error, Error::NoHosts | Error::Timeout | Error::ConnectionLoss)
}

/// A connected client, and what it uses for its next connection.
type Opened = Result<(Client, Option<Certificates>), Error>;

#[cfg(feature = "tls")]
async fn open(connector: Connector, ensemble: &str, tls: Option<&Tls>) -> napi::Result<Opened> {
    use zookeeper_client::TlsOptions;

    let Some(tls) = tls else { return open_plainly(connector, ensemble).await };
    certificates::check_hosts(ensemble)?;
    let certificates = Certificates::new(certificates::read(tls)?);
    let options = TlsOptions::new().with_certs(certificates.clone());
    let client = connector.with_tls(options).secure_connect(ensemble).await;
    Ok(client.map(|client| (client, Some(certificates))))
}

#[cfg(not(feature = "tls"))]
async fn open(connector: Connector, ensemble: &str, tls: Option<&Tls>) -> napi::Result<Opened> {
    match tls {
        // Never without what was asked for.
        Some(_) => Err(napi::Error::from_reason("ZooKeeper: this build has no TLS")),
        None => open_plainly(connector, ensemble).await,
    }
}

async fn open_plainly(connector: Connector, ensemble: &str) -> napi::Result<Opened> {
    Ok(connector.connect(ensemble).await.map(|client| (client, None)))
}

#[napi]
impl Session {
    /// Whether the session has ended for good, so that another is needed.
    #[napi]
    pub fn has_ended(&self) -> bool {
        let state = self.client().map(|client| client.state());
        matches!(
            state,
            Err(_) | Ok(SessionState::Expired | SessionState::Closed | SessionState::AuthFailed)
        )
    }

    /// Uses these certificates for its next connection.
    #[napi]
    pub fn renew_certificates(&self, tls: Tls) -> napi::Result<()> {
        certificates::renew(self.certificates.as_ref(), &tls)
    }

    /// Ends the session, and with it its ephemeral nodes.
    #[napi]
    pub fn close(&self) {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Makes a node and those above it, unless they are there.
    #[napi]
    pub async fn make(&self, path: String) -> napi::Result<()> {
        let client = self.client()?;
        // To create it might be denied although it is there.
        if client.check_stat(&path).await.map_err(failed)?.is_some() {
            return Ok(());
        }
        let options = CreateMode::Persistent.with_acls(self.acls);
        client.mkdir(&path, &options).await.map_err(failed)
    }

    /// What a node holds, as UTF-8; null if there is none.
    #[napi]
    pub async fn get(&self, path: String) -> napi::Result<Option<String>> {
        match self.client()?.get_data(&path).await {
            Ok((data, _)) => Ok(Some(String::from_utf8_lossy(&data).into_owned())),
            Err(Error::NoNode) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// The names of a node's children; none if there is no such node.
    #[napi]
    pub async fn children(&self, path: String) -> napi::Result<Vec<String>> {
        match self.client()?.list_children(&path).await {
            Err(Error::NoNode) => Ok(Vec::new()),
            answer => answer.map_err(failed),
        }
    }

    /// Makes all changes, in one step; or none of them, if a node is not as it should be.
    #[napi]
    pub async fn change(&self, changes: Vec<Change>) -> napi::Result<Outcome> {
        let client = self.client()?;
        let mut writer = client.new_multi_writer();
        for Change { kind, path, data } in &changes {
            let data = data.as_deref().unwrap_or_default().as_bytes();
            let create = |mode: CreateMode| mode.with_acls(self.acls);
            match kind.as_str() {
                "create" => writer.add_create(path, data, &create(CreateMode::Persistent)),
                "createEphemeral" => writer.add_create(path, data, &create(CreateMode::Ephemeral)),
                "set" => writer.add_set_data(path, data, None),
                _ => writer.add_delete(path, None),
            }
            .map_err(failed)?;
        }
        match writer.commit().await {
            Ok(results) => {
                let time = results.iter().find_map(|result| match result {
                    MultiWriteResult::SetData { stat } => Some(stat.mtime as f64),
                    _ => None,
                });
                Ok(Outcome { is_done: true, time })
            }
            Err(MultiWriteError::OperationFailed {
                source: Error::NodeExists | Error::BadVersion | Error::NoNode,
                ..
            }) => Ok(Outcome { is_done: false, time: None }),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Writes to a node; returns when that was by the ensemble's clock, Unix ms.
    #[napi]
    pub async fn touch(&self, path: String) -> napi::Result<f64> {
        let stat = self.client()?.set_data(&path, b"", None).await.map_err(failed)?;
        Ok(stat.mtime as f64)
    }
}

fn failed(error: Error) -> napi::Error {
    napi::Error::from_reason(format!("ZooKeeper: {error}"))
}
