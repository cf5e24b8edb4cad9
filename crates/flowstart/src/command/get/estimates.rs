//! What `flowstart get` knows of this host's access link, and how it says so.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use flowstart_core::path::{AccessTechnology, Hint};
use flowstart_core::sources::{Finding, Sources, Statement, Verdict};
use flowstart_core::spec::{InputError, Spec};
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_sensing::estimator::lte::Carrier;
use flowstart_sensing::path_store::UnixTime;
use flowstart_serve::client::estimate::{Estimator, Told, estimates, network};
use flowstart_serve::client::rates::Rates;
use serde_json::json;

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// Show what each source says of this host's access: its rate, burst allowance, age and accuracy. The best is told
    /// to the server, unless --hint says another.
    #[arg(long, conflicts_with = "connections")]
    pub(super) estimate: bool,
    /// Keep in this file the highest rate that a transfer had in each access network, for 7 days, and let it count as
    /// an estimate. It counts where neither gateway, Wi-Fi nor modem tells a rate.
    #[arg(long, value_name = "FILE", conflicts_with = "connections")]
    rates: Option<PathBuf>,
    /// The name of this access network for --rates. Without it, it is the address of the gateway.
    #[arg(long, value_name = "NAME", requires = "rates")]
    network: Option<String>,
    /// A carrier of this host's LTE modem, as its status page shows it: bandwidth=20MHz,mcs=20,layers=2; once for each
    /// that is aggregated.
    #[arg(long, value_name = "CARRIER", value_parser = carrier)]
    lte: Vec<Carrier>,
}

impl Options {
    /// Reads the rates.
    pub(super) fn read(&self) -> Result<Past, Failure> {
        let rates = self.rates.as_deref().map(Rates::read).transpose()?;
        Ok(Past { rates, network: self.network.clone(), carriers: self.lte.clone(), is_changed: false })
    }
}

/// Reads `--lte`.
fn carrier(text: &str) -> Result<Carrier, String> {
    let read = || -> Result<Carrier, InputError> {
        let mut spec = Spec::parse("lte", text)?;
        let (bandwidth, mcs, layers) = (spec.read("bandwidth")?, spec.read("mcs")?, spec.read("layers")?);
        spec.finish()?;
        let missing = |key| spec.refused(format_args!("{key} is missing; use bandwidth=20MHz,mcs=20,layers=2"));
        let bandwidth = bandwidth.ok_or_else(|| missing("the bandwidth"))?;
        let mcs = mcs.ok_or_else(|| missing("the modulation"))?;
        Ok(Carrier { bandwidth, mcs, layers: layers.ok_or_else(|| missing("the number of layers"))? })
    };
    let carrier = read().map_err(|error| error.problem)?;
    carrier.phy_rate().map_err(|error| error.to_string())?;
    Ok(carrier)
}

/// What earlier transfers and the user say.
#[derive(Debug)]
pub(super) struct Past {
    rates: Option<Rates>,
    network: Option<String>,
    carriers: Vec<Carrier>,
    is_changed: bool,
}

impl Past {
    /// The name of the network towards `server`, or why there is none.
    fn network(&self, server: IpAddr) -> Result<String, String> {
        self.network.clone().map_or_else(|| network(server), Ok)
    }

    /// Asks all estimators.
    pub(super) async fn ask(&mut self, server: IpAddr) -> Result<Sources, Failure> {
        let network = self.network(server).ok();
        let (rates, carriers) = (self.rates.take(), std::mem::take(&mut self.carriers));
        // Questions block, and the time limit of the command holds for them, too.
        let asked = tokio::task::spawn_blocking(move || {
            let told = Told { carriers: &carriers, past: rates.as_ref().zip(network.as_deref()) };
            let found = estimates(server, &told);
            (found, rates)
        });
        let (found, rates) = asked.await.map_err(|error| Failure::Other(format!("--hint auto: {error}")))?;
        self.rates = rates;
        Ok(found)
    }

    /// Transfers from `server` had these rates.
    pub(super) fn observe(&mut self, rates: impl Iterator<Item = Rate>, server: IpAddr) {
        let network = self.network(server);
        let Some(kept) = &mut self.rates else { return };
        match network {
            Ok(network) => {
                for rate in rates {
                    kept.observe(&network, rate, UnixTime::now());
                    self.is_changed = true;
                }
            }
            Err(reason) => note!("--rates: {reason}; --network NAME names the network"),
        }
    }

    /// Keeps what was observed.
    pub(super) fn save(&self) -> Result<(), Failure> {
        match &self.rates {
            Some(rates) if self.is_changed => Ok(rates.save()?),
            _ => Ok(()),
        }
    }
}

/// What a source states.
fn stated(finding: &Finding) -> Option<Hint> {
    match finding.stated {
        Some(Statement::Hint(hint)) => Some(hint),
        _ => None,
    }
}

/// Says what is hinted, and with `each` what every source states.
pub(super) fn tell(estimates: &Sources, hint: Option<Rate>, each: bool) {
    if each {
        for finding in estimates.findings() {
            tell!("{}", in_words(finding));
        }
    }
    note!("{}", hint.map_or("no hint was found".into(), |rate| format!("the hint is {:.1} Mbit/s", rate.as_mbit())));
}

/// A source's statement: its rate, technology, burst allowance and age, its accuracy, and what became of it.
fn in_words(finding: &Finding) -> String {
    let source = finding.source;
    let Some(hint) = stated(finding) else {
        return format!("{source}: {} ({})", finding.verdict.name(), finding.reason);
    };
    let Hint { bandwidth: rate, technology } = hint;
    let gathered = hint.burst_allowance();
    let access = match technology {
        AccessTechnology::Unknown => String::new(),
        _ if gathered == Bytes::ZERO => format!(", {technology}"),
        _ => format!(", {technology}, which gathers {gathered} in {}", technology.gathering_interval()),
    };
    let age = match finding.age {
        Some(age) if age > Duration::ZERO => format!(", {age} old"),
        _ => String::new(),
    };
    let believed = if finding.verdict == Verdict::Believed { "; this is hinted" } else { "" };
    let accuracy = Estimator::of(finding).map_or("", Estimator::accuracy);
    format!("{source}: {:.1} Mbit/s{access}{age} ({accuracy}){believed}", rate.as_mbit())
}

/// The same for programs.
pub(super) fn as_json(estimates: &Sources) -> serde_json::Value {
    let each = estimates.findings().iter().map(|finding| {
        let stated = stated(finding);
        json!({
            "source": finding.source,
            "rate_bps": stated.map(|hint| hint.bandwidth.bits_per_sec()),
            "technology": stated.map(|hint| hint.technology.to_string()),
            "burst_bytes": stated.map(|hint| hint.burst_allowance().get()),
            "age_s": finding.age.map(Duration::as_secs),
            "accuracy": stated.and(Estimator::of(finding)).map(Estimator::accuracy),
            "verdict": finding.verdict.name(),
            "reason": finding.reason,
        })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carrier_is_read_or_what_is_wrong_is_told() {
        assert_eq!(carrier("bandwidth=20MHz,mcs=28,layers=2").unwrap().phy_rate().unwrap().bits_per_sec(), 150_752_000);
        for (wrong, told) in [
            ("bandwidth=40MHz,mcs=28,layers=2", "use 1.4MHz, 3MHz"),
            ("bandwidth=20MHz,mcs=29,layers=2", "use 0 to 28"),
            ("bandwidth=20MHz,mcs=28,layers=3", "use 1, 2 or 4"),
            ("bandwidth=20MHz,layers=2", "the modulation is missing"),
            ("mcs=1", "the bandwidth is missing"),
            ("", "nothing is written"),
        ] {
            let problem = carrier(wrong).unwrap_err();
            assert!(problem.contains(told), "{wrong}: {problem}");
        }
    }
}
