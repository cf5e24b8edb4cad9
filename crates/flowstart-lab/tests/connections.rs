//! Transfers over several connections: they carry the whole transfer, their counts are sums, and the transfer is
//! complete with the last of them.

use std::path::Path;

use flowstart_lab::experiment::execute;
use flowstart_lab::results::flows::Row;
use flowstart_lab::run::newcomers::Until;
use flowstart_lab::run::repetition::replay_until;
use flowstart_lab::study::plan::Plan;
use flowstart_lab::study::scenario::Scenario;
use flowstart_lab::trace::traced::trace;

fn plan(scheme: &str, size: &str, more: &str) -> Plan {
    let text = format!(
        "link = [\"rate=20mbit,rtt=80ms,buffer=1bdp\"]\nlink_options = \"access_jitter=1ms/1ms\"\n\
         size = [\"{size}\"]\nscheme = [{scheme}]\n{more}"
    );
    Scenario::from_text(&text).expect("a scenario").plan(Path::new(".")).expect("a plan")
}

fn rows(scheme: &str, size: &str, more: &str) -> Vec<Row> {
    execute(&plan(scheme, size, more), 1, &[], |_| {}).expect("it runs")
}

const TCP: &str = "transport = \"model-tcp\"\nreps = 2\n";

#[test]
fn one_connection_is_the_plain_scheme() {
    let rows = rows("\"slow-start\", \"slow-start:connections=1\"", "1MB", TCP);
    let numbers = |row: &Row| Row { cell: String::new(), scheme: String::new(), ..row.clone() };
    let (plain, one): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.scheme == "slow-start");
    assert_eq!(plain.len(), 2);
    assert_eq!(plain.into_iter().map(numbers).collect::<Vec<_>>(), one.into_iter().map(numbers).collect::<Vec<_>>());
}

#[test]
fn several_connections_carry_the_whole_transfer_and_its_counts_are_their_sums() {
    let plan = plan("\"slow-start:connections=6\"", "1000001B", "transport = \"model-tcp\"\nflows = 2\n");
    let run = trace(&plan, &plan.cells()[0], 0);
    assert_eq!((run.finished.flows.len(), run.outcomes.len()), (12, 2));
    for (outcome, flows) in run.outcomes.iter().zip(run.finished.flows.chunks(6)) {
        let records: Vec<_> = flows.iter().map(|flow| run.finished.world.record(*flow)).collect();
        assert_eq!((outcome.size.get(), outcome.record.delivered), (1_000_001, 1_000_001));
        let parts: Vec<u64> = records.iter().map(|record| record.delivered).collect();
        assert!(parts.iter().all(|part| [166_666, 166_667].contains(part)), "{parts:?}");
        assert_eq!(outcome.record.completed, records.iter().map(|record| record.completed).max().expect("six"));
        assert_eq!(outcome.record.dropped, records.iter().map(|record| record.dropped).sum::<u64>());
        assert!(outcome.share.is_some_and(|share| (0.3..0.7).contains(&share)), "{:?}", outcome.share);
    }
}

#[test]
fn more_connections_start_faster_and_take_more_from_others() {
    let schemes = "\"slow-start\", \"slow-start:connections=6\"";
    let fct = |rows: &[Row], scheme: &str| {
        let values: Vec<f64> = rows.iter().filter(|row| row.scheme == scheme).filter_map(|row| row.fct_ms).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let alone = rows(schemes, "200KB", TCP);
    // 140 packets: slow start takes rounds of 10, 20, 40 and the rest, six connections rounds of 60 and the rest.
    let saved = fct(&alone, "slow-start") - fct(&alone, "slow-start:connections=6");
    assert!((70.0..170.0).contains(&saved), "{saved}");
    let beside = rows(schemes, "2MB", &format!("{TCP}competitor = [\"bulk:cubic\"]\n"));
    let taken = |scheme: &str| {
        let of = beside.iter().filter(|row| row.scheme == scheme);
        of.filter_map(|row| row.share).sum::<f64>()
    };
    assert!(taken("slow-start:connections=6") > 1.05 * taken("slow-start"), "{beside:?}");
    // All six are the newcomer. What they carry is what the other flow loses, as with one connection: about 16 Mbit.
    // Each of them that counted among the others would take 2.7 Mbit off.
    let lost = |scheme: &str| {
        let of: Vec<f64> =
            beside.iter().filter(|row| row.scheme == scheme).filter_map(|row| row.others_goodput_lost_mbit).collect();
        assert_eq!(of.len(), 2, "{beside:?}");
        of.iter().sum::<f64>() / of.len() as f64
    };
    let (one, six) = (lost("slow-start"), lost("slow-start:connections=6"));
    assert!((15.0..20.0).contains(&one) && (one - six).abs() < 2.0, "{one} {six}");
}

#[test]
fn connections_move_together() {
    let more = "transport = \"model-tcp\"\nmove = [\"at=300ms,rate=5mbit,rtt=40ms\"]\n";
    let moved = rows("\"slow-start:connections=3\"", "3MB", more);
    let stays = rows("\"slow-start:connections=3\"", "3MB", "transport = \"model-tcp\"\n");
    // At 5 Mbit/s 3 MB take at least 4.8 s without what left before.
    assert!(moved[0].fct_ms > Some(3500.0) && stays[0].fct_ms < Some(2500.0), "{moved:?} {stays:?}");
}

#[cfg(feature = "quic")]
#[test]
fn real_connections_carry_a_transfer_together() {
    let rows = rows("\"slow-start\", \"slow-start:connections=4\"", "200KB", "transport = \"quic\"\nreps = 1\n");
    let fct: Vec<f64> = rows.iter().filter_map(|row| row.fct_ms).collect();
    assert!(rows.iter().all(|row| row.status == "ok" && row.size_bytes == 200_000), "{rows:?}");
    assert!(fct[1] < fct[0] - 50.0, "{fct:?}");
}

#[test]
fn a_transfer_over_several_connections_can_be_cut_off() {
    let plan = plan("\"slow-start:connections=6\"", "2MB", "transport = \"model-tcp\"\n");
    let until = Until::After(flowstart_core::time::Duration::from_millis(400));
    let finished = replay_until(&plan, &plan.cells()[0], 0, until);
    assert!(finished.flows.iter().all(|flow| finished.world.record(*flow).completed.is_none()));
}
