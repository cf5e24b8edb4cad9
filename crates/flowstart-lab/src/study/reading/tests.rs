use std::path::Path;

use super::*;
use crate::experiment::execute;
use crate::results::flows::Row;
use crate::study::plan::{Axis, Cell, Plan};

const BASE: &str = "link = [\"path=rate=10mbit,rtt=40ms,access_jitter=1ms/1ms\"]\nsize = [\"70KB\"]\n";

fn read(more: &str) -> Result<Plan, InputError> {
    Scenario::from_text(&format!("{BASE}{more}")).unwrap().plan(Path::new("."))
}

fn plan(more: &str) -> Plan {
    read(more).unwrap_or_else(|error| panic!("{error}"))
}

fn ids(plan: &Plan) -> Vec<String> {
    // The link is the same everywhere.
    plan.cells().iter().map(|cell| plan.id(cell).split_once('/').unwrap().1.to_owned()).collect()
}

/// Cells and those that they are compared with, without the link.
fn baselines(plan: &Plan) -> Vec<(String, Option<String>)> {
    let (cells, ids) = (plan.cells(), ids(plan));
    let of = |cell: &Cell| plan.baseline_of(cell).map(|baseline| ids[baseline.index].clone());
    cells.iter().map(|cell| (ids[cell.index].clone(), of(cell))).collect()
}

#[test]
fn several_transports_are_the_middle_of_the_order_and_the_end_of_names() {
    let schemes = "scheme = [\"slow-start\", \"hystart\"]\n";
    let one = plan(&format!("{schemes}transport = \"model-tcp\""));
    assert_eq!(ids(&one), ["taildrop/70KB/slow-start/none", "taildrop/70KB/hystart/none"]);
    let two = plan(&format!("{schemes}transport = [\"model-quic\", \"model-tcp\"]\nhint = true"));
    assert_eq!(
        ids(&two),
        [
            "taildrop/70KB/slow-start/none/model-quic",
            "taildrop/70KB/hystart/none/model-quic",
            "taildrop/70KB/slow-start/none/model-tcp",
            "taildrop/70KB/hystart/none/model-tcp"
        ]
    );
    // A transport is one of the others', too.
    assert_eq!(two.settings().len(), 2);
    assert!((0..5).all(|rep| one.run_seed(rep) == two.run_seed(rep)));
}

#[test]
fn a_single_text_is_a_list_of_one_and_both_are_two() {
    let text = |transport: &str| {
        format!("{BASE}scheme = [\"slow-start\"]\ntransport = {transport}\navoidance = [\"reno\", \"cubic\"]\nreps = 1")
    };
    let names = |transport: &str| {
        let plan = Scenario::from_text(&text(transport)).unwrap().plan(Path::new(".")).unwrap();
        plan.transports.iter().map(|one| one.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("\"model-tcp\""), ["model-tcp"]);
    assert_eq!(names("[\"model-tcp\"]"), ["model-tcp"]);
    assert_eq!(names("[\"model-tcp\", \"model-quic\"]"), ["model-tcp", "model-quic"]);
    let refused = |transport: &str| {
        let read = Scenario::from_text(&text(transport)).map_err(|error| error.to_string());
        read.and_then(|scenario| scenario.plan(Path::new(".")).map_err(|error| error.to_string())).unwrap_err()
    };
    assert!(refused("[]").contains("at least one is needed"), "{}", refused("[]"));
    assert!(refused("3").contains("expected a text, or several in brackets"), "{}", refused("3"));
    let twice = refused("[\"model-tcp\", \"model-tcp\"]");
    assert!(twice.contains("transport `model-tcp`: given twice"), "{twice}");
    // What is stored means the same, and one stays a text.
    let scenario = Scenario::from_text(&text("\"model-tcp\"")).unwrap();
    let stored = toml::to_string(&scenario).unwrap();
    assert!(stored.contains("transport = \"model-tcp\"") && stored.contains("avoidance = [\"reno\", \"cubic\"]"));
    assert_eq!(Scenario::from_text(&stored).unwrap(), scenario);
    #[cfg(feature = "quic")]
    {
        assert_eq!(names("\"both\""), ["model-quic", "quic"]);
        assert_eq!(names("[\"Both\", \"model-tcp\"]"), ["model-quic", "quic", "model-tcp"]);
        assert!(refused("[\"both\", \"quic\"]").contains("transport `quic`: given twice"));
    }
    #[cfg(not(feature = "quic"))]
    assert!(refused("\"both\"").contains("built without the feature `quic`"));
}

#[test]
fn each_transport_completes_schemes_avoidance_and_competitors() {
    let plan = plan(
        "scheme = [\"hystart\", \"stack\"]\ncompetitor = [\"bulk\"]\ntransport = [\"model-quic\", \"model-tcp\"]\nreps = 1",
    );
    let transports = &plan.transports;
    for (place, transport) in transports.iter().enumerate() {
        let profile = &transport.profile;
        assert_eq!(plan.schemes[1].on(place), &profile.resolved(profile.startup.clone()), "{}", transport.text);
        assert_eq!(plan.competitors[0].on(place).avoidance(), Some(&profile.avoidance), "{}", transport.text);
    }
    assert_ne!(plan.schemes[0].on(0), plan.schemes[0].on(1));
    for cell in plan.cells() {
        let own = &transports[cell.transport].profile.avoidance;
        assert_eq!(&plan.avoidance_of(&cell).value, own, "{}", plan.id(&cell));
        assert_eq!(plan.profile(&cell), transports[cell.transport].profile);
    }
}

/// An experiment with several transports and avoidances has the rows of the experiments with one of each.
#[test]
fn a_cell_runs_as_if_it_were_alone() {
    let text = |transport: &str, avoidance: &str| {
        plan(&format!(
            "scheme = [\"slow-start\", \"hystart\"]\ncompetitor = [\"none\", \"bulk\"]\nreps = 2\n\
             transport = [{transport}]\navoidance = [{avoidance}]"
        ))
    };
    let (transports, avoidances) = (["model-tcp", "model-quic:pacing=none"], ["cubic", "reno"]);
    let quoted = |names: [&str; 2]| format!("\"{}\", \"{}\"", names[0], names[1]);
    let together = text(&quoted(transports), &quoted(avoidances));
    let all = execute(&together, 2, &[], |_| {}).unwrap();
    for (transport, name) in transports.iter().enumerate() {
        for (avoidance, choice) in avoidances.iter().enumerate() {
            let alone = text(&format!("\"{name}\""), &format!("\"{choice}\""));
            let rows = execute(&alone, 2, &[], |_| {}).unwrap();
            let of = |cell: &&Cell| (cell.transport, cell.avoidance) == (transport, avoidance);
            let cells: Vec<String> = together.cells().iter().filter(of).map(|cell| together.id(cell)).collect();
            let same: Vec<Row> = all
                .iter()
                .filter(|row| cells.contains(&row.cell))
                .map(|row| Row {
                    cell: row.cell.replace(&format!("/{name}"), "").replace(&format!("/avoidance={choice}"), ""),
                    ..row.clone()
                })
                .collect();
            assert_eq!(same, rows, "{name} {choice}");
        }
    }
}

#[test]
fn schemes_are_compared_within_a_transport_and_transports_only_alone() {
    let pair = |cell: &str, baseline: Option<&str>| {
        (format!("taildrop/70KB/{cell}"), baseline.map(|one| format!("taildrop/70KB/{one}")))
    };
    let transports = "transport = [\"model-quic\", \"model-tcp\"]\n";
    assert_eq!(
        baselines(&plan(&format!("{transports}scheme = [\"slow-start\", \"hystart\"]"))),
        [
            pair("slow-start/none/model-quic", None),
            pair("hystart/none/model-quic", Some("slow-start/none/model-quic")),
            pair("slow-start/none/model-tcp", None),
            pair("hystart/none/model-tcp", Some("slow-start/none/model-tcp")),
        ]
    );
    assert_eq!(
        baselines(&plan(&format!("{transports}scheme = [\"slow-start\"]"))),
        [
            pair("slow-start/none/model-quic", None),
            pair("slow-start/none/model-tcp", Some("slow-start/none/model-quic"))
        ]
    );
}

#[test]
fn avoidances_are_compared_for_each_queue_discipline() {
    let plan =
        plan("scheme = [\"slow-start\"]\naqm = [\"codel\", \"pie\"]\navoidance = [\"cubic\", \"cubic:beta_ecn=0.85\"]");
    assert_eq!(plan.compared().map(Axis::name), Some("avoidance"));
    let last = plan.cells()[3];
    assert!(plan.id(&last).ends_with("/pie/70KB/slow-start/none/avoidance=cubic:beta_ecn=0.85"), "{}", plan.id(&last));
    assert_eq!(plan.baseline_of(&last), Some(plan.cells()[2]));
    assert_ne!(plan.avoidance_of(&plan.cells()[2]).value, plan.avoidance_of(&last).value);
}

#[test]
fn a_scheme_with_its_own_avoidance_is_refused_beside_several() {
    let two = "scheme = [\"slow-start\", \"slow-start:avoidance=bbr\"]\navoidance";
    assert!(read(&format!("{two} = \"reno\"")).is_ok());
    let error = read(&format!("{two} = [\"reno\", \"cubic\"]")).unwrap_err();
    assert_eq!((&*error.field, &*error.value), ("scheme", "slow-start:avoidance=bbr"));
    assert!(error.problem.contains("names its own congestion avoidance, and several are compared"), "{error}");
}

#[test]
fn what_one_transport_cannot_run_names_it() {
    // BBR probes by itself, and HyStart is only a rule for leaving slow start. One profile comes with BBR.
    let problem = |more: &str| read(more).unwrap_err();
    let transports = "transport = [\"model-tcp\", \"model-quic:payload=1000\"]\n";
    let error = problem(&format!("{transports}scheme = [\"hystrat\"]"));
    assert!(!error.problem.contains("with transport"), "{error}");
    let error = problem(&format!("{transports}scheme = [\"slow-start\"]\naqm = [\"oracle\"]"));
    assert_eq!((&*error.field, &*error.value), ("transport", "model-quic:payload=1000"));
    let sessions = "scheme = [\"slow-start\"]\napplication = [\"web:sessions=5\"]";
    let text = format!("link = [\"rate=10mbit,rtt=40ms\"]\n{transports}{sessions}");
    let error = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap_err();
    assert!(error.field == "transport" && error.problem.contains("the same payload"), "{error}");
    #[cfg(feature = "quic")]
    {
        let error = problem("transport = \"both\"\nscheme = [\"slow-start\", \"stack\"]");
        assert_eq!((&*error.field, &*error.value), ("scheme", "stack"));
        assert!(error.problem.starts_with("with transport quic: the real stack runs the controller"), "{error}");
    }
}
