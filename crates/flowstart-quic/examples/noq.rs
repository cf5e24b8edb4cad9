//! A server on noq whose connections start with Blitzstart, and a client that downloads 1 MB from it.
//!
//! `cargo run -p flowstart-quic --example noq`
use std::{error::Error, sync::Arc};

use flowstart_core::{avoidance::AvoidanceConfig, startup::StartupConfig};
use flowstart_quic::ControllerFactory;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let certificate = certified.cert.der().clone();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let mut config = noq::ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    let transport = Arc::get_mut(&mut config.transport).ok_or("the configuration is shared")?;

    // The line that changes: Blitzstart, then CUBIC.
    let (startup, avoidance) =
        (StartupConfig::Blitzstart(Default::default()), AvoidanceConfig::Cubic(Default::default()));
    transport.congestion_controller_factory(Arc::new(ControllerFactory::new(startup, avoidance)?));

    let server = noq::Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let (address, mut roots) = (server.local_addr()?, rustls::RootCertStore::empty());
    tokio::spawn(async move {
        let connection = server.accept().await.ok_or("closed")?.await?;
        let mut stream = connection.open_uni().await?;
        stream.write_all(&vec![0; 1_000_000]).await?;
        stream.finish()?;
        stream.stopped().await?;
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    });
    roots.add(certificate)?;
    let client = noq::Endpoint::client("127.0.0.1:0".parse()?)?;
    client.set_default_client_config(noq::ClientConfig::with_root_certificates(Arc::new(roots))?);
    let connection = client.connect(address, "localhost")?.await?;
    let received = connection.accept_uni().await?.read_to_end(1_000_000).await?;
    println!("{} bytes over noq", received.len());
    Ok(())
}
