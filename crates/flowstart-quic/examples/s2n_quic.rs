//! A server on s2n-quic that is told a rate of 100 Mbit/s and launches it, and a client that downloads 1 MB from it.
//!
//! `cargo run -p flowstart-quic --features s2n-quic --example s2n_quic`
use std::{error::Error, time::Instant};

use flowstart_core::path::{AccessTechnology, Hint, PathKnowledge};
use flowstart_core::{avoidance::AvoidanceConfig, startup::StartupConfig, units::Rate};
use flowstart_quic::{Flow, s2n_quic::ControllerFactory};
use s2n_quic::{Client, Server, client::Connect};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let (certificate, key) = (certified.cert.der().to_vec(), certified.signing_key.serialize_der());
    // The lines that change: Blitzstart, then CUBIC, and what is known of the path to a client.
    let (blitzstart, cubic) =
        (StartupConfig::Blitzstart(Default::default()), AvoidanceConfig::Cubic(Default::default()));
    let hint = Hint { bandwidth: Rate::from_mbit(100), technology: AccessTechnology::Ethernet };
    let known = move |_| Flow::new(PathKnowledge { hint: Some(hint), ..Default::default() });
    let factory = ControllerFactory::new(blitzstart, cubic)?.for_peers(known);

    let server = Server::builder().with_tls((&certificate[..], &key[..]))?.with_io("127.0.0.1:0")?;
    let mut server = server.with_congestion_controller(factory)?.start()?;
    let address = server.local_addr()?;
    tokio::spawn(async move {
        let mut stream = server.accept().await.ok_or("closed")?.open_send_stream().await?;
        stream.send(vec![0; 1_000_000].into()).await?;
        stream.close().await?;
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    });
    let client = Client::builder().with_tls(&certificate[..])?.with_io("127.0.0.1:0")?.start()?;
    let (begin, mut size) = (Instant::now(), 0);
    let mut connection = client.connect(Connect::new(address).with_server_name("localhost")).await?;
    let mut stream = connection.accept_receive_stream().await?.ok_or("no stream")?;
    while let Some(chunk) = stream.receive().await? {
        size += chunk.len();
    }
    println!("{size} bytes over s2n-quic in {:.1?}, with the handshake", begin.elapsed());
    Ok(())
}
