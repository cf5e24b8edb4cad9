//! A proxy at a satellite gateway: what it makes of TCP's transfers, and that its cells are like others.

use std::path::Path;

use flowstart_lab::experiment::execute;
use flowstart_lab::results::flows::Row;
use flowstart_lab::study::scenario::Scenario;

fn rows(more: &str) -> Vec<Row> {
    let text = format!(
        "link = [\"plain=geo\", \"one-box=geo,pep=integrated\", \"two-boxes=geo,pep=distributed\"]\n\
         scheme = [\"slow-start\"]\ntransport = \"model-tcp\"\nreps = 2\n{more}"
    );
    let plan = Scenario::from_text(&text).expect("a scenario").plan(Path::new(".")).expect("a plan");
    execute(&plan, 1, &[], |_| {}).expect("it runs")
}

fn fct(rows: &[Row], link: &str) -> f64 {
    let of_link: Vec<f64> = rows.iter().filter(|row| row.link == link).filter_map(|row| row.fct_ms).collect();
    assert!(!of_link.is_empty(), "{link}: {rows:?}");
    of_link.iter().sum::<f64>() / of_link.len() as f64
}

#[test]
fn a_proxy_saves_the_round_trips_of_slow_start_and_two_boxes_that_of_the_handshake() {
    let rows = rows("size = [\"2MB\"]\n");
    let [plain, one_box, two_boxes] = ["plain", "one-box", "two-boxes"].map(|link| fct(&rows, link));
    // Two round trips of 600 ms, and 2 MB at 144 Mbit/s: 1311 ms with the headers at least. Slow start has seven rounds
    // more. The server's slow start takes rounds of 30 ms.
    assert!(plain > 1311.0 + 6.0 * 600.0, "{plain}");
    assert!((1311.0..1311.0 + 7.0 * 30.0).contains(&one_box), "{one_box}");
    // The handshake with the box at home costs no round trip of the hop's 570 ms.
    assert!((560.0..580.0).contains(&(one_box - two_boxes)), "{one_box} {two_boxes}");
    for row in &rows {
        assert!(row.fct_ms >= Some(row.ideal_fct_ms) && row.status == "ok", "{row:?}");
        let most = if row.link == "plain" { f64::INFINITY } else { 60.0 };
        assert!(row.max_queue_delay_ms.is_some_and(|delay| delay < most), "{row:?}");
    }
}

#[test]
fn others_cross_the_link_without_the_proxy_and_their_harm_is_theirs() {
    let rows = rows("size = [\"200KB\"]\ncompetitor = [\"cbr:rate=20mbit\"]\nflows = 2\n");
    assert_eq!(rows.len(), 12);
    for row in &rows {
        // Unresponsive traffic on a link with room for all loses nothing; the servers' connections are not others.
        let lost = row.others_goodput_lost_mbit.expect("there are others");
        assert!(lost.abs() < 0.5, "{}: {lost}", row.link);
    }
}
