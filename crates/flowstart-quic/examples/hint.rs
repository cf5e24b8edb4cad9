//! A client tells the rate of its access link, and a server on noq launches with it as far as its policy goes. What the
//! server heard, and what became of it, is what its log should say.
//!
//! `cargo run -p flowstart-quic --example hint`
use std::{error::Error, sync::Arc};

use flowstart_core::path::{AccessTechnology, PathKnowledge};
use flowstart_core::sources::name;
use flowstart_core::{avoidance::AvoidanceConfig, startup::StartupConfig, time::Duration, units::Rate};
use flowstart_quic::hint::{BandwidthHint, HintPolicy, policy::Evidence};
use flowstart_quic::{ControllerFactory, Flow, session};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let certificate = certified.cert.der().clone();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let config = noq::ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    let blitzstart = StartupConfig::Blitzstart(Default::default());
    let factory = ControllerFactory::new(blitzstart, AvoidanceConfig::Cubic(Default::default()))?;
    let policy: HintPolicy = "cap:rate=50mbit".parse()?;

    let server = noq::Endpoint::server(config.clone(), "127.0.0.1:0".parse()?)?;
    let (address, mut roots) = (server.local_addr()?, rustls::RootCertStore::empty());
    tokio::spawn(async move {
        let incoming = server.accept().await.ok_or("closed")?;
        let flow = Flow::new(PathKnowledge::default());
        let own = session::accept_config(&config, &factory, &flow, move |flow, client| {
            client.errors().for_each(|error| eprintln!("{error}"));
            let Ok(Some(hint)) = client.hint else { return };
            let verdict = policy.decide(&hint, &Evidence::default());
            flow.doubt_handshake();
            flow.hear_hint(name::HINT, &hint, &verdict);
        });
        let connection = incoming.accept_with(own)?.await?;
        let mut stream = connection.open_uni().await?;
        stream.write_all(&vec![0; 1_000_000]).await?;
        stream.finish()?;
        stream.stopped().await?;
        for heard in flow.findings() {
            println!("{} is {}, {}", heard.source, heard.verdict.name(), heard.reason);
        }
        println!("launched with {:?}", flow.status().launch.map(|(_, cwnd, _)| cwnd));
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    });
    roots.add(certificate)?;
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let hint = BandwidthHint {
        rate: Rate::from_mbit(100),
        technology: AccessTechnology::Dsl,
        age: Duration::from_millis(60_000),
    };
    let crypto = session::ClientConfig::new(tls)?.with_hint(Some(&hint))?;
    let client = noq::Endpoint::client("127.0.0.1:0".parse()?)?;
    let connection = client.connect_with(noq::ClientConfig::new(Arc::new(crypto)), address, "localhost")?.await?;
    println!("{} bytes", connection.accept_uni().await?.read_to_end(1_000_000).await?.len());
    Ok(())
}
