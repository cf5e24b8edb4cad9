//! The measurements.

use std::process::ExitCode;

use flowstart_bpf::kernel::quick_start::{QuickStartError, Router};
use flowstart_core::quick_start::nonce::Nonce;
use flowstart_core::quick_start::rate::RateCode;
use flowstart_core::quick_start::router::Config;
use flowstart_core::quick_start::wire::{IpOption, IpVersion};
use flowstart_core::time::Duration;
use flowstart_core::units::Rate;
use flowstart_emu::cost::{of_forwarding, of_rule};
use serde_json::json;

use super::Arguments;
use crate::failure::Failure;
use crate::output::{print, progress};

/// Bytes behind the header of IP: an empty datagram of UDP in a frame of 64 bytes with its checksum.
const PAYLOAD: usize = 26;
/// Bytes of the headers of Ethernet and UDP.
const ETHERNET: usize = 14;
const UDP: usize = 8;
/// After so long an approval no longer counts: two intervals of 150 ms.
const FORGOTTEN: Duration = Duration::from_millis(300);
/// A router reduces a request once, because it approves all that is left. So each one comes when the approval before
/// is forgotten.
const IDLE: Rate = Rate::from_mbit(20);
/// A link on which the lowest rate can be approved again and again.
const WIDE: Rate = Rate::from_mbit(1_000_000);
/// A link of which nothing can be approved: less than the lowest rate.
const NARROW: Rate = Rate::from_bits_per_sec(80_000);

/// What a packet takes: in the kernel, in memory by the rule of this program, and in a whole router.
const COLUMNS: [&str; 3] = ["xdp_ns", "rule_ns", "router_ns"];

/// A kind of packet.
struct Kind {
    name: &'static str,
    option: Option<IpOption>,
    link: Rate,
    step: Duration,
}

fn kinds() -> [Kind; 5] {
    let nonce = Nonce::from_bits(0x2abb_ccdd);
    let request = |rate| Some(IpOption::RateRequest { rate, ttl: 64, nonce });
    let lowest = RateCode::from_bits(1);
    let report = IpOption::ApprovedRate { rate: lowest, nonce };
    let kind = |name, option, link, step| Kind { name, option, link, step };
    [
        kind("plain", None, WIDE, Duration::ZERO),
        kind("report", Some(report), WIDE, Duration::ZERO),
        kind("granted", request(lowest), WIDE, Duration::ZERO),
        kind("denied", request(lowest), NARROW, Duration::ZERO),
        kind("reduced", request(RateCode::MAX), IDLE, FORGOTTEN),
    ]
}

/// The packet of IP.
fn packet(options: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let length = (header + PAYLOAD) as u16;
    let mut packet = vec![0x40 | (header / 4) as u8, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2]);
    packet.extend(options);
    let words = packet.chunks(2).map(|word| word.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    for (to, from) in packet.iter_mut().skip(10).zip(checksum.to_be_bytes()) {
        *to = from;
    }
    let ports = [0x0f, 0xa0, 0x0f, 0xa0, 0, PAYLOAD as u8, 0, 0];
    packet.extend(ports.into_iter().chain([0; PAYLOAD - UDP]));
    packet
}

/// What one kind of packet took, a measurement after the other.
#[derive(Default)]
struct Taken {
    pass: Vec<f64>,
    xdp: Vec<f64>,
    rule: Vec<f64>,
    router: Vec<f64>,
}

pub(in crate::command::perf) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let kinds = kinds();
    let mut taken = kinds.each_ref().map(|_| Taken::default());
    let bar = progress(u64::from(arguments.repetitions));
    for _ in 0..arguments.repetitions {
        for (kind, taken) in kinds.iter().zip(&mut taken) {
            measure(kind, arguments.packets, taken)?;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let mut told = json!({ "packets": arguments.packets, "repetitions": arguments.repetitions });
    let mut text = format!(
        "ns per packet, median of {} measurements (95 %); XDP and rule beyond the row pass\n{:10}{:>20}{:>20}{:>20}\n",
        arguments.repetitions, "packet", "XDP", "rule", "router"
    );
    let pass: Vec<f64> = taken.iter().flat_map(|taken| taken.pass.iter().copied()).collect();
    let none = Vec::new();
    let rows = kinds.iter().zip(&taken).map(|(kind, taken)| (kind.name, [&taken.xdp, &taken.rule, &taken.router]));
    for (name, columns) in std::iter::once(("pass", [&pass, &none, &none])).chain(rows) {
        text += &format!("{name:10}");
        for (column, values) in COLUMNS.into_iter().zip(columns) {
            if values.is_empty() {
                text += &format!("{:>20}", "–");
                continue;
            }
            let [median, low, high] = of_median(values);
            let interval = format!("{median:.0} ({low:.0}-{high:.0})");
            text += &format!("{interval:>20}");
            told[name][column] = json!({ "median": median, "ci95": [low, high] });
        }
        text.push('\n');
    }
    print(&if arguments.json { format!("{told}\n") } else { text })?;
    Ok(ExitCode::SUCCESS)
}

fn measure(kind: &Kind, packets: u32, taken: &mut Taken) -> Result<(), Failure> {
    let config = Config::default();
    let options = kind.option.map(|option| option.emit(IpVersion::V4));
    let options = options.as_ref().map_or(&[][..], |option| option);
    let packet = packet(options);
    let frame = [&[2; ETHERNET - 2][..], &[8, 0], &packet].concat();
    let mut router = Router::load(&config, kind.link).map_err(|error| failure(&error))?;
    let cost = router.measure(&frame, kind.step, packets).map_err(|error| failure(&error))?;
    let seen = router.seen().map_err(|error| failure(&error))?;
    check(kind, [seen.requests, seen.reduced, seen.denied, seen.reports], packets)?;
    taken.pass.push(cost.pass);
    taken.xdp.push(cost.router);
    let cost = of_rule(config, kind.link, &packet, kind.step, packets);
    let seen = cost.seen;
    check(kind, [seen.requests, seen.reduced, seen.denied, seen.reports], packets)?;
    taken.rule.push(cost.nanos);
    // In a whole router time passes as it does.
    if kind.step == Duration::ZERO {
        let through = of_forwarding(config, kind.link, options, &[0; PAYLOAD - UDP], packets);
        let through = through.map_err(|error| Failure::Input(format!("perf quick-start-router: {error}")))?;
        taken.router.push(through.nanos);
    }
    Ok(())
}

/// Refuses a measurement of something else.
fn check(kind: &Kind, seen: [u64; 4], packets: u32) -> Result<(), Failure> {
    let all = u64::from(packets);
    let expected = match kind.name {
        "plain" => [0; 4],
        "report" => [0, 0, 0, all],
        "denied" => [all, 0, all, 0],
        "reduced" => [all, all, 0, 0],
        _ => [all, 0, 0, 0],
    };
    if seen == expected {
        return Ok(());
    }
    let name = kind.name;
    Err(Failure::Other(format!("a packet that is to be {name} was not: {seen:?} in place of {expected:?}")))
}

fn failure(error: &QuickStartError) -> Failure {
    Failure::Input(format!("perf quick-start-router: {error}"))
}

/// The median, and the order statistics between which it lies with 95 % whatever the distribution is: those whose
/// ranks a fair coin leaves outside with 2.5 % each.
fn of_median(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
    let median = f64::midpoint(at((count.max(1) - 1) / 2), at(count / 2));
    // ln of the probability of k heads, from ln of that of k - 1.
    let (mut chance, mut outside, mut low) = (-(count as f64) * std::f64::consts::LN_2, 0.0, 0);
    for heads in 0..count {
        outside += chance.exp();
        if outside > 0.025 {
            break;
        }
        low = heads;
        chance += ((count - heads) as f64 / (heads + 1) as f64).ln();
    }
    [median, at(low), at(count.saturating_sub(low + 1))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_lies_between_the_ranks_of_the_tables() {
        let values = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        // Conover, table A3 of the binomial distribution: of 20 values the 6th and the 15th.
        assert_eq!(of_median(&values(20)), [10.5, 6.0, 15.0]);
        assert_eq!(of_median(&values(6)), [3.5, 1.0, 6.0]);
        assert_eq!(of_median(&values(9)), [5.0, 2.0, 8.0]);
    }

    #[test]
    fn packets_are_read_as_they_are_meant() {
        for kind in kinds() {
            let options = kind.option.map(|option| option.emit(IpVersion::V4));
            let packet = packet(options.as_ref().map_or(&[][..], |option| option));
            let seen = of_rule(Config::default(), kind.link, &packet, kind.step, 1000).seen;
            check(&kind, [seen.requests, seen.reduced, seen.denied, seen.reports], 1000).unwrap();
        }
    }
}
