//! Certificates and trust of the QUIC commands.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, KeyLogFile, RootCertStore, ServerConfig, SignatureScheme};
use x509_parser::parse_x509_certificate;

use crate::failure::Failure;

/// How a server proves who it is.
#[derive(Debug, Args)]
pub(crate) struct CertificateOptions {
    /// The certificate and the chain above it, in PEM.
    #[arg(long, value_name = "FILE", requires = "key", required_unless_present = "self_signed")]
    cert: Option<PathBuf>,
    /// Its private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// A certificate for localhost made for this run, which clients accept with --insecure.
    #[arg(long, conflicts_with_all = ["cert", "key"])]
    self_signed: bool,
}

/// Which servers a client trusts.
#[derive(Debug, Args)]
pub(crate) struct TrustOptions {
    /// Accept any certificate.
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
    /// Trust the certificates in this PEM file instead of the system's.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn unusable(file: &Path, message: impl Into<String>) -> Failure {
    Failure::File { file: file.to_owned(), message: message.into(), text: None }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let read = |error: pem::Error| match error {
        pem::Error::Io(error) => unusable(file, format!("cannot be read: {error}")),
        pem::Error::NoItemsFound => unusable(file, "has no certificate; expected PEM with BEGIN CERTIFICATE"),
        other => unusable(file, format!("is no certificate in PEM: {other}")),
    };
    let found: Vec<_> = CertificateDer::pem_file_iter(file).map_err(read)?.collect::<Result<_, _>>().map_err(read)?;
    if found.is_empty() {
        return Err(read(pem::Error::NoItemsFound));
    }
    Ok(found)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| match error {
        pem::Error::Io(error) => unusable(file, format!("cannot be read: {error}")),
        pem::Error::NoItemsFound => unusable(file, "has no private key; expected PEM with BEGIN PRIVATE KEY"),
        other => unusable(file, format!("is no private key in PEM: {other}")),
    })
}

/// A certificate for this host by its own names.
fn self_signed() -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Failure> {
    let failed = |error: rcgen::Error| Failure::Other(format!("no certificate could be made: {error}"));
    let names = ["localhost", "127.0.0.1", "::1"].map(String::from);
    let made = rcgen::generate_simple_self_signed(names).map_err(failed)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Ok((vec![made.cert.der().clone()], key.into()))
}

/// What clients will object to although the server can use it.
fn warn_of_validity(file: &Path, certificate: &CertificateDer<'_>) {
    let Ok((_, parsed)) = parse_x509_certificate(certificate) else { return };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let validity = parsed.validity();
    if i128::from(validity.not_after.timestamp()) < i128::from(now) {
        tell!("warning: {}: the certificate expired on {}; clients will refuse it", file.display(), validity.not_after);
    } else if i128::from(validity.not_before.timestamp()) > i128::from(now) {
        let from = validity.not_before;
        tell!("warning: {}: the certificate is valid from {from} on; clients will refuse it", file.display());
    }
}

impl CertificateOptions {
    /// TLS of a server that speaks these protocols.
    pub(crate) fn config(&self, protocols: &[&[u8]]) -> Result<ServerConfig, Failure> {
        let (chain, key, place) = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                let chain = certificates(cert)?;
                if let Some(first) = chain.first() {
                    warn_of_validity(cert, first);
                }
                (chain, private_key(key)?, format!("--cert `{}`, --key `{}`", cert.display(), key.display()))
            }
            _ => {
                let (chain, key) = self_signed()?;
                (chain, key, "--self-signed".to_owned())
            }
        };
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| Failure::Input(format!("{place}: {error}")))?;
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config.key_log = Arc::new(KeyLogFile::new());
        Ok(config)
    }

    /// A certificate for this run.
    pub(crate) fn of_this_run() -> Self {
        Self { cert: None, key: None, self_signed: true }
    }
}

impl TrustOptions {
    /// TLS of a client that speaks these protocols.
    pub(crate) fn config(&self, protocols: &[&[u8]]) -> Result<ClientConfig, Failure> {
        let failed = |error: rustls::Error| Failure::Other(format!("TLS cannot be used: {error}"));
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(failed)?;
        let mut config = if self.insecure {
            let verifier = Arc::new(AnyCertificate(provider()));
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        } else {
            builder.with_root_certificates(self.roots()?).with_no_client_auth()
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config.key_log = Arc::new(KeyLogFile::new());
        Ok(config)
    }

    /// Accepts any certificate.
    pub(crate) fn anyone() -> Self {
        Self { insecure: true, ca: None }
    }

    fn roots(&self) -> Result<RootCertStore, Failure> {
        let mut roots = RootCertStore::empty();
        let Some(file) = &self.ca else {
            // One certificate of the system that cannot be read does not spoil the others.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            return Ok(roots);
        };
        for certificate in certificates(file)? {
            roots.add(certificate).map_err(|error| unusable(file, format!("is no certificate to trust: {error}")))?;
        }
        Ok(roots)
    }
}

/// Accepts whoever has the key that belongs to the certificate shown.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
