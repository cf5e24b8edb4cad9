//! A table of transfers from what connections showed of their paths.
//!
//! A connection that filled its link shows the link's rate. Of one that did not, only a lower bound is known: it takes
//! the rates of links with a similar RTT that are at least as fast, each by its number. So small transfers, which never
//! fill a link, are there with the links of the others.
//!
//! Connections become kinds of transfers on a grid of rate, RTT and size. While there are too many kinds, the rarest
//! one joins its nearest, and both become their mean.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_statistics::weighted_quantile;

/// Most kinds of transfers: with each scheme, they take minutes and not hours.
pub const MOST_KINDS: usize = 40;
/// Most groups that are joined one by one, which takes a time that grows with their square.
const MOST_GROUPS: usize = 1000;
/// Longest buffer: links have no longer ones.
const LONGEST_BUFFER_S: f64 = 100.0;
/// The steps of the grid as factors: of rates, of RTTs and of sizes.
const STEPS: [f64; 3] = [2.0, 2.0, 4.0];
/// The part of the connections whose queues are not longer than the buffer.
const OF_QUEUES: f64 = 0.9;
/// Shorter buffers cannot be told from none.
const FEWEST_PACKETS: f64 = 10.0;
/// A full packet in bits.
const PACKET_BITS: f64 = 12_000.0;
/// Digits of the numbers in the table.
const DIGITS: i32 = 3;

/// What a connection, or a number of them, showed of its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// How many they are.
    pub weight: f64,
    /// What it carried.
    pub size: Bytes,
    /// Smallest RTT.
    pub rtt: Duration,
    /// Highest rate.
    pub rate: Rate,
    /// Whether that is the link's; otherwise it is a lower bound.
    pub is_rate_of_link: bool,
    /// The longest time that its packets waited, if that is known.
    pub queue: Option<Duration>,
    /// Whether packets were lost.
    pub has_lost: bool,
    /// The part of them whose path was known before.
    pub known: f64,
}

/// A table of transfers, and what has to be known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The table, as [`super::population::Population::from_text`] reads it.
    pub text: String,
    /// What was assumed and left out, in sentences.
    pub notes: Vec<String>,
}

impl Table {
    /// Adds what has to be known besides, a sentence in a line.
    pub fn add(&mut self, note: String) {
        self.text.insert_str(0, &commented(&note));
        self.notes.push(note);
    }
}

/// A note above the table.
fn commented(note: &str) -> String {
    format!("# {note}\n")
}

/// No connection showed the rate of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRate;

impl std::fmt::Display for NoRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "no connection filled its link, so no rate is known; needed are connections that lost packets or queued \
             them, and lasted at least three round trips at their highest rate",
        )
    }
}

impl std::error::Error for NoRate {}

/// A place on a line of the grid.
type Step = i32;

fn step(value: f64, axis: usize) -> Step {
    // Steps of what fits into a u64 fit into an i32.
    (value.ln() / STEPS[axis].ln()).floor() as Step
}

/// Links of similar rate and RTT.
#[derive(Clone, Debug, Default)]
struct Links {
    weight: f64,
    /// Sum of the logarithms of their rates, each with its weight.
    rate: f64,
    /// Sum of the logarithms of their RTTs.
    rtt: f64,
    /// The queues of connections that lost packets, in seconds, with their weights.
    full: Vec<(f64, f64)>,
    /// The queues of connections that lost none, likewise.
    queues: Vec<(f64, f64)>,
}

impl Links {
    fn add(&mut self, one: &Observed) {
        self.weight += one.weight;
        self.rate += one.weight * rate_of(one).ln();
        self.rtt += one.weight * rtt_of(one).ln();
        let Some(queue) = one.queue.map(Duration::as_secs) else { return };
        let queues = if one.has_lost { &mut self.full } else { &mut self.queues };
        queues.push((queue, one.weight));
    }

    /// The time that a full buffer takes; `None` if no connection met its end or had more than an RTT in it.
    fn buffer(&self) -> Option<f64> {
        let rtt = (self.rtt / self.weight).exp();
        let least = FEWEST_PACKETS * PACKET_BITS / (self.rate / self.weight).exp();
        match weighted_quantile(&self.full, OF_QUEUES) {
            Some(full) => Some(full.max(least)),
            // One connection whose acknowledgements came late does not decide.
            None => weighted_quantile(&self.queues, OF_QUEUES).filter(|queue| *queue > rtt),
        }
    }
}

/// Transfers that become a line of the table.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    weight: f64,
    /// The weight of the heaviest place of the grid in it: that of the others joined it.
    stayed: f64,
    /// Sums of the logarithms of rate, RTT and size, each with its weight.
    sums: [f64; 3],
    /// Weight of those whose path is known.
    known: f64,
}

impl Group {
    fn add(&mut self, weight: f64, logarithms: [f64; 3], known: f64) {
        self.weight += weight;
        self.stayed += weight;
        self.known += weight * known;
        self.sums.iter_mut().zip(logarithms).for_each(|(sum, logarithm)| *sum += weight * logarithm);
    }

    fn join(&mut self, other: &Self) {
        self.weight += other.weight;
        self.stayed = self.stayed.max(other.stayed);
        self.known += other.known;
        self.sums.iter_mut().zip(other.sums).for_each(|(sum, other)| *sum += other);
    }

    fn logarithms(&self) -> [f64; 3] {
        self.sums.map(|sum| sum / self.weight)
    }

    /// The squared distance in steps of the grid.
    fn distance(&self, other: &Self) -> f64 {
        let apart = self.logarithms().into_iter().zip(other.logarithms()).zip(STEPS);
        apart.map(|((own, other), step)| ((own - other) / step.ln()).powi(2)).sum()
    }
}

// Logarithms need more than zero.
fn rate_of(one: &Observed) -> f64 {
    one.rate.bits_per_sec().max(1) as f64
}

fn rtt_of(one: &Observed) -> f64 {
    one.rtt.as_secs().max(1e-9)
}

fn size_of(one: &Observed) -> f64 {
    one.size.get().max(1) as f64
}

/// The table for these connections.
///
/// # Errors
///
/// [`NoRate`] if none of them filled its link.
pub fn table(observed: &[Observed]) -> Result<Table, NoRate> {
    let mut links: BTreeMap<(Step, Step), Links> = BTreeMap::new();
    for one in observed.iter().filter(|one| one.is_rate_of_link && one.weight > 0.0) {
        links.entry((step(rtt_of(one), 1), step(rate_of(one), 0))).or_default().add(one);
    }
    if links.is_empty() {
        return Err(NoRate);
    }
    let mut grid: BTreeMap<[Step; 3], Group> = BTreeMap::new();
    let mut put = |weight: f64, logarithms: [f64; 3], known: f64| {
        let place = [0, 1, 2].map(|axis| (logarithms[axis] / STEPS[axis].ln()).floor() as Step);
        grid.entry(place).or_default().add(weight, logarithms, known);
    };
    let (mut shown, mut limited, mut left_out) = (0.0, 0.0, 0.0);
    for one in observed.iter().filter(|one| one.weight > 0.0) {
        let (rtt, size) = (rtt_of(one).ln(), size_of(one).ln());
        if one.is_rate_of_link {
            shown += one.weight;
            put(one.weight, [rate_of(one).ln(), rtt, size], one.known);
            continue;
        }
        let own = step(rtt_of(one), 1);
        let least = step(rate_of(one), 0);
        let is_fast = |((_, rate), _): &(&(Step, Step), &Links)| *rate >= least;
        let near: Vec<&Links> =
            links.range((own, Step::MIN)..=(own, Step::MAX)).filter(is_fast).map(|(_, links)| links).collect();
        let fast = if near.is_empty() { links.iter().filter(is_fast).map(|(_, links)| links).collect() } else { near };
        let all: f64 = fast.iter().map(|links| links.weight).sum();
        if all <= 0.0 {
            left_out += one.weight;
            continue;
        }
        limited += one.weight;
        for of in fast {
            put(one.weight * of.weight / all, [of.rate / of.weight, rtt, size], one.known);
        }
    }
    let places = grid.len();
    let mut groups = coarsened(grid);
    join_rare(&mut groups);
    let [all, stayed] =
        [|group: &Group| group.weight, |group: &Group| group.stayed].map(|of| groups.iter().map(of).sum::<f64>());
    let moved = 1.0 - stayed / all;
    let mut notes = Vec::new();
    if limited + left_out > 0.0 {
        notes.push(format!(
            "Of {:.0} connections {shown:.0} filled their link and show its rate. {limited:.0} others, which were \
             slower than their link for want of data or time, have the rates of those with a similar RTT.",
            shown + limited + left_out
        ));
    }
    if left_out > 0.0 {
        notes.push(format!(
            "{left_out:.0} connections are left out: they were faster than every link that was filled, and did not \
             fill their own. So the fastest links are missing here."
        ));
    }
    if places > groups.len() {
        notes.push(format!(
            "{places} combinations of rate, RTT and size became {} kinds of transfers: {:.0} % of the connections \
             joined the nearest kind.",
            groups.len(),
            moved * 100.0
        ));
    }
    notes.push(
        "A rate is what a connection got, so a link that others shared counts as its share. Who shared it is not \
         logged: competitor is none, and aqm is taildrop."
            .into(),
    );
    let buffers = if observed.iter().any(|one| one.queue.is_some()) {
        "A buffer is what packets waited where some were lost, and 1 BDP at least where none were: the true one may be \
         larger."
    } else {
        "Nothing shows the buffers: 1 BDP is assumed."
    };
    notes.push(buffers.into());
    Ok(Table { text: written(&groups, &links, &notes), notes })
}

/// The groups of a grid whose steps are twice as wide as often as it takes until there are not too many.
fn coarsened(mut grid: BTreeMap<[Step; 3], Group>) -> Vec<Group> {
    while grid.len() > MOST_GROUPS {
        let mut wider: BTreeMap<[Step; 3], Group> = BTreeMap::new();
        for (place, group) in grid {
            wider.entry(place.map(|step| step.div_euclid(2))).or_default().join(&group);
        }
        grid = wider;
    }
    grid.into_values().collect()
}

/// Joins the rarest groups with their nearest until there are few enough.
fn join_rare(groups: &mut Vec<Group>) {
    while groups.len() > MOST_KINDS {
        let rarest = (0..groups.len()).min_by(|a, b| groups[*a].weight.total_cmp(&groups[*b].weight)).unwrap_or(0);
        let rare = groups.remove(rarest);
        if let Some(nearest) = groups.iter_mut().min_by(|a, b| rare.distance(a).total_cmp(&rare.distance(b))) {
            nearest.join(&rare);
        }
    }
}

/// A number with a few digits.
fn short(value: f64) -> f64 {
    let exponent = value.log10().floor() as i32 - (DIGITS - 1);
    let unit = 10_f64.powi(exponent.abs());
    // Dividing by a whole number rounds once, and the result is written short.
    if exponent >= 0 { (value / unit).round() * unit } else { (value * unit).round() / unit }
}

/// The table's text, with the notes as comments above it.
fn written(groups: &[Group], links: &BTreeMap<(Step, Step), Links>, notes: &[String]) -> String {
    let mut text = String::new();
    notes.iter().for_each(|note| text.push_str(&commented(note)));
    text.push_str("name,weight,rate,rtt,buffer,size,known\n");
    for (place, group) in (1..).zip(groups) {
        let logarithms = group.logarithms();
        let [rate, rtt, size] = logarithms.map(|logarithm| short(logarithm.exp()));
        let nearest = links.values().min_by(|a, b| {
            let apart = |links: &Links| {
                let own = Group { weight: links.weight, sums: [links.rate, links.rtt, 0.0], ..Group::default() };
                let this = Group { sums: [group.sums[0], group.sums[1], 0.0], ..*group };
                this.distance(&own)
            };
            apart(a).total_cmp(&apart(b))
        });
        let buffer = nearest
            .and_then(Links::buffer)
            .map_or("1bdp".to_owned(), |seconds| span(short(seconds.min(LONGEST_BUFFER_S))).to_string());
        let (rate, rtt) = (Rate::from_bits_per_sec(rate.round() as u64), span(rtt));
        let size = Bytes::new(size.round() as u64);
        let known = (group.known / group.weight * 100.0).round() / 100.0;
        // Writing to a text does not fail.
        let _ = writeln!(
            text,
            "{place}: {size} at {rate} and {rtt},{},{rate},{rtt},{buffer},{size},{known}",
            short(group.weight)
        );
    }
    text
}

/// A time in seconds with as few digits as it has.
fn span(seconds: f64) -> Duration {
    let micros = (seconds * 1e6).round();
    if micros >= 1.0 { Duration::from_micros(micros as u64) } else { Duration::from_micros(1) }
}

#[cfg(test)]
mod tests {
    use super::super::population::Population;
    use super::*;

    fn observed(mbit: u64, rtt: u64, size: u64) -> Observed {
        Observed {
            weight: 1.0,
            size: Bytes::new(size),
            rtt: Duration::from_millis(rtt),
            rate: Rate::from_mbit(mbit),
            is_rate_of_link: true,
            queue: Some(Duration::ZERO),
            has_lost: false,
            known: 0.0,
        }
    }

    fn kinds(observed: &[Observed]) -> Vec<(String, f64, f64, String)> {
        let population = Population::from_text(&table(observed).unwrap().text).unwrap();
        population.kinds.into_iter().map(|kind| (kind.link(), kind.share, kind.known, kind.size)).collect()
    }

    #[test]
    fn connections_become_kinds_with_shares() {
        let lost = Observed { queue: Some(Duration::from_millis(20)), has_lost: true, ..observed(50, 30, 2_000_000) };
        let queued = Observed { queue: Some(Duration::from_millis(90)), known: 1.0, ..observed(10, 80, 300_000) };
        let all = kinds(&[lost, lost, lost, queued]);
        let expected = [
            ("rate=10mbit,rtt=80ms,buffer=90ms".to_owned(), 0.25, 1.0, "300KB".to_owned()),
            ("rate=50mbit,rtt=30ms,buffer=20ms".to_owned(), 0.75, 0.0, "2MB".to_owned()),
        ];
        assert_eq!(all, expected);
        // A queue of less than an RTT without a loss says nothing of the buffer.
        let short = Observed { queue: Some(Duration::from_millis(20)), ..observed(10, 80, 300_000) };
        assert_eq!(kinds(&[short])[0].0, "rate=10mbit,rtt=80ms,buffer=1bdp");
    }

    #[test]
    fn a_limited_connection_has_the_links_that_are_fast_enough() {
        let small = |mbit: u64, rtt: u64| Observed { is_rate_of_link: false, ..observed(mbit, rtt, 10_000) };
        // Three links of 10 and one of 100 Mbit/s with 30 ms, one of 1 Mbit/s with 500 ms.
        let links =
            [vec![observed(10, 30, 2_000_000); 3], vec![observed(100, 30, 2_000_000), observed(1, 500, 2_000_000)]];
        let with = |one: Observed| {
            let all = kinds(&[links.concat(), vec![one]].concat());
            let small = all.into_iter().filter(|(.., size)| size == "10KB");
            small.map(|(link, share, ..)| (link, (share * 6.0 * 100.0).round() / 100.0)).collect::<Vec<_>>()
        };
        let of = |mbit: u64| format!("rate={mbit}mbit,rtt=30ms,buffer=1bdp");
        assert_eq!(with(small(5, 30)), [(of(10), 0.75), (of(100), 0.25)]);
        // 20 Mbit/s are more than 10, so only the fastest is left.
        assert_eq!(with(small(20, 30)), [(of(100), 1.0)]);
        // Nobody filled a link with 5 ms, so all that are fast enough count.
        assert_eq!(with(small(20, 5)), [("rate=100mbit,rtt=5ms,buffer=1bdp".to_owned(), 1.0)]);
        let told = table(&[links.concat(), vec![small(5, 30), small(500, 30)]].concat()).unwrap();
        assert!(told.notes[0].starts_with("Of 7 connections 5 filled their link"), "{told:?}");
        assert!(told.notes[1].starts_with("1 connections are left out"), "{told:?}");
    }

    #[test]
    fn many_kinds_become_few_and_none_is_lost() {
        let mut all = Vec::new();
        for rate in 0..10 {
            for rtt in 0..8 {
                for size in 0..6 {
                    let weight = f64::from(1 + rate + rtt + size);
                    all.push(Observed { weight, ..observed(1 << rate, 2 << rtt, 1000 << (2 * size)) });
                }
            }
        }
        let told = table(&all).unwrap();
        let population = Population::from_text(&told.text).unwrap();
        assert_eq!(population.kinds.len(), MOST_KINDS);
        assert!((population.kinds.iter().map(|kind| kind.share).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(told.notes[0].starts_with("480 combinations"), "{:?}", told.notes);
    }

    #[test]
    fn of_a_full_grid_no_more_than_all_joined_another() {
        let mut all = Vec::new();
        for rate in 0..24 {
            for rtt in 0..18 {
                for size in 0..24 {
                    all.push(Observed {
                        rate: Rate::from_bits_per_sec(1000 << rate),
                        rtt: Duration::from_micros(100 << rtt),
                        ..observed(1, 1, 100 << size)
                    });
                }
            }
        }
        let told = table(&all).unwrap();
        let share = told.notes[0].split(" % of").next().and_then(|text| text.rsplit(' ').next());
        let share: f64 = share.and_then(|text| text.parse().ok()).unwrap();
        // 5,184 places of the same weight, of which 40 stay.
        assert_eq!(share, 99.0, "{:?}", told.notes);
        assert_eq!(Population::from_text(&told.text).unwrap().kinds.len(), MOST_KINDS);
    }

    #[test]
    fn one_connection_does_not_decide_the_buffer() {
        let waited = |ms: u64| Observed { queue: Some(Duration::from_millis(ms)), ..observed(10, 80, 300_000) };
        let all = [vec![waited(90); 20], vec![waited(200_000)]].concat();
        assert_eq!(kinds(&all)[0].0, "rate=10mbit,rtt=80ms,buffer=90ms");
        assert_eq!(kinds(&[waited(200_000)])[0].0, "rate=10mbit,rtt=80ms,buffer=100s");
    }

    #[test]
    fn without_a_filled_link_there_is_no_table() {
        let limited = Observed { is_rate_of_link: false, ..observed(5, 30, 10_000) };
        assert_eq!(table(&[limited]), Err(NoRate));
        assert_eq!(table(&[]), Err(NoRate));
    }

    #[test]
    fn numbers_are_short() {
        for (value, expected) in [(1234.0, 1230.0), (0.0012345, 0.00123), (99_960_000.0, 100_000_000.0), (7.0, 7.0)] {
            assert!((short(value) / expected - 1.0).abs() < 1e-12, "{value}");
        }
    }
}
