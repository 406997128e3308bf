//! The certificates of a session. Without the feature `tls` there are none.

use napi_derive::napi;
#[cfg(feature = "tls")]
use zookeeper_client::{Error, TlsCa, TlsCerts, TlsDynamicCerts, TlsIdentity};

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

/// What a session uses for its next connection.
#[cfg(feature = "tls")]
pub type Certificates = TlsDynamicCerts;

/// There are none.
#[cfg(not(feature = "tls"))]
pub enum Certificates {}

/// Reads them. The errors of their parser are left out, since they may quote a key.
#[cfg(feature = "tls")]
pub fn read(Tls { ca, cert, key }: &Tls) -> napi::Result<TlsCerts> {
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
pub fn check_hosts(ensemble: &str) -> napi::Result<()> {
    let servers = ensemble.split('/').next().unwrap_or_default();
    for host in servers.split(',').filter_map(|server| Some(server.rsplit_once(':')?.0)) {
        if rustls_pki_types::ServerName::try_from(host).is_err() {
            let reason = format!("ZooKeeper: TLS handshake: {host} is no name of a host");
            return Err(napi::Error::from_reason(reason));
        }
    }
    Ok(())
}

/// Replaces the certificates of a session with others.
#[cfg(feature = "tls")]
pub fn renew(certificates: Option<&Certificates>, tls: &Tls) -> napi::Result<()> {
    if let Some(certificates) = certificates {
        certificates.update(read(tls)?);
    }
    Ok(())
}

#[cfg(not(feature = "tls"))]
pub fn renew(_: Option<&Certificates>, _: &Tls) -> napi::Result<()> {
    Ok(())
}
