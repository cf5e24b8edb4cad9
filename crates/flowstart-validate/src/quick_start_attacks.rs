//! What Sarolahti, Allman and Floyd say of attacks on Quick-Start and of what helps (sections 7 and 8), one check for each
//! statement.
//!
//! The statements are qualitative: the bands are orderings, "no worse" is at most 5 % of the completion time, and shares of
//! guessed nonces lie within five standard deviations. The numbers behind them are those of the scenarios `quick-start-*`, with
//! one run of the flood. The paper prints a chance of guessing the nonce that grows with the steps; guessing X S independent
//! bits succeeds with 2^(-X S), so that statement is a miss, and stays one.

use flowstart_core::quick_start::host::{Request, respond};
use flowstart_core::quick_start::misbehaviour::raised;
use flowstart_core::quick_start::rate::{RateCode, RateEncoding, Rounding};
use flowstart_core::quick_start::wire::IpOption;
use flowstart_core::rng::Substream;

use super::{Checker, Verdict};
use flowstart_lab::experiment;
use flowstart_lab::results::flows::Row;
use flowstart_lab::study::scenario::Scenario;
use flowstart_lab::study::shipped::SHIPPED;
use flowstart_statistics::mean;

/// Lies for each share of those believed.
const LIES: u32 = 1 << 16;
/// "No worse".
const NO_WORSE: f64 = 1.05;

/// The rows of a scenario.
struct Results(Vec<Row>);

impl Results {
    fn of(name: &str, reps: Option<u32>, jobs: usize) -> Result<Self, String> {
        let text = SHIPPED.iter().find(|(shipped, _)| *shipped == name).map_or("", |(_, text)| text);
        let mut scenario = Scenario::from_text(text).map_err(|_| "built-in scenario cannot be read")?;
        scenario.reps = reps.unwrap_or(scenario.reps);
        let plan = scenario.plan(std::path::Path::new(".")).map_err(|error| error.to_string())?;
        experiment::execute(&plan, jobs, &[], |_| {}).map(Self).map_err(|error| error.to_string())
    }

    /// The mean over the cells whose link ends and competitor begins like this.
    fn mean(&self, link: &str, scheme: &str, competitor: &str, field: impl Fn(&Row) -> Option<f64>) -> f64 {
        let rows = self.0.iter().filter(|row| row.link.ends_with(link) && row.scheme == scheme);
        let rows: Vec<&Row> = rows.filter(|row| row.competitor == competitor).collect();
        let values: Vec<f64> = rows.iter().filter_map(|row| field(row)).collect();
        // What is left of runs of which one failed is no mean of all.
        mean(&values).filter(|_| rows.iter().all(|row| !row.failed())).unwrap_or(f64::NAN)
    }

    fn approved(&self, link: &str, scheme: &str, competitor: &str) -> f64 {
        self.mean(link, scheme, competitor, |row| row.quick_start_approved)
    }

    fn fct(&self, link: &str, scheme: &str, competitor: &str) -> f64 {
        self.mean(link, scheme, competitor, |row| row.fct_ms)
    }

    fn failures(&self, link: &str, scheme: &str, competitor: &str) -> f64 {
        self.mean(link, scheme, competitor, |row| row.quick_start_failures)
    }
}

const SLOW: &str = "slow-start:iw=3";
const QUICK: &str = "quick-start:iw=3";
const TWO_PASSES: &str = "quick-start:iw=3,passes=2";
const GREEDY: &str = "quick-start:iw=3,request=fixed";

/// `quick-start-attacks`.
pub(super) fn attacks(reference: Option<&std::path::Path>, jobs: usize) -> Result<Verdict, String> {
    if reference.is_some() {
        return Err("quick-start-attacks: its statements are those of a paper; there is no file to compare with".into());
    }
    let mut checker = Checker::declaring(34);
    let mut less = |cell: &str, statement: &str, ours: f64, than: f64| {
        checker.check(cell, statement, ours, than, ours < than, "less");
    };
    let flood = Results::of("quick-start-request-flood", Some(1), jobs)?;
    let attack = "request-flood:rate=100000,count=1000000";
    for link in ["quick_start=target", "qs_limit=1000", "quick_start=extreme"] {
        let statement = "a storm of requests takes what legitimate users would be approved";
        less(link, statement, flood.approved(link, QUICK, attack), flood.approved(link, QUICK, "none"));
        let worst = NO_WORSE * flood.fct(link, SLOW, attack);
        less(
            link,
            "competing connections are no worse than without Quick-Start",
            flood.fct(link, QUICK, attack),
            worst,
        );
    }

    let bogus = Results::of("quick-start-bogus-requests", None, jobs)?;
    let (plain, two) = ("qs_interval=1500ms", "qs_provisional=100ms");
    for attack in ["bogus-requests:rate=1", "bogus-requests:rate=10"] {
        let statement = "a low-rate stream of bogus requests reduces what legitimate users are allocated";
        less(attack, statement, bogus.approved(plain, QUICK, attack), bogus.approved(plain, QUICK, "none"));
        let statement = "a second pass reduces the impact of spoofing senders";
        less(attack, statement, bogus.approved(plain, QUICK, attack), bogus.approved(two, TWO_PASSES, attack));
        let worst = NO_WORSE * bogus.fct(plain, SLOW, attack);
        less(
            attack,
            "competing connections are no worse than without Quick-Start",
            bogus.fct(plain, QUICK, attack),
            worst,
        );
    }
    let one = "bogus-requests:rate=10,spoofed=false";
    let statement = "a router can reduce the requests of senders that used a fraction of their approvals";
    let (basic, extreme) = ("quick_start=target", "quick_start=extreme");
    less(one, statement, bogus.approved(basic, QUICK, one), bogus.approved(extreme, QUICK, one));

    let wasted = Results::of("quick-start-wasted-upstream", None, jobs)?;
    let far = |startup: &str| {
        format!("web:load=1.6mbit,receiver_rate=2mbit,smallest=20KB,largest=40KB,startup=quick-start:{startup}")
    };
    let unreported = wasted.approved("quick_start=target", QUICK, &far("reports=never"));
    let statement = "a downstream cut reduces what the first router can approve";
    less("far", statement, unreported, wasted.approved("quick_start=target", QUICK, "none"));
    let statement = "a router can take R1 - R2 back from what it has allocated";
    less("far", statement, unreported, wasted.approved("qs_flows=1024", QUICK, &far("reports=always")));
    let statement = "a second pass reduces the problem of downstream reductions";
    less("far", statement, unreported, wasted.approved("qs_provisional=100ms", TWO_PASSES, &far("passes=2")));

    let lying = Results::of("quick-start-lying-receiver", Some(40), jobs)?;
    let (honest, liar, blind) = ("quick_start=target", "raise/3", "quick-start:iw=3,request=fixed,nonce_bits=0");
    let statement = "cheating risks hurting instead of helping";
    less("receiver", statement, lying.fct(honest, blind, "none"), lying.fct(liar, blind, "none"));
    let statement = "and causes packet drops for Quick-Start packets";
    less("receiver", statement, lying.failures(honest, blind, "none"), lying.failures(liar, blind, "none"));
    let booster = Results::of("quick-start-middlebox", None, jobs)?;
    let megabyte = |link: &str, field: fn(&Row) -> Option<f64>| {
        booster.mean(link, GREEDY, "none", |row| field(row).filter(|_| row.size_bytes == 1_000_000))
    };
    let (honest, boosted) = ("hops=2,quick_start=target", "qs_booster=raise/3");
    less(
        "booster",
        "cheating risks hurting instead of helping",
        megabyte(honest, |row| row.fct_ms),
        megabyte(boosted, |row| row.fct_ms),
    );
    let approved = |row: &Row| row.quick_start_approved;
    let statement = "adjusting TTLDiff' masks the network's lack of Quick-Start savvy";
    less("booster", statement, megabyte("qs_routers=0", approved), megabyte("qs_booster=ttl", approved));

    let hidden = Results::of("quick-start-hidden-hop", None, jobs)?;
    let statement = "a tunnel that does not decrement the inner TTL lets requests be falsely approved";
    less(
        "tunnel",
        statement,
        hidden.approved("qs_routers=1", GREEDY, "none"),
        hidden.approved("qs_hidden=2", GREEDY, "none"),
    );
    let statement = "a router should not approve what it cannot determine to the next IP hop";
    let (told, unaware) = ("qs_bandwidth=10mbit", "qs_hidden=2");
    less("switch", statement, hidden.failures(told, GREEDY, "none"), hidden.failures(unaware, GREEDY, "none"));

    let shares = guesses(&mut checker);
    Ok(checker.verdict("quick-start-attacks", format!("lies believed, two bits a step, S = 1 to 5: {shares}")))
}

/// Receivers that claim S steps more than arrived, against 2^(-X S) and against what the paper prints.
fn guesses(checker: &mut Checker) -> String {
    let mut rng = Substream::new(1, "lying receiver", 0);
    let mut shares = Vec::new();
    for bits in [1u32, 2] {
        let mut by_steps = Vec::new();
        for steps in 1..=5u8 {
            let believed = (0..LIES).filter(|_| believed(bits, steps, &mut rng)).count() as f64;
            let chance = 1.0 / f64::from(1u32 << (bits * u32::from(steps)));
            let (share, deviation) = (believed / f64::from(LIES), libm::sqrt(chance / f64::from(LIES)));
            let inside = (share - chance).abs() <= 5.0 * deviation;
            let cell = format!("{bits} bits a step, {steps} steps");
            checker.check(&cell, "share of lies believed", share, chance, inside, "2^(-X S), five standard deviations");
            by_steps.push(share);
        }
        let printed = 5.0 / f64::from(1u32 << bits);
        let cell = format!("{bits} bits a step, 5 steps");
        let grows = by_steps[4] > by_steps[0];
        checker.check(
            &cell,
            "the chance printed grows with the steps",
            by_steps[4],
            printed,
            grows,
            "more than with 1 step",
        );
        shares = by_steps;
    }
    shares.iter().map(|share| format!("{:.2} %", share * 100.0)).collect::<Vec<_>>().join(", ")
}

/// Whether a sender that compares so many bits of each step believes a receiver that claims `steps` more than arrived.
fn believed(bits: u32, steps: u8, rng: &mut Substream) -> bool {
    let (asked, left) = (RateCode::from_bits(12), RateCode::from_bits(7));
    let request = Request::new(asked.rate(), Rounding::Up, RateEncoding::Exponential, 64, rng);
    let Some(request) = request.map(|request| request.comparing(bits)) else { return false };
    let IpOption::RateRequest { ttl, nonce, .. } = request.option() else { return false };
    // What a router leaves of it.
    let arrived = IpOption::RateRequest { rate: left, ttl, nonce: nonce.reduced(asked, left, rng) };
    respond(arrived, 64).is_some_and(|honest| request.verify(&raised(honest, steps, rng)).is_ok())
}
