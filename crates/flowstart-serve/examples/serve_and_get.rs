//! Starts a server whose connections begin with Jump-Start, gets 2 MB from it, and says how long that took.

use flowstart_core::avoidance::{AvoidanceConfig, cubic};
use flowstart_core::startup::{StartupConfig, jump_start};
use flowstart_serve::client::{self, Client, Url};
use flowstart_serve::server::{self, Schemes, Server};
use flowstart_serve::tls::{Certificate, Trust};
use flowstart_serve::{H3, Scheme, Warnings};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let avoidance = AvoidanceConfig::Cubic(cubic::Config::default());
    let startup = StartupConfig::JumpStart(jump_start::Config::default());
    let schemes = Schemes::new(Scheme::new("jump-start", startup, avoidance.clone())?, Scheme::plain(&avoidance)?);
    let tls = Certificate::SelfSigned.config(&[H3], &Warnings::default())?;
    let server = Server::start(server::Config::new(tls, schemes)).await?;
    let address = server.address();
    tokio::spawn(async move { server.run(std::future::pending()).await });

    let url = Url::new(format!("https://{address}/generate/2MB").parse()?)?;
    let client = Client::new(client::Config::new(Trust::Anyone.config(&[H3])?))?;
    let mut content = Vec::new();
    let timings = client.get(&url, &[address], &mut content, &|_| {}).await?;
    client.close().await;
    println!("{}: {} bytes in {:.1} ms", timings.status, content.len(), timings.fct.as_secs_f64() * 1e3);
    Ok(())
}
