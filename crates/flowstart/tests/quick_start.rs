//! Quick-Start on sockets: a server that asks, routers of the path, and a client that answers.
//!
//! Options that Linux does not know need `CAP_NET_RAW`. Without it only the refusals are tested.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod server;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command as Program;
use std::sync::Arc;

use flowstart_core::quick_start::nonce::Nonce;
use flowstart_core::quick_start::rate::RateCode;
use flowstart_core::quick_start::wire::{IpOption, IpVersion};
use flowstart_datagram::{Header, receive, send, show_headers, try_sending};
use predicates::str::contains;
use serde_json::Value;
use server::{Relay, Server, certificate, connected, events, field, flowstart, request};

/// The option of a request for 40 kbit/s * 2^15, without a nonce.
const REQUEST: IpOption = IpOption::RateRequest { rate: RateCode::MAX, ttl: 64, nonce: Nonce::from_bits(0) };

/// Addresses of this host, with any free port.
const OWN: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

/// The addresses of this host that there are.
fn own_addresses() -> Vec<&'static str> {
    let (there, missing): (Vec<&str>, Vec<&str>) = OWN.iter().partition(|own| UdpSocket::bind(own).is_ok());
    assert!(missing.is_empty() || std::env::var("CI").as_deref() != Ok("true"), "CI=true requires {missing:?}");
    if !missing.is_empty() {
        println!("skipped: this host has no {missing:?}");
    }
    there
}

/// Whether options can be sent, and so whether there is anything to test.
fn may_ask() -> bool {
    let may = try_sending(IpAddr::from(Ipv4Addr::LOCALHOST), &REQUEST.emit(IpVersion::V4)).is_ok();
    if !may {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI=true requires this test, which needs CAP_NET_RAW");
        println!("skipped: this process has no CAP_NET_RAW");
    }
    may
}

/// A server that asks, with qlog files in this folder.
fn server(folder: &Path, scheme: &str) -> Server {
    server_at(OWN[0], folder, scheme)
}

/// One that listens at this address.
fn server_at(listen: &str, folder: &Path, scheme: &str) -> Server {
    let options = ["--startup", scheme, "--quick-start", "--qlog", folder.to_str().unwrap()];
    Server::self_signed_at(listen, &options)
}

/// Gets it from this address.
fn got(address: &str, path: &str, options: &[&str]) -> Value {
    let url = format!("https://{address}{path}");
    let got = flowstart().args(["get", "--insecure", "--json", "--timeout", "60s", &url]).args(options).assert();
    serde_json::from_slice(&got.success().get_output().stdout).unwrap()
}

/// How many responses came to this.
fn responses(server: &Server, result: &str) -> u64 {
    server.metric(&format!("flowstart_quick_start_responses_total{{result=\"{result}\"}}"))
}

/// What the routers stated, of the only launch in these qlog files.
fn finding(folder: &Path) -> Value {
    let launches = events(folder, "flowstart:launch");
    assert_eq!(launches.len(), 1, "{launches:?}");
    let sources = launches[0]["sources"].as_array().unwrap();
    sources.iter().find(|one| one["name"] == "quick-start").cloned().unwrap_or(Value::Null)
}

/// The window of the only launch.
fn launched(folder: &Path) -> u64 {
    events(folder, "flowstart:launch")[0]["cwnd_bytes"].as_u64().unwrap()
}

/// A path to `server` that changes the options and the TTL of all that goes to a client: `change` gets them and how
/// many options this client has got. Where clients connect.
fn changing(
    server: &Server,
    change: impl Fn(&[u8], u8, usize) -> (Vec<u8>, u8) + Clone + Send + Sync + 'static,
) -> String {
    let server: SocketAddr = server.url.strip_prefix("https://").unwrap().parse().unwrap();
    let own = SocketAddr::new(server.ip(), 0);
    let near = Arc::new(UdpSocket::bind(own).unwrap());
    let address = near.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut clients: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
        let mut packet = [0; 2000];
        while let Ok((length, from)) = near.recv_from(&mut packet) {
            let far = clients.entry(from).or_insert_with(|| {
                let far = Arc::new(UdpSocket::bind(own).unwrap());
                far.connect(server).unwrap();
                show_headers(&*far, true).unwrap();
                let (far_end, near, change) = (far.clone(), near.clone(), change.clone());
                std::thread::spawn(move || {
                    let (mut packet, mut number) = ([0; 2000], 0);
                    while let Ok(came) = receive(&*far_end, &mut packet) {
                        let (options, ttl) = change(came.options(), came.ttl.unwrap(), number);
                        number += usize::from(!options.is_empty());
                        let header = Header { options: &options, ttl, ..Header::default() };
                        send(&*near, &packet[..came.length], Some(from), &header).unwrap();
                    }
                });
                far
            });
            drop(far.send(&packet[..length]));
        }
    });
    address
}

#[test]
fn what_a_router_approves_is_the_launch_and_is_reported_to_it() {
    if !may_ask() {
        return;
    }
    let own = own_addresses();
    // A relay's two sides may be of different families.
    for (servers, clients) in own.iter().zip(&own).chain(own.iter().zip(own.iter().rev())) {
        what_a_router_approves_is_the_launch(servers, clients);
    }
}

fn what_a_router_approves_is_the_launch(servers: &str, clients: &str) {
    let folder = tempfile::tempdir().unwrap();
    let server = server_at(servers, folder.path(), "quick-start:header=28B");
    let link = ["relay", "--link", "rate=100mbit,rtt=40ms,quick_start=target"];
    let relay = Relay::start_at(clients, &server.url, &link);
    let told = got(&relay.address, "/generate/1MB", &["--quick-start"]);
    // 90 % of 100 Mbit/s are 90; 40 kbit/s * 2^11 = 81.92 Mbit/s is the next rate below.
    let seen = &told["quick_start"];
    assert_eq!((&seen["arrived_bps"], &seen["malformed"]), (&81_920_000.into(), &0.into()), "{told}");
    server.wait_for("flowstart_sources_total{source=\"quick-start\",verdict=\"used\"} 1");
    assert_eq!(responses(&server, "approved"), 1);
    let sent = |server: &Server| {
        ["requests_sent", "reports_sent", "unsent"]
            .map(|name| server.metric(&format!("flowstart_quick_start_{name}_total")))
    };
    assert_eq!(sent(&server), [1, 1, 0]);
    let finding = finding(folder.path());
    assert_eq!((&finding["verdict"], &finding["value"]), (&"used".into(), &81_920_000.into()), "{finding}");
    // Equation (1): 10.24 MB/s * 40 ms * 1200 / 1228 = 400,260 bytes, more when this host adds to the round trip; in
    // any case whole packets at less than 81.92 Mbit/s * 1200 / 1228 = 80.05 Mbit/s.
    let launch = &events(folder.path(), "flowstart:launch")[0];
    let rate = launch["pacing_rate_bps"].as_u64().unwrap();
    assert!(launched(folder.path()) >= 399_600 && (79_000_000..=80_052_118).contains(&rate), "{launch}");
    // A client that does not answer is not asked about, and starts slowly.
    let told = got(&relay.address, "/generate/100KB", &[]);
    assert_eq!(told["quick_start"], Value::Null);
    server.wait_for("flowstart_launches_total{scheme=\"quick-start:header=28B\"} 2");
    assert_eq!(sent(&server), [1, 1, 0]);
    let smallest = events(folder.path(), "flowstart:launch").iter().filter_map(|one| one["cwnd_bytes"].as_u64()).min();
    assert_eq!(smallest, Some(12_000));
    let counted = &relay.end()["quick_start"];
    for (name, number) in
        [("requests", 1), ("reduced", 1), ("denied", 0), ("reports", 1), ("removed", 0), ("malformed", 0)]
    {
        assert_eq!(counted[name], number, "{name}: {counted}");
    }
}

#[test]
fn without_a_router_all_of_them_have_approved_what_was_asked_for() {
    if !may_ask() {
        return;
    }
    // A socket of IPv6 may have clients of IPv4, too.
    for (listen, client) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "[::1]"), ("[::]:0", "127.0.0.1")] {
        if UdpSocket::bind(listen).is_err() {
            println!("skipped: this host has no {listen}");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let server = server_at(listen, folder.path(), "quick-start:request=fixed,rate=20mbit");
        let port = server.url.rsplit(':').next().unwrap();
        // 40 kbit/s * 2^9 is the first rate at or above 20 Mbit/s.
        let told = got(&format!("{client}:{port}"), "/generate/1MB", &["--quick-start"]);
        assert_eq!(told["quick_start"]["arrived_bps"], 20_480_000, "{listen}");
        server.wait_for("flowstart_quick_start_responses_total{result=\"approved\"} 1");
    }
}

#[test]
fn each_kind_of_router_leads_to_its_response_and_the_transfer_goes_on() {
    if !may_ask() {
        return;
    }
    let nothing = Value::Null;
    for (router, arrived, result, verdict) in [
        (",quick_start=approve-all", Value::from(1_310_720_000_u64), "approved", "used"),
        (",quick_start=extreme", Value::from(10_240_000), "approved", "used"),
        (",quick_start=target,qs_bandwidth=500kbit", Value::from(320_000), "approved", "unused"),
        (",quick_start=zero", Value::from(0), "denied", "refused"),
        (",quick_start=ignore", Value::from(1_310_720_000_u64), "ttl-diff", "refused"),
        (",quick_start=target,qs_routers=0", Value::from(1_310_720_000_u64), "ttl-diff", "refused"),
        (",quick_start=delete", nothing.clone(), "none", "missing"),
        // The first sign of congestion ends the wait for what sources state.
        (",quick_start=drop", nothing.clone(), "none", ""),
        ("", nothing.clone(), "none", "missing"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let server = server(folder.path(), "quick-start");
        let link = format!("rate=20mbit,rtt=40ms,buffer=500ms{router}");
        let relay = Relay::start(&server.url, &["relay", "--link", &link]);
        let told = got(&relay.address, "/generate/200KB", &["--quick-start"]);
        assert_eq!(
            (&told["bytes"], &told["quick_start"]["arrived_bps"]),
            (&200_000.into(), &arrived),
            "{router}: {told}"
        );
        server.wait_for("flowstart_launches_total{scheme=\"quick-start\"} 1");
        assert_eq!(responses(&server, result), 1, "{router}");
        let finding = finding(folder.path());
        assert_eq!(finding["verdict"].as_str().unwrap_or_default(), verdict, "{router}: {finding}");
        if verdict != "used" {
            assert_eq!(launched(folder.path()), 12_000, "{router}");
        }
        // The datagram that was dropped is repeated after a timeout, without a request.
        let late = told["handshake_ms"].as_f64() > Some(900.0);
        assert!(late || !router.ends_with("drop"), "{told}");
        assert_eq!(server.metric("flowstart_quick_start_requests_sent_total"), 1, "{router}");
    }
}

#[test]
fn whatever_stands_in_the_options_the_transfer_goes_on() {
    if !may_ask() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), "quick-start");
    // An option as it is, in the options of a header.
    type Forged = fn(&[u8]) -> Vec<u8>;
    let forms: [(Forged, &str, u64); 11] = [
        (|own| own.to_vec(), "approved", 0),
        (|own| [&[1, 1, 148, 4, 0, 0], own].concat(), "approved", 0),
        (|own| [own, own].concat(), "none", 1),
        (|_| vec![25, 4, 0x0f, 64], "none", 1),
        (|own| [&[25, 12][..], &own[2..], &[0; 4]].concat(), "none", 1),
        (|own| [&own[..2], &[0x30], &own[3..]].concat(), "none", 1),
        (|own| [&own[..2], &[0x8f, 0], &own[4..]].concat(), "none", 1),
        (|_| vec![7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0], "none", 0),
        // A router that reduces and does not know its part of the nonce, one that does not count, and one that lies.
        (
            |own| [&own[..2], &[0x0b, own[3]], &own[4..].iter().map(|byte| !byte).collect::<Vec<_>>()].concat(),
            "nonce",
            0,
        ),
        (|own| [&own[..3], &[own[3].wrapping_sub(1)], &own[4..]].concat(), "ttl-diff", 0),
        (|own| [&own[..2], &[0, 0], &own[4..]].concat(), "denied", 0),
    ];
    for (place, (forge, result, malformed)) in forms.into_iter().enumerate() {
        let before = responses(&server, result);
        // Only the first datagram of a client is changed, so its report passes as it is.
        let address = changing(&server, move |options, ttl, number| {
            let changes = !options.is_empty() && number == 0;
            (if changes { forge(options) } else { options.to_vec() }, ttl)
        });
        let told = got(&address, "/generate/200KB", &["--quick-start"]);
        assert_eq!(
            (&told["bytes"], &told["quick_start"]["malformed"]),
            (&200_000.into(), &malformed.into()),
            "form {place}: {told}"
        );
        assert_eq!(responses(&server, result), before + 1, "form {place}: {result}");
    }
    // A TTL that is lower than the option says, and options on every datagram: requests for more, and no report.
    let address = changing(&server, |options, ttl, _| (options.to_vec(), ttl - 7));
    got(&address, "/generate/200KB", &["--quick-start"]);
    assert_eq!(responses(&server, "ttl-diff"), 2);
    let address = changing(&server, |options, ttl, number| {
        (if number == 0 { options.to_vec() } else { REQUEST.emit(IpVersion::V4).to_vec() }, ttl)
    });
    assert_eq!(got(&address, "/generate/200KB", &["--quick-start"])["bytes"], 200_000);
    let all: u64 = ["approved", "denied", "nonce", "ttl-diff", "none"].iter().map(|one| responses(&server, one)).sum();
    assert_eq!(all, 13, "each client is counted once");
}

#[test]
fn whatever_stands_in_a_hop_by_hop_header_the_transfer_goes_on() {
    if !may_ask() || !own_addresses().contains(&OWN[1]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = server_at(OWN[1], folder.path(), "quick-start");
    /// The options of a header, in place of this option.
    type Forged = fn(&[u8]) -> Vec<u8>;
    let forms: [(Forged, &str, u64); 10] = [
        (|own| own.to_vec(), "approved", 0),
        (|own| [&[0, 1, 0, 5, 2, 0, 0], own].concat(), "approved", 0),
        (|own| [own, own].concat(), "none", 1),
        (|_| vec![0x26, 2, 0x0f, 64], "none", 1),
        (|own| [&[0x26, 10][..], &own[2..], &[0; 4]].concat(), "none", 1),
        (|own| [&own[..2], &[0x30], &own[3..]].concat(), "none", 1),
        (|own| [&own[..2], &[0x8f, 0], &own[4..]].concat(), "none", 1),
        // The type of the option in IPv4 is that of another one here.
        (|own| [&[25, 8], &own[2..], &[0, 0]].concat(), "none", 0),
        (|own| [&own[..3], &[own[3].wrapping_sub(1)], &own[4..]].concat(), "ttl-diff", 0),
        (|own| [&own[..2], &[0, 0], &own[4..]].concat(), "denied", 0),
    ];
    for (place, (forge, result, malformed)) in forms.into_iter().enumerate() {
        let before = responses(&server, result);
        // What arrives is filled up.
        let address = changing(&server, move |options, ttl, number| {
            let changes = !options.is_empty() && number == 0;
            (if changes { forge(&options[..8]) } else { options.to_vec() }, ttl)
        });
        let told = got(&address, "/generate/200KB", &["--quick-start"]);
        assert_eq!(
            (&told["bytes"], &told["quick_start"]["malformed"]),
            (&200_000.into(), &malformed.into()),
            "form {place}: {told}"
        );
        assert_eq!(responses(&server, result), before + 1, "form {place}: {result}");
    }
    // A hop limit that is lower than the option says.
    let address = changing(&server, |options, ttl, _| (options.to_vec(), ttl - 7));
    got(&address, "/generate/200KB", &["--quick-start"]);
    assert_eq!(responses(&server, "ttl-diff"), 2);
}

/// The transport parameter of a client that answers.
const ANSWERS: [u8; 5] = [0x80, 0, 0x4b, 0x19, 0];

#[test]
fn responses_that_are_none_too_many_or_that_nobody_asked_for_are_counted_and_ignored() {
    if !may_ask() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let scheme = "quick-start:request=fixed,rate=1mbit";
    let server = Server::start(&["--cert", &cert, "--key", &key, "--startup", scheme, "--quick-start"]);
    let respond = |encoded: &[u8], path: &str, fields: &[&[u8]]| {
        let answered = connected(&server, &cert, encoded, 1 << 20, async |connection| {
            for value in fields {
                let (mut stream, mut answer) = connection.open_bi().await.unwrap();
                stream.write_all(&request(path, value)).await.unwrap();
                stream.finish().unwrap();
                answer.read_to_end(100_000).await.unwrap();
            }
        });
        answered.unwrap();
    };
    let name = "flowstart-quick-start-response";
    let response = |value: &str| field(name, value);
    let twice = [response("1b08010000000000"), response("1b08010000000000")].concat();
    for wrong in
        ["", "1b", "190801000000000", "1908010000000000", "1b07010000000000", "1b0801000000000g", "1b080100000000000"]
    {
        respond(&ANSWERS, "/generate/1KB", &[&response(wrong)]);
    }
    respond(&ANSWERS, "/generate/1KB", &[&twice]);
    assert_eq!(responses(&server, "malformed"), 8);
    // 1 Mbit/s is the code 5; the highest one is 15. A rate of 0 is a refusal.
    respond(
        &ANSWERS,
        "/generate/1KB",
        &[&response("1b080f0000000000"), &response("1b08000000000000"), &response("1b")],
    );
    respond(&ANSWERS, "/generate/1KB", &[&response("1b08000000000000")]);
    for (result, count) in [("too-high", 1), ("repeated", 2), ("denied", 1)] {
        assert_eq!(responses(&server, result), count, "{result}");
    }
    // An answer that needs a launch comes first, and the response after it.
    respond(&ANSWERS, "/generate/60KB", &[&[], &response("1b08000000000000")]);
    assert_eq!((responses(&server, "none"), responses(&server, "late")), (1, 1));
    // A client that does not say that it answers, and a transport parameter that is not empty.
    respond(&[], "/generate/1KB", &[&response("1b08000000000000")]);
    respond(&[0x80, 0, 0x4b, 0x19, 1, 7], "/generate/1KB", &[&response("1b08000000000000")]);
    assert_eq!((responses(&server, "unasked"), responses(&server, "approved")), (2, 0));
}

#[test]
fn an_approval_of_which_nobody_made_use_in_time_is_too_old() {
    if !may_ask() {
        return;
    }
    let server = Server::self_signed(&["--startup", "quick-start", "--quick-start"]);
    let relay = Relay::start(&server.url, &["relay", "--link", "rate=100mbit,rtt=20ms,buffer=1s,quick_start=target"]);
    let late = ["--quick-start", "--connections", "1", "--hold", "3s"];
    assert_eq!(got(&relay.address, "/generate/100KB", &late)["bytes"], 100_000);
    assert_eq!((responses(&server, "old"), responses(&server, "approved")), (1, 0));
}

#[test]
fn who_may_not_send_options_is_refused_at_the_start_and_told_what_is_missing() {
    let program = assert_cmd::cargo::cargo_bin("flowstart");
    let without = |arguments: &[&str]| {
        let drops = ["--bounding-set", "-net_raw", "--inh-caps", "-net_raw"];
        let mut command = Program::new(if may_ask() { Path::new("setpriv") } else { &program });
        if may_ask() {
            command.args(drops).arg(&program);
        }
        let output = command.args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for own in own_addresses() {
        let serve = ["serve", "--self-signed", "--startup", "quick-start", "--quick-start", "--listen", own];
        assert!(without(&serve).contains(
            "--quick-start: a request is an option of IP, and to send options of IP this process needs CAP_NET_RAW"
        ));
        let relay = ["relay", "--link", "dsl-fast,quick_start=target", "--listen", own, "--to", "127.0.0.1:9"];
        assert!(without(&relay).contains("to send options of IP this process needs CAP_NET_RAW"));
    }
}

#[test]
fn what_sockets_cannot_do_is_refused_with_what_is_allowed() {
    let refused = |arguments: &[&str], code, says: &str| {
        flowstart().args(arguments).assert().code(code).stderr(contains(says));
    };
    let serve = ["serve", "--self-signed", "--listen", "127.0.0.1:0", "--startup"];
    let of_server = |options: &[&str], says| refused(&[&serve, options].concat(), 2, says);
    of_server(&["quick-start"], "use --quick-start");
    of_server(&["quick-start:after_idle=2s", "--quick-start"], "its connections ask once, with the handshake");
    let perf = ["perf", "server", "--self-signed", "--listen", "127.0.0.1:0", "--startup", "quick-start"];
    refused(&perf, 2, "needs approvals of routers, which this command does not give");
    of_server(&["quick-start:granularity=1ms", "--quick-start"], "granularity is not for noq");
    of_server(&["quick-start:room=connection", "--quick-start"], "room=connection is not for noq");
    if may_ask() {
        of_server(&["quick-start:passes=2", "--quick-start"], "passes is 1");
        of_server(&["quick-start:encoding=linear", "--quick-start"], "encoding is exponential");
    }
}

#[test]
fn many_connections_each_have_their_own_request_beside_scone() {
    if !may_ask() {
        return;
    }
    let server = Server::self_signed(&["--startup", "quick-start", "--quick-start", "--scone", "--early-data"]);
    let link = "rate=100mbit,rtt=20ms,buffer=1s,quick_start=approve-all,scone=1";
    let relay = Relay::start(&server.url, &["relay", "--link", link]);
    let both = ["--quick-start", "--scone"];
    let told = got(&relay.address, "/generate/100KB", &[&both[..], &["--connections", "8"]].concat());
    assert_eq!((&told["failed"], &told["advised"]), (&0.into(), &8.into()), "{told}");
    assert_eq!((responses(&server, "approved"), server.metric("flowstart_quick_start_requests_sent_total")), (8, 8));
    // A request in a client's first packet comes before the server's request to the routers.
    let url = format!("https://{}/generate/100KB", relay.address);
    let mut again = flowstart();
    again.args(["get", "--insecure", "--json", "--repeat", "2", &url]).args(both);
    let output = again.assert().success().get_output().stdout.clone();
    let told: Vec<Value> =
        String::from_utf8(output).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&told[1]["early_data"], &told[1]["bytes"]), (&"accepted".into(), &100_000.into()), "{told:?}");
    assert_eq!((responses(&server, "approved"), responses(&server, "none")), (9, 1));
}
