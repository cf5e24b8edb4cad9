//! Options that several QUIC commands have.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use flowstart_core::avoidance::{AvoidanceConfig, cubic};
use flowstart_core::startup::{StartupConfig, slow_start};
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use flowstart_lab::spec;
use flowstart_serve::tls::{Certificate, TlsError, Trust};
use flowstart_serve::{RECEIVE_WINDOW, Scheme, Warnings, printable};

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

impl CertificateOptions {
    /// TLS of a server that speaks this protocol.
    pub(crate) fn config(&self, protocol: &[u8]) -> Result<rustls::ServerConfig, Failure> {
        let (certificate, place) = match (&self.cert, &self.key) {
            (Some(chain), Some(key)) => (
                Certificate::Files { chain: chain.clone(), key: key.clone() },
                format!("--cert `{}`, --key `{}`", chain.display(), key.display()),
            ),
            _ => (Certificate::SelfSigned, "--self-signed".to_owned()),
        };
        certificate.config(&[protocol], &warnings()).map_err(|error| match error {
            TlsError::Certificate(error) => Failure::Input(format!("{place}: {error}")),
            other => other.into(),
        })
    }
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

impl TrustOptions {
    /// TLS of a client that speaks this protocol.
    pub(crate) fn config(&self, protocol: &[u8]) -> Result<rustls::ClientConfig, Failure> {
        let trust = match &self.ca {
            _ if self.insecure => Trust::Anyone,
            Some(file) => Trust::Authorities(file.clone()),
            None => Trust::System,
        };
        Ok(trust.config(&[protocol])?)
    }
}

/// The receive window.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WindowOptions {
    /// How much unread data the peer may send. The default is enough for 100 Mbit/s times 100 ms; faster or longer
    /// paths need more. But with a larger window, a startup that loses every second packet can make noq, the QUIC
    /// stack, end the connection, because too many pieces wait behind gaps.
    #[arg(long, value_name = "BYTES", default_value_t = RECEIVE_WINDOW)]
    receive_window: Bytes,
}

impl WindowOptions {
    /// The window.
    pub(crate) fn receive(self) -> Result<Bytes, Failure> {
        if (10_000..=4_000_000_000).contains(&self.receive_window.get()) {
            return Ok(self.receive_window);
        }
        Err(Failure::Input(format!("--receive-window `{}`: use 10KB to 4GB", self.receive_window)))
    }
}

/// The startup scheme and congestion avoidance of connections.
#[derive(Debug, Args)]
pub(crate) struct SchemeOptions {
    /// The startup scheme, such as blitzstart:estimate=1.5; `flowstart list schemes`.
    #[arg(long, value_name = "SPEC", default_value = "slow-start")]
    startup: String,
    /// The congestion avoidance after it; `flowstart list avoidance`.
    #[arg(long, value_name = "SPEC", default_value = "cubic")]
    avoidance: String,
}

impl SchemeOptions {
    /// The scheme, whose logs name this congestion avoidance if it has it.
    pub(crate) fn logged(&self, scheme: Scheme, avoidance: &AvoidanceConfig) -> Scheme {
        scheme.with_avoidance_text(&self.avoidance, avoidance)
    }

    /// The congestion avoidance.
    pub(crate) fn avoidance(&self) -> Result<AvoidanceConfig, Failure> {
        avoidance(&self.avoidance)
    }

    /// The scheme from both options.
    pub(crate) fn scheme(&self) -> Result<Scheme, Failure> {
        scheme("startup", &self.startup, &self.avoidance()?)
    }

    /// As [`SchemeOptions::scheme`], where nobody asks routers.
    pub(crate) fn scheme_without_approvals(&self) -> Result<Scheme, Failure> {
        let scheme = self.scheme()?.without_approvals();
        scheme.map_err(|error| Failure::Input(format!("--startup `{}`: {error}", self.startup)))
    }
}

/// The congestion avoidance that `--avoidance` names.
pub(crate) fn avoidance(text: &str) -> Result<AvoidanceConfig, Failure> {
    Ok(spec::avoidance("avoidance", text, &AvoidanceConfig::Cubic(cubic::Config::default()))?.value)
}

/// The startup scheme that `text` names, in the option `field`.
pub(crate) fn startup(field: &str, text: &str) -> Result<StartupConfig, Failure> {
    Ok(spec::scheme(field, text, &StartupConfig::SlowStart(slow_start::Config::default()))?.value)
}

/// The scheme that `text` names, in the option `field`.
pub(crate) fn scheme(field: &str, text: &str, avoidance: &AvoidanceConfig) -> Result<Scheme, Failure> {
    Scheme::new(text, startup(field, text)?, avoidance.clone()).map_err(|error| {
        let allowed = Scheme::all(avoidance);
        Failure::Input(match allowed.is_empty() {
            true => format!("--avoidance `{}`: {error}; `flowstart list schemes` shows others", avoidance.name()),
            false => format!("--{field} `{text}`: {error}; allowed are {}", allowed.join(", ")),
        })
    })
}

/// The handler that shows warnings of the library.
pub(crate) fn warnings() -> Warnings {
    Warnings::new(|warning| tell!("warning: {}", printable(warning)))
}

/// An address and a port.
pub(crate) fn socket_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "use an address and a port such as 127.0.0.1:4433 or [::]:4433")
}

/// A time of the operating system's clock.
pub(crate) fn std_time(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_nanos())
}

/// Lets this process open as many files as it may; the usual limit of 1024 is a convention from the time of select(2).
#[cfg(unix)]
pub(crate) fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // A system that refuses keeps its limit.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

#[cfg(not(unix))]
pub(crate) fn raise_file_limit() {}
