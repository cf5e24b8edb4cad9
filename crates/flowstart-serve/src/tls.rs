//! Certificates and trust.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, KeyLog, KeyLogFile, RootCertStore, ServerConfig, SignatureScheme};
use x509_parser::parse_x509_certificate;

use crate::warnings::Warnings;

/// How a server proves who it is.
#[derive(Clone, Debug)]
pub enum Certificate {
    /// A certificate for localhost that is made on the spot. Clients accept it with [`Trust::Anyone`].
    SelfSigned,
    /// Files in PEM.
    Files {
        /// The certificate and the chain above it.
        chain: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
}

/// Which servers a client trusts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Those whose certificates the system trusts.
    System,
    /// Those with a certificate from the authorities in this PEM file.
    Authorities(PathBuf),
    /// Anyone who has the key of the presented certificate.
    Anyone,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file is malformed.
    #[error("{}: {problem}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The certificate and the key do not match, or cannot be used.
    #[error("the certificate cannot be used: {0}")]
    Certificate(rustls::Error),
    /// No certificate could be made.
    #[error("no certificate could be made: {0}")]
    SelfSigned(#[from] rcgen::Error),
    /// TLS itself fails.
    #[error("TLS cannot be used: {0}")]
    Failed(rustls::Error),
}

/// Largest file of certificates or keys; the authorities of a whole system take about 250 KB.
const LARGEST_FILE: u64 = 16 << 20;
/// The implementation of cryptography behind everything in this crate.
static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| Arc::new(rustls::crypto::ring::default_provider()));

/// The implementation of cryptography.
pub(crate) fn provider() -> &'static Arc<CryptoProvider> {
    &PROVIDER
}

fn unusable(file: &Path, problem: impl Into<String>) -> TlsError {
    TlsError::File { file: file.to_owned(), problem: problem.into() }
}

/// What a file of certificates or keys holds.
fn content(file: &Path) -> Result<Vec<u8>, TlsError> {
    flowstart_files::read(file, LARGEST_FILE).map_err(|error| unusable(file, error.to_string()))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = |error: pem::Error| match error {
        pem::Error::NoItemsFound => unusable(file, "has no certificate; expected PEM with BEGIN CERTIFICATE"),
        other => unusable(file, format!("is no certificate in PEM: {other}")),
    };
    let found: Vec<_> = CertificateDer::pem_slice_iter(&content(file)?).collect::<Result<_, _>>().map_err(read)?;
    if found.is_empty() {
        return Err(read(pem::Error::NoItemsFound));
    }
    Ok(found)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&content(file)?).map_err(|error| match error {
        pem::Error::NoItemsFound => unusable(file, "has no private key; expected PEM with BEGIN PRIVATE KEY"),
        other => unusable(file, format!("is no private key in PEM: {other}")),
    })
}

/// A certificate for this host by its own names.
fn self_signed() -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let names = ["localhost", "127.0.0.1", "::1"].map(String::from);
    let made = rcgen::generate_simple_self_signed(names)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Ok((vec![made.cert.der().clone()], key.into()))
}

/// Warns of certificates that the server can use but clients will refuse.
fn warn_of_validity(file: &Path, certificate: &CertificateDer<'_>, warnings: &Warnings) {
    let Ok((_, parsed)) = parse_x509_certificate(certificate) else { return };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (validity, file) = (parsed.validity(), file.display());
    if i128::from(validity.not_after.timestamp()) < i128::from(now) {
        let until = validity.not_after;
        warnings.tell(format_args!("{file}: the certificate expired on {until}; clients will refuse it"));
    } else if i128::from(validity.not_before.timestamp()) > i128::from(now) {
        let from = validity.not_before;
        warnings.tell(format_args!("{file}: the certificate is valid from {from} on; clients will refuse it"));
    }
}

impl Certificate {
    /// TLS of a server that speaks these protocols. SSLKEYLOGFILE is obeyed.
    ///
    /// # Errors
    ///
    /// [`TlsError`] with the file that cannot be used.
    pub fn config(&self, protocols: &[&[u8]], warnings: &Warnings) -> Result<ServerConfig, TlsError> {
        let (chain, key) = match self {
            Self::Files { chain: file, key } => {
                let chain = certificates(file)?;
                if let Some(first) = chain.first() {
                    warn_of_validity(file, first, warnings);
                }
                (chain, private_key(key)?)
            }
            Self::SelfSigned => self_signed()?,
        };
        let mut config = ServerConfig::builder_with_provider(provider().clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(TlsError::Certificate)?;
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config.key_log = key_log()?;
        Ok(config)
    }
}

/// Who writes the secrets of connections into the file that SSLKEYLOGFILE names.
fn key_log() -> Result<Arc<dyn KeyLog>, TlsError> {
    let file = std::env::var_os("SSLKEYLOGFILE").map(PathBuf::from);
    // A pipe would be waited for.
    match file.filter(|file| file.metadata().is_ok_and(|found| !found.is_file())) {
        Some(file) => Err(unusable(&file, "SSLKEYLOGFILE has to name a regular file")),
        None => Ok(Arc::new(KeyLogFile::new())),
    }
}

impl Trust {
    /// TLS of a client that speaks these protocols. SSLKEYLOGFILE is obeyed.
    ///
    /// # Errors
    ///
    /// [`TlsError`] with the file that cannot be used.
    pub fn config(&self, protocols: &[&[u8]]) -> Result<ClientConfig, TlsError> {
        let builder = ClientConfig::builder_with_provider(provider().clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(TlsError::Failed)?;
        let mut config = match self {
            Self::Anyone => {
                let verifier = Arc::new(AnyCertificate(provider().clone()));
                builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
            }
            Self::System => builder.with_root_certificates(of_system()).with_no_client_auth(),
            Self::Authorities(file) => builder.with_root_certificates(authorities(file)?).with_no_client_auth(),
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config.key_log = key_log()?;
        Ok(config)
    }
}

/// The system's trusted certificates. An unreadable certificate does not affect the others.
fn of_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn authorities(file: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| unusable(file, format!("is no certificate to trust: {error}")))?;
    }
    Ok(roots)
}

/// Accepts anyone who has the key of the presented certificate.
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
