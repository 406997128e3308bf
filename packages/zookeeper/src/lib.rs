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

use crate::certificates::Tls;
use crate::reasons::Reasons;

/// The longest that one server of the ensemble may be silent before another one is tried.
const LONGEST_SILENCE: Duration = Duration::from_secs(2);

/// How users log in.
const SCHEME: &str = "digest";

/// Whether this build has TLS.
#[napi]
pub const HAS_TLS: bool = cfg!(feature = "tls");

/// A session with a ZooKeeper ensemble. Ephemeral nodes live as long as it does. It ends with its connection.
#[napi]
pub struct Session {
    /// None once it is closed.
    client: Mutex<Option<Client>>,
    /// Who may use the nodes that it makes.
    acls: Acls<'static>,
}

impl Session {
    /// Only while it is connected: a call would wait until the client has reconnected. The client then sends the login along with
    /// its request to connect, which may fail until the session expires: see `enter`.
    fn client(&self) -> napi::Result<Client> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let client = client.ok_or_else(|| failed(Error::ClientClosed))?;
        match client.state() {
            SessionState::SyncConnected => Ok(client),
            _ => Err(failed(Error::ConnectionLoss)),
        }
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
    let connector = Client::connector()
        .with_session_timeout(session_timeout)
        // So that there is time for another one before the session expires.
        .with_connection_timeout((session_timeout / 4).min(LONGEST_SILENCE));
    let (connector, ensemble) = match &tls {
        Some(tls) => certificates::secure(connector, &ensemble, tls)?,
        None => (connector, ensemble),
    };
    let reasons = Reasons::default();
    let entering = enter(connector, &ensemble, login.as_deref());
    let entered = entering.with_subscriber(reasons.clone()).await;
    let client = entered.map_err(|error| match reasons.text() {
        reasons if reasons.is_empty() || !is_of_connecting(&error) => failed(error),
        reasons => napi::Error::from_reason(format!("ZooKeeper: {reasons}")),
    })?;
    // A follower may lag: reads of this session see all that earlier sessions wrote.
    client.sync("/").await.map_err(failed)?;
    let acls = if login.is_some() { Acls::creator_all() } else { Acls::anyone_all() };
    Ok(Session { client: Mutex::new(Some(client)), acls })
}

/// Opens a session, and logs in once it is there. A server with Netty may answer a login that comes with the request to connect
/// before that request, and the client takes the first answer for that of the request.
async fn enter(connector: Connector, ensemble: &str, login: Option<&str>) -> Result<Client, Error> {
    let opened = connector.clone().with_fail_eagerly().connect(ensemble).await;
    let Some(login) = login.map(str::as_bytes) else { return opened };
    match opened {
        // With `enforce.auth.enabled`, a server accepts nothing before a login. The client tries until the answers are in order.
        Err(Error::AuthFailed) => connector.with_auth(SCHEME, login).connect(ensemble).await,
        opened => {
            let client = opened?;
            client.auth(SCHEME, login).await?;
            Ok(client)
        }
    }
}

/// Whether an error says only that there is no connection.
fn is_of_connecting(error: &Error) -> bool {
    matches!(error, Error::NoHosts | Error::Timeout | Error::ConnectionLoss)
}

#[napi]
impl Session {
    /// Whether the session is of no more use, so that it is to be closed, and another is needed.
    #[napi]
    pub fn has_ended(&self) -> bool {
        self.client().is_err()
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
