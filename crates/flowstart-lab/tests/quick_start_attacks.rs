//! Attacks on Quick-Start (Sarolahti, Allman and Floyd, sections 7 and 8): each does damage, and its countermeasure
//! works.

use flowstart_lab::experiment::execute;
use flowstart_lab::results::flows::Row;
use flowstart_lab::study::scenario::Scenario;

/// 10 Mbit/s and 80 ms with these keys in addition.
fn link(keys: &str) -> String {
    format!("rate=10mbit,rtt=80ms,buffer=150pkt,{keys}")
}

/// The conditions of a scheme's transfers.
struct Experiment<'a> {
    link: &'a str,
    size: &'a str,
    scheme: &'a str,
    competitor: &'a str,
    /// The starts of ten transfers.
    arrival: &'a str,
    reps: u32,
}

/// On average one in 0.8 s of 100 KB.
const POISSON: &str = "poisson:load=1mbit";
/// So far apart that every approval has ended before the next request.
const APART: &str = "every=4100ms";

impl Experiment<'_> {
    fn rows(&self) -> Vec<Row> {
        let Self { link, size, scheme, competitor, arrival, reps } = self;
        let text = format!(
            "link = [\"{link}\"]\nsize = [\"{size}\"]\nscheme = [\"{scheme}\"]\ncompetitor = [\"{competitor}\"]\n\
             transport = \"model-tcp:profile=tcp-rfc,opening=sender\"\narrival = [\"{arrival},flows=10\"]\nreps = {reps}"
        );
        let plan = Scenario::from_text(&text).expect("a scenario").plan(std::path::Path::new(".")).expect("a plan");
        execute(&plan, 1, &[], |_| {}).expect("it runs")
    }
}

fn mean(rows: &[Row], value: impl Fn(&Row) -> Option<f64>) -> f64 {
    let values: Vec<f64> = rows.iter().filter_map(value).collect();
    assert!(!values.is_empty(), "no flow has a value");
    values.iter().sum::<f64>() / values.len() as f64
}

/// Share of requests that were approved.
fn approved(rows: &[Row]) -> f64 {
    mean(rows, |row| row.quick_start_approved)
}

fn fct(rows: &[Row]) -> f64 {
    mean(rows, |row| row.fct_ms)
}

fn dropped(rows: &[Row]) -> f64 {
    mean(rows, |row| Some(row.dropped_packets as f64))
}

const FLOOD: &str = "request-flood:rate=2000";
const QUICK_START: &str = "quick-start:iw=3";

#[test]
fn bogus_requests_use_up_what_a_second_pass_gives_back() {
    let honest = |keys: &str, scheme: &str, competitor: &str| {
        Experiment { link: &link(keys), size: "100KB", scheme, competitor, arrival: APART, reps: 4 }.rows()
    };
    let plain = "quick_start=target,qs_interval=1500ms";
    let two_passes = "quick_start=target,qs_interval=1500ms,qs_flows=1024,qs_provisional=100ms";
    let attack = "bogus-requests:rate=1";
    let (without, attacked) = (honest(plain, QUICK_START, "none"), honest(plain, QUICK_START, attack));
    let helped = honest(two_passes, "quick-start:iw=3,passes=2", attack);
    assert!(approved(&attacked) < 0.4 * approved(&without), "{} {}", approved(&attacked), approved(&without));
    assert!(approved(&helped) > 2.0 * approved(&attacked), "{} {}", approved(&helped), approved(&attacked));
    // A refused sender is no worse off than with slow start.
    let slow = fct(&honest(plain, "slow-start:iw=3", attack));
    assert!(fct(&attacked) < 1.05 * slow, "{} {slow}", fct(&attacked));
}

#[test]
fn a_flow_that_never_uses_its_approvals_gets_none_where_that_is_remembered() {
    let honest = |keys: &str, competitor: &str| {
        approved(
            &Experiment { link: &link(keys), size: "100KB", scheme: QUICK_START, competitor, arrival: APART, reps: 4 }
                .rows(),
        )
    };
    let (one, many) = ("bogus-requests:rate=10,spoofed=false", "bogus-requests:rate=10");
    let without = honest("quick_start=extreme", "none");
    let basic = honest("quick_start=target", one);
    let (extreme, spoofed) = (honest("quick_start=extreme", one), honest("quick_start=extreme", many));
    assert!(basic < 0.5 * without && extreme > 0.9 * without, "{basic} {extreme} {without}");
    // It does not help against changing sources.
    assert!(spoofed < 0.5 * without, "{spoofed} {without}");
}

#[test]
fn a_flood_is_approved_at_others_expense_and_a_limit_bounds_what_is_looked_at() {
    let honest = |keys: &str, competitor: &str| {
        approved(
            &Experiment {
                link: &link(keys),
                size: "100KB",
                scheme: QUICK_START,
                competitor,
                arrival: POISSON,
                reps: 2,
            }
            .rows(),
        )
    };
    let without = honest("quick_start=target", "none");
    assert!(without > 0.8, "{without}");
    let (attacked, limited) = (honest("quick_start=target", FLOOD), honest("quick_start=target,qs_limit=10", FLOOD));
    assert!(attacked < 0.25 * without && limited < 0.25 * without, "{attacked} {limited} {without}");
    // 64 flows hold 64 * 80 kbit/s = 5.12 of 9 Mbit/s at most, and some honest requests find a place.
    let extreme = honest("quick_start=extreme,qs_flows=64", FLOOD);
    assert!((0.1..0.6 * without).contains(&extreme), "{extreme} {without}");
}

#[test]
fn what_a_narrow_link_refuses_is_given_back_by_reports_and_second_passes() {
    let far = |startup: &str| {
        format!("web:load=1.6mbit,receiver_rate=2mbit,smallest=20KB,largest=40KB,startup=quick-start:{startup}")
    };
    let honest = |keys: &str, scheme: &str, competitor: &str| {
        approved(&Experiment { link: &link(keys), size: "100KB", scheme, competitor, arrival: POISSON, reps: 8 }.rows())
    };
    let remembering = "quick_start=target,qs_flows=1024";
    let without = honest("quick_start=target", QUICK_START, "none");
    let wasted = honest("quick_start=target", QUICK_START, &far("reports=never"));
    let reported = honest(remembering, QUICK_START, &far("reports=always"));
    let confirmed =
        honest("quick_start=target,qs_flows=1024,qs_provisional=100ms", "quick-start:iw=3,passes=2", &far("passes=2"));
    assert!(wasted < 0.9 * without, "{wasted} {without}");
    assert!(reported > wasted && confirmed > wasted, "{reported} {confirmed} {wasted}");
}

#[test]
fn a_second_pass_costs_a_round_trip() {
    let alone = |keys: &str, scheme: &str| {
        fct(&Experiment { link: &link(keys), size: "30KB", scheme, competitor: "none", arrival: APART, reps: 1 }.rows())
    };
    let one = alone("quick_start=target", QUICK_START);
    let two = alone("quick_start=target,qs_flows=64,qs_provisional=500ms", "quick-start:iw=3,passes=2");
    assert!((two - one - 80.0).abs() < 5.0, "{two} {one}");
    // Routers without a second pass do not know its function. They refuse it, and the flow starts slowly, an RTT later.
    let unknown = Experiment {
        link: &link("quick_start=target"),
        size: "30KB",
        scheme: "quick-start:iw=3,passes=2",
        competitor: "none",
        arrival: APART,
        reps: 1,
    };
    assert_eq!(approved(&unknown.rows()), 0.0);
}

#[test]
fn a_receiver_that_lies_is_believed_without_a_nonce_and_seldom_with_one() {
    let receiver = |scheme: &str, keys: &str| {
        let link = link(keys);
        Experiment { link: &link, size: "500KB", scheme, competitor: "none", arrival: POISSON, reps: 10 }.rows()
    };
    let scheme = "quick-start:iw=3,request=fixed";
    let lying = "quick_start=target,qs_receiver=raise/3";
    let honest = receiver(scheme, "quick_start=target");
    let (believed, caught) = (receiver(&format!("{scheme},nonce_bits=0"), lying), receiver(scheme, lying));
    assert!(approved(&believed) > 0.8 * approved(&honest), "{} {}", approved(&believed), approved(&honest));
    // 2^(-2 * 3) = 1.6 % of 100.
    assert!(approved(&caught) < 0.06, "{}", approved(&caught));
    assert!(dropped(&believed) > dropped(&caught) + 20.0, "{} {}", dropped(&believed), dropped(&caught));
    assert!(mean(&believed, |row| row.quick_start_failures) > 0.5);
}

#[test]
fn a_booster_that_sees_requests_is_believed_and_loses_what_it_sends() {
    let boosted = |keys: &str| {
        let link = link(keys);
        Experiment {
            link: &link,
            size: "1MB",
            scheme: "quick-start:iw=3,request=fixed",
            competitor: "none",
            arrival: POISSON,
            reps: 2,
        }
        .rows()
    };
    let (honest, raised) = (boosted("quick_start=target"), boosted("quick_start=target,qs_booster=raise/3"));
    assert!(approved(&raised) > 0.8 * approved(&honest), "{} {}", approved(&raised), approved(&honest));
    assert!(dropped(&raised) > dropped(&honest) + 50.0, "{} {}", dropped(&raised), dropped(&honest));
    let unaware = boosted("quick_start=target,qs_routers=0");
    let hidden = boosted("quick_start=target,qs_routers=0,qs_booster=ttl");
    assert!(approved(&unaware) == 0.0 && approved(&hidden) > 0.9, "{} {}", approved(&unaware), approved(&hidden));
    assert!(dropped(&hidden) > dropped(&unaware), "{} {}", dropped(&hidden), dropped(&unaware));
}

#[test]
fn a_hidden_hop_is_falsely_approved_until_its_ttl_or_its_rate_is_told() {
    let narrow = |keys: &str| {
        let link = format!("rate=10mbit,rtt=80ms,buffer=50pkt,quick_start=target,qs_upstream=100mbit,{keys}");
        Experiment {
            link: &link,
            size: "1MB",
            scheme: "quick-start:iw=3,request=fixed",
            competitor: "none",
            arrival: POISSON,
            reps: 2,
        }
        .rows()
    };
    let hidden = narrow("qs_hidden=2");
    assert!(approved(&hidden) > 0.9 && mean(&hidden, |row| row.quick_start_failures) > 0.9);
    // A tunnel that decrements the TTL, and a router that knows the link behind it.
    let (counted, told) = (narrow("qs_routers=1"), narrow("qs_hidden=2,qs_bandwidth=10mbit"));
    assert_eq!(approved(&counted), 0.0);
    assert!(approved(&told) > 0.5, "{}", approved(&told));
    assert!(dropped(&counted) < 0.5 * dropped(&hidden), "{} {}", dropped(&counted), dropped(&hidden));
    assert!(dropped(&told) < 0.5 * dropped(&hidden), "{} {}", dropped(&told), dropped(&hidden));
}
