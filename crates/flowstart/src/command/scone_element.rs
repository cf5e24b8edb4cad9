//! `flowstart scone-element`.

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Args;
use flowstart_core::scone::element;
use flowstart_core::time::Duration;
use flowstart_core::units::Rate;
use flowstart_emu::relay::{Config, Told};
use serde_json::{Value, json};

use super::relay;
use crate::failure::Failure;
use crate::quic::socket_address;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart scone-element --rate 10mbit --listen 127.0.0.1:4434 \\
    --to 127.0.0.1:4433
  flowstart serve --self-signed --scone --startup blitzstart \\
    --hint-policy accept
  flowstart get --insecure --scone --hint rate=100mbit \\
    https://127.0.0.1:4434/generate/2MB

Clients send to the address of --listen as if it were the server. SCONE packets (draft-ietf-scone-protocol-08) that \
begin a datagram leave with the lower of their rate signal and that of --rate, in either direction. A signal is never \
raised, no packet is added, and everything else passes as it is. It works with any QUIC client and server; without \
SCONE packets nothing changes. ECN is not passed on. The signal is the highest at or below the rate, of 20 per factor \
of ten. To advise at a link of the lab, give `flowstart relay` a link with scone=RATE. SIGINT and SIGTERM end the \
element, which then says what it counted.")]
pub(crate) struct Arguments {
    /// The rate to advise, 100kbit to 199526mbit.
    #[arg(long, value_name = "RATE")]
    rate: Rate,
    /// How long a flow is left alone after one of its packets was lowered; the first three are in any case, 1ms to 67s.
    /// Default: every packet is lowered.
    #[arg(long, value_name = "TIME")]
    refresh: Option<Duration>,
    /// Where clients send, ADDRESS:PORT; port 0 is any free one.
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    listen: SocketAddr,
    /// The server, ADDRESS:PORT.
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    to: SocketAddr,
    /// The address and the counts as JSON.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn config(&self) -> Result<Config, Failure> {
        let advice = element::Config { refresh: self.refresh, ..element::Config::new(self.rate) };
        advice.validate().map_err(|error| {
            Failure::Input(format!("--{} `{}`: allowed is {}", error.field, error.value, error.allowed))
        })?;
        let (down_advice, up_advice) = (Some(advice), Some(advice));
        Ok(Config { down_advice, up_advice, ..Config::new(self.listen, self.to) })
    }
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let say = |told: &Told| if arguments.json { as_json(told).to_string() } else { in_words(told) };
    relay::run(&arguments.config()?, arguments.json, say)
}

fn in_words(told: &Told) -> String {
    let (down, up) = (told.down.departed, told.up.departed);
    let signals = relay::scone_in_words(&told.scone);
    format!("{signals}; {down} datagrams to clients, {up} back{}", relay::unsent_in_words(told.refused, told.unsent))
}

fn as_json(told: &Told) -> Value {
    json!({
        "scone": relay::scone_as_json(&told.scone),
        "down": told.down.departed,
        "up": told.up.departed,
        "refused": told.refused,
        "unsent": told.unsent,
    })
}
