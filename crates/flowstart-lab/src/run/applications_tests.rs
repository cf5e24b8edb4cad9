//! Measured flows that carry applications: what their rows say.

use std::path::Path;

use crate::results::flows::{Row, write_csv};
use crate::study::scenario::Scenario;

fn rows(application: &str, more: &str) -> Vec<Row> {
    let text = format!(
        "link = [\"rate=20mbit,rtt=50ms,buffer=1bdp\"]\napplication = [{application}]\nreps = 1\n\
         scheme = [\"slow-start\", \"blitzstart\"]\navoidance = \"cubic\"\n{more}"
    );
    let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
    crate::experiment::execute(&plan, 1, &[], |_| {}).unwrap()
}

fn page(http: &str) -> String {
    format!("\"page:objects=12,size=20KB,waves=2{http}\"")
}

const TCP: &str = "transport = \"model-tcp:profile=tcp-linux\"";

#[test]
fn a_page_of_http_2_is_that_of_one_connection_of_tcp_and_http_3_that_of_quic() {
    let same = |version: &Row, plain: &Row| {
        (version.fct_ms, version.retransmitted_bytes, version.mean_object_fct_ms)
            == (plain.fct_ms, plain.retransmitted_bytes, plain.mean_object_fct_ms)
    };
    let (two, plain) = (rows(&page(",http=2"), TCP), rows(&page(""), TCP));
    assert!(two.iter().zip(&plain).all(|(two, plain)| same(two, plain)));
    let (three, quic) = (rows(&page(",http=3"), TCP), rows(&page(""), "transport = \"model-quic\""));
    assert!(three.iter().zip(&quic).all(|(three, quic)| same(three, quic)));
    assert_eq!((plain[0].page_connections, two[0].page_connections), (None, Some(1.0)));
}

#[test]
fn connections_of_a_page_count_together() {
    let six = &rows(&page(",http=1.1"), &format!("{TCP}\ncompetitor = [\"cubic\"]"))[0];
    assert_eq!((six.size_bytes, six.page_connections), (480_000, Some(6.0)));
    assert!(six.object_queued_ms.unwrap() > 10.0 && six.object_blocked_ms == Some(0.0), "{six:?}");
    // A sixth of it would be one connection's.
    assert!(six.share.unwrap() > 0.15, "{six:?}");
    assert!(six.others_goodput_lost_mbit.unwrap() > 0.5, "{six:?}");
    let twelve = &rows(&page(",http=1.1,shards=2"), &format!("{TCP}\ncompetitor = [\"cubic\"]"))[0];
    assert_eq!(twelve.page_connections, Some(12.0));
    assert!(twelve.object_queued_ms < six.object_queued_ms);
}

#[test]
fn the_first_picture_comes_sooner_with_a_faster_start() {
    let rows = rows("\"video:count=6,rule=throughput\"", "link_options = \"noise=off\"");
    let [slow, fast] = &rows[..] else { panic!("{}", rows.len()) };
    assert!(fast.startup_delay_ms.unwrap() < slow.startup_delay_ms.unwrap() - 50.0, "{slow:?} {fast:?}");
    for row in &rows {
        assert!(row.fct_ms.unwrap() >= row.ideal_fct_ms, "{row:?}");
        assert_eq!((row.stalls, row.stalled_ms), (Some(0.0), Some(0.0)));
        // Six chunks of 4 s at the mean rate.
        let bytes = row.video_mbps.unwrap() * 6.0 * 4.0 / 8.0 * 1e6;
        assert!((bytes - row.size_bytes as f64).abs() < 10.0, "{row:?}");
    }
}

#[test]
fn columns_of_applications_exist_only_beside_them() {
    let header = |application: &str| {
        let mut out = Vec::new();
        write_csv(&rows(application, ""), &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().next().unwrap().to_owned()
    };
    assert!(header(&page("")).ends_with(",worst_object_fct_ms"));
    assert!(header(&page(",http=3")).ends_with(",object_blocked_ms,objects_blocked"));
    assert!(header("\"video:count=2\"").ends_with(",stalls,stalled_ms,video_mbps,rate_switches"));
}

#[test]
fn web_sessions_run_the_congestion_avoidance_of_their_scheme() {
    let text = "link = [\"lte\"]\napplication = [\"web:sessions=3,time=20s\"]\nreps = 1\n\
                scheme = [\"slow-start\", \"slow-start:avoidance=bbr\"]\ntransport = \"model-tcp\"\navoidance = \"cubic\"";
    let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
    let rows = crate::experiment::execute(&plan, 1, &[], |_| {}).unwrap();
    let last = |scheme: &str| {
        rows.iter().filter(|row| row.scheme == scheme).map(|row| row.fct_ms.unwrap_or(0.0)).fold(0.0, f64::max)
    };
    assert!((last("slow-start") - last("slow-start:avoidance=bbr")).abs() > 1.0, "{}", last("slow-start"));
}
