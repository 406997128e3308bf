//! The certificates of a session. Without the feature `tls` there are none.

use napi_derive::napi;
use zookeeper_client::Connector;
#[cfg(feature = "tls")]
use zookeeper_client::{Error, TlsCa, TlsCerts, TlsIdentity, TlsOptions};

/// Certificates and a key, in PEM.
#[napi(object)]
pub struct Tls {
    /// Whose certificates a server may have.
    pub ca: String,
    /// The client's, if it has one.
    pub cert: Option<String>,
    /// The key of that.
    pub key: Option<String>,
}

/// A connector that uses them, and the addresses of the ensemble as it takes them with TLS.
#[cfg(feature = "tls")]
pub fn secure(
    connector: Connector,
    ensemble: &str,
    tls: &Tls,
) -> napi::Result<(Connector, String)> {
    check_hosts(ensemble)?;
    let options = TlsOptions::new().with_certs(read(tls)?);
    let servers: Vec<_> = ensemble.split(',').map(|server| format!("tcp+tls://{server}")).collect();
    Ok((connector.with_tls(options), servers.join(",")))
}

/// Never without what was asked for.
#[cfg(not(feature = "tls"))]
pub fn secure(_: Connector, _: &str, _: &Tls) -> napi::Result<(Connector, String)> {
    Err(napi::Error::from_reason("ZooKeeper: this build has no TLS"))
}

/// Reads them. The errors of their parser are left out, since they may quote a key.
#[cfg(feature = "tls")]
fn read(Tls { ca, cert, key }: &Tls) -> napi::Result<TlsCerts> {
    let refuse = |what: &str| napi::Error::from_reason(format!("ZooKeeper: cannot use {what}"));
    let ca = TlsCa::from_pem(ca)
        .map_err(|_: Error| refuse("ca: it has no certificate of a CA in PEM"))?;
    let certs = TlsCerts::builder().with_ca(ca);
    let certs = match (cert, key) {
        (Some(cert), Some(key)) => {
            certs.with_identity(TlsIdentity::from_pem(cert, key).map_err(|_: Error| {
                refuse("cert and key: they must be in PEM, the key without a passphrase")
            })?)
        }
        _ => certs,
    };
    certs.build().map_err(|_: Error| refuse("ca"))
}

/// Checks the names of `host:port,host:port/chroot`. With TLS, the client would panic.
#[cfg(feature = "tls")]
fn check_hosts(ensemble: &str) -> napi::Result<()> {
    let servers = ensemble.split('/').next().unwrap_or_default();
    for host in servers.split(',').filter_map(|server| Some(server.rsplit_once(':')?.0)) {
        if rustls_pki_types::ServerName::try_from(host).is_err() {
            let reason = format!("ZooKeeper: TLS handshake: {host} is no name of a host");
            return Err(napi::Error::from_reason(reason));
        }
    }
    Ok(())
}
