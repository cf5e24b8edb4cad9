//! What a client that lies, hurries or stops in the middle can do to `flowstart serve`.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod server;

use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command as Program, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;
use server::{Server, certificate, connected, connected_at, field, flowstart, request, trusting};

/// A peer makes too much work (RFC 9114, section 8.1).
const H3_EXCESSIVE_LOAD: u64 = 0x107;

/// Connects to the server with these bytes behind the transport parameters, and stays for a moment.
fn connect_with(server: &Server, cert: &str, encoded: &[u8]) -> Result<(), noq::ConnectionError> {
    let stays = async |connection: &noq::Connection| {
        tokio::time::sleep(Duration::from_millis(100)).await;
        connection.close_reason()
    };
    connected(server, cert, encoded, 1 << 20, stays)?.map_or(Ok(()), Err)
}

/// How the server ends a connection on which a client sends this on a stream of one or two directions, and no more.
fn end_after(options: &[&str], two_way: bool, sent: &[u8]) -> noq::ConnectionError {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let server = Server::start(&[&["--cert", &cert, "--key", &key], options].concat());
    let ended = connected(&server, &cert, &[], 1 << 20, async |connection| {
        let (mut stream, answer) = if two_way {
            let (stream, answer) = connection.open_bi().await.unwrap();
            (stream, Some(answer))
        } else {
            (connection.open_uni().await.unwrap(), None)
        };
        stream.write_all(sent).await.unwrap();
        let end = tokio::time::timeout(Duration::from_secs(20), connection.closed()).await;
        drop((stream, answer));
        end.expect("the server keeps the connection")
    });
    // Others are served.
    let get = ["get", "--ca", &cert, "--json", &format!("{}/generate/1MB", server.url)];
    flowstart().args(get).assert().success();
    ended.unwrap()
}

#[test]
fn a_frame_that_claims_to_be_large_ends_its_connection() {
    // HEADERS on a request's stream and SETTINGS on the control stream, of 2^40 bytes (RFC 9114, section 7.2).
    let size = [0xc0, 0, 1, 0, 0, 0, 0, 0];
    for (two_way, before) in [(true, &[1][..]), (false, &[0, 4])] {
        let end = end_after(&[], two_way, &[before, &size].concat());
        let noq::ConnectionError::ApplicationClosed(close) = &end else { panic!("{end}") };
        assert_eq!(close.error_code.into_inner(), H3_EXCESSIVE_LOAD, "{end}");
    }
}

#[test]
fn a_place_is_not_held_without_a_request() {
    // With neither a request nor a whole one, while the connection is kept alive.
    for (two_way, sent) in [(false, &[0, 4, 0][..]), (true, &[1, 40, 0, 0])] {
        let end = end_after(&["--idle", "300ms", "--stall", "300ms"], two_way, sent);
        assert!(matches!(end, noq::ConnectionError::ApplicationClosed(_)), "{end}");
    }
}

#[test]
fn an_answer_without_credit_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let server = Server::start(&["--cert", &cert, "--key", &key, "--stall", "300ms"]);
    let ask = |path: &'static str, credit| {
        let request = request(path, &[]);
        connected(&server, &cert, &[], credit, async |connection| {
            let (mut stream, mut answer) = connection.open_bi().await.unwrap();
            stream.write_all(&request).await.unwrap();
            stream.finish().unwrap();
            // Read only when the server has decided.
            let reset = tokio::time::timeout(Duration::from_secs(20), answer.received_reset()).await;
            reset.expect("the server keeps the answer").unwrap()
        })
        .unwrap()
    };
    // 40 bytes are enough for what precedes answers, and not for the head of one; 400 are enough for heads.
    for (path, credit) in [("/generate/1MB", 40), ("/nothing", 40), ("/generate/1MB", 400)] {
        assert!(ask(path, credit).is_some(), "{path}, {credit} bytes");
    }
}

#[test]
fn a_web_page_does_not_turn_the_kill_switch() {
    let server = Server::self_signed(&[]);
    let put = |fields: &str| server.request(&format!("PUT /kill-switch HTTP/1.1\r\n{fields}\r\n"));
    for fields in ["Host: evil.example:80\r\n", "", "Host: 127.0.0.1\r\nOrigin: https://evil.example\r\n"] {
        assert!(put(fields).starts_with("HTTP/1.1 403"), "{fields}");
    }
    server.wait_for("flowstart_kill_switch 0");
    for host in ["localhost:9100", "127.0.0.1", "[::1]:9100"] {
        assert!(put(&format!("Host: {host}\r\n")).ends_with("on\n"), "{host}");
    }
}

#[test]
fn nobody_holds_the_places_for_metrics() {
    let server = Server::self_signed(&[]);
    // 64 places, and requests whose answers nobody reads.
    let pipelines: Vec<_> =
        (0..64).map(|_| server.pipeline("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")).collect();
    assert!(server.http("PUT", "/kill-switch").ends_with("on\n"));
    drop(pipelines);
}

#[test]
fn hostile_transport_parameters_are_told_of_and_hurt_nobody() {
    // 0x4b17 as four bytes, then the length of the value.
    let parameter = |value: &[u8]| [&[0x80, 0, 0x4b, 0x17, value.len() as u8], value].concat();
    let good = parameter(&[2, 2, 0x80, 0x98, 0x96, 0x80, 0]);
    let fastest = [&[2, 0][..], &[0xff; 8], &[0]].concat();
    let cut_off = [0x80, 0, 0x4b, 0x17, 40, 1, 2, 3];
    let cases: [(Vec<u8>, bool, &str); 6] = [
        (parameter(&fastest), true, "hint has a rate of 4611686018427387903 bit/s; allowed is"),
        (parameter(&[2, 2]), true, "hint is cut off: 2 bytes"),
        (parameter(&[]), true, "hint is cut off: 0 bytes"),
        ([good.clone(), good].concat(), true, "transport parameter 0x4b17 comes more than once"),
        (parameter(&[9, 9, 9]), true, "hint has version 9"),
        // The host ends this connection (RFC 9000, section 7.4), and no other.
        (cut_off.to_vec(), false, "transport parameters are cut off in the one that begins at byte"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    for (encoded, accepted, message) in cases {
        let server = Server::start(&["--cert", &cert, "--key", &key, "--hint-policy", "accept"]);
        let other = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
            .args(["get", "--ca", &cert, "--json", &format!("{}/generate/20MB", server.url)])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        server.wait_for("flowstart_requests_total{status=\"200\"} 1");
        let connected = connect_with(&server, &cert, &encoded);
        assert_eq!(connected.is_ok(), accepted, "{message}: {connected:?}");
        let got: Value = serde_json::from_slice(&other.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(got["bytes"], 20_000_000, "{message}");
        let result = if accepted { ("accepted", 2) } else { ("failed", 1) };
        server.wait_for(&format!("flowstart_connection_attempts_total{{result=\"{}\"}} {}", result.0, result.1));
        let (status, told) = server.end();
        assert!(status.success() && told.starts_with(&format!("warning: 127.0.0.1: {message}")), "{message}: {told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn limits_refuse_or_ask_for_proof() {
    let retry = "flowstart_connection_attempts_total{result=\"retry\"}";
    for (option, result) in [("--max-connections", "full"), ("--max-per-prefix", "prefix")] {
        let full = Server::self_signed(&[option, "1"]);
        let mut holder = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
            .args(["get", "--insecure", "--hold", "100s", "--connections", "1", &format!("{}/generate/1KB", full.url)])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        full.wait_for("flowstart_connections_active 1");
        // The last place is for who proves its address.
        assert_eq!(full.metric(retry), 1, "{option}");
        full.get("/generate/1KB").assert().code(1);
        full.wait_for(&format!("flowstart_connection_attempts_total{{result=\"{result}\"}} 1"));
        holder.kill().unwrap();
        holder.wait().unwrap();
    }

    let rate = Server::self_signed(&["--max-rate", "1"]);
    rate.timings("/generate/1KB");
    // So is the last connection of a second.
    assert_eq!(rate.metric(retry), 1);
    rate.get("/generate/1KB").assert().code(1);
    rate.wait_for("flowstart_connection_attempts_total{result=\"rate\"} 1");

    // With a limit of none every client has to prove its address, and can.
    let proof = Server::self_signed(&["--max-handshakes", "0"]);
    assert_eq!(proof.timings("/generate/1KB")["bytes"], 1000);
    proof.wait_for("flowstart_connection_attempts_total{result=\"retry\"} 1");
}

#[test]
fn a_flood_of_half_open_handshakes_ends_in_retry_and_others_are_served() {
    let server = Server::self_signed(&["--max-handshakes", "5"]);
    let address = server.url.strip_prefix("https://").unwrap().to_owned();
    // Clients that send their first packets and die.
    let mut clients: Vec<Child> = Vec::new();
    for _ in 0..5 {
        let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}/", relay.local_addr().unwrap());
        let client = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
            .args(["get", "--insecure", &url])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        clients.push(client);
        let mut packet = [0; 2000];
        let length = relay.recv(&mut packet).unwrap();
        relay.send_to(&packet[..length], &address).unwrap();
    }
    assert_eq!(server.timings("/generate/1KB")["bytes"], 1000);
    server.wait_for("flowstart_connection_attempts_total{result=\"retry\"} 1");
    for mut client in clients {
        client.kill().unwrap();
        client.wait().unwrap();
    }
}

#[test]
fn garbage_from_the_network_harms_nobody() {
    let server = Server::self_signed(&[]);
    let address = server.url.strip_prefix("https://").unwrap().to_owned();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in 0..1400_usize {
        let mut packet: Vec<u8> = (0..length).map(|place| (place * 31 + length) as u8).collect();
        if let Some(first) = packet.first_mut() {
            *first |= if length % 2 == 0 { 0xc0 } else { 0x40 };
        }
        if length % 3 == 0 && length > 5 {
            packet[1..5].copy_from_slice(&1_u32.to_be_bytes());
        }
        socket.send_to(&packet, &address).unwrap();
    }
    assert_eq!(server.timings("/generate/100KB")["bytes"], 100_000);
    let (status, told) = server.end();
    assert!(status.success() && !told.contains("panicked"), "{told}");
}

#[test]
fn a_reader_that_reads_nothing_is_given_up() {
    // On a busy machine a second of the server may take longer, so that a reader who gets everything was asked too
    // soon.
    let gets_everything_after = |rest: u64| {
        let server = Server::self_signed(&["--stall", "1s", "--connection-memory", "1MB"]);
        // The pipe takes 64 KB, flow control of the client 1.25 MB; then nobody reads.
        let url = format!("{}/generate/50MB", server.url);
        let mut reader = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
            .args(["get", "--insecure", "--out", "-", &url])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        server.wait_for("flowstart_requests_total{status=\"200\"} 1");
        assert_eq!(server.timings("/generate/1MB")["bytes"], 1_000_000);
        std::thread::sleep(Duration::from_secs(rest));
        // When it reads again, it learns that the answer ended.
        let bytes = std::io::copy(reader.stdout.as_mut().unwrap(), &mut std::io::sink()).unwrap();
        let code = reader.wait().unwrap().code();
        assert!(code == Some(1) && bytes < 50_000_000 || code == Some(0) && bytes == 50_000_000, "{code:?}, {bytes}");
        code == Some(0)
    };
    assert!(![4, 16, 64].into_iter().all(gets_everything_after), "the server waits for ever");
}

#[test]
fn an_answer_waits_while_its_connection_reads_another_and_no_longer() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let server = Server::start(&["--cert", &cert, "--key", &key, "--stall", "1s"]);
    // Reads this much of one answer every 100 ms for 4 s, then what is left of the other. Says how it ended.
    let other_ends = |piece: usize| {
        let requests = ["/generate/50MB", "/generate/1MB"].map(|path| request(path, &[]));
        connected(&server, &cert, &[], 100_000, async |connection| {
            let mut answers = Vec::new();
            for request in &requests {
                let (mut stream, answer) = connection.open_bi().await.unwrap();
                stream.write_all(request).await.unwrap();
                stream.finish().unwrap();
                answers.push(answer);
            }
            let [read, other] = &mut answers[..] else { panic!("two answers") };
            let mut buffer = vec![0; piece];
            for _ in 0..40 {
                // What has been given up says nothing more.
                let _ = tokio::time::timeout(Duration::from_millis(100), read.read_exact(&mut buffer)).await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            other.read_to_end(2_000_000).await.map(|bytes| bytes.len() >= 1_000_000)
        })
        .unwrap()
    };
    assert!(other_ends(100_000).unwrap_or(false), "a client that reads is waited for");
    assert!(other_ends(1_000).is_err(), "one that reads next to nothing is not");
}

#[test]
fn a_client_that_is_killed_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("paths.redb");
    let serve = || Server::self_signed(&["--path-store", store.to_str().unwrap()]);
    let mut server = serve();
    let url = format!("{}/generate/1GB", server.url);
    let mut victim = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
        .args(["get", "--insecure", &url])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    server.wait_for("flowstart_requests_total{status=\"200\"} 1");
    victim.kill().unwrap();
    victim.wait().unwrap();
    // The server dies as well, at any time; what it had saved stays readable. Nobody waits for what it saves, so that a
    // server which dies too soon has saved nothing, and the next one lives longer.
    let mut active = 1;
    for life in [200, 800, 3200, 12_800, 51_200] {
        assert_eq!(server.timings("/generate/1MB")["bytes"], 1_000_000);
        server.wait_for(&format!("flowstart_connections_active {active}"));
        std::thread::sleep(Duration::from_millis(life));
        server.signal("-KILL");
        server.child.wait().unwrap();
        let shown = flowstart().args(["oracle", "show", "--json", "--store"]).arg(&store).assert().success();
        let known: Value = serde_json::from_slice(&shown.get_output().stdout).unwrap();
        if known[0]["prefix"] == "127.0.0.0/24" {
            return;
        }
        (server, active) = (serve(), 0);
    }
    panic!("nothing was saved");
}

#[test]
fn a_malformed_request_is_reset() {
    const H3_MESSAGE_ERROR: u64 = 0x10e;
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let server = Server::start(&["--cert", &cert, "--key", &key]);
    let reset = |fields: &[u8]| {
        let request = request("/generate/1KB", fields);
        connected(&server, &cert, &[], 1 << 20, async |connection| {
            let (mut stream, mut answer) = connection.open_bi().await.unwrap();
            stream.write_all(&request).await.unwrap();
            stream.finish().unwrap();
            match tokio::time::timeout(Duration::from_secs(20), answer.read_to_end(1 << 20)).await.unwrap() {
                Ok(_) => None,
                Err(noq::ReadToEndError::Read(noq::ReadError::Reset(code))) => Some(code),
                Err(error) => panic!("{error}"),
            }
        })
        .unwrap()
    };
    assert_eq!(reset(&field("te", "trailers")), None);
    for (name, value) in [
        ("connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("te", "gzip"),
        ("content-length", "-1"),
        ("content-length", "1e3"),
        // Repeated, those of responses, and of nobody (RFC 9114, section 4.3).
        (":path", "/generate/2KB"),
        (":status", "200"),
        (":protocol", "websocket"),
        (":unknown", "x"),
        ("Accept", "*/*"),
    ] {
        assert_eq!(reset(&field(name, value)).map(noq::VarInt::into_inner), Some(H3_MESSAGE_ERROR), "{name}: {value}");
    }
    // After a regular field, and with neither scheme nor path, which only CONNECT may leave out.
    let late = [field("accept", "*/*"), field(":path", "/generate/1KB")].concat();
    assert_eq!(reset(&late).map(noq::VarInt::into_inner), Some(H3_MESSAGE_ERROR));
    let bare = [&[1, 14, 0, 0, 0xd1, 0x50, 9][..], b"localhost"].concat();
    assert_eq!(answer_to(&server, &cert, &bare, true), End::Reset(H3_MESSAGE_ERROR));
    // CONNECT with a scheme and a path, and paths that do not begin with a slash.
    let head = |method: &[u8], scheme: u8, path: &[u8]| {
        let fields = [&[0, 0][..], method, &[scheme, 0x50, 9], b"localhost", &[0x51, path.len() as u8], path].concat();
        [&[1, fields.len() as u8][..], &fields].concat()
    };
    let (get, https) = (&[0xd1][..], 0xd7);
    for sent in [head(&[0xcf], https, b"/"), head(get, https, b"#x"), head(get, https, b"?x"), head(get, https, b"")] {
        assert_eq!(answer_to(&server, &cert, &sent, true), End::Reset(H3_MESSAGE_ERROR), "{sent:?}");
    }
    server.wait_for("flowstart_requests_total{status=\"400\"} 17");
    // A scheme that is not served is not malformed (RFC 9114, section 4.3.1).
    assert_eq!(answer_to(&server, &cert, &head(get, 0xd6, b"/generate/1KB"), true), End::Finished);
    server.wait_for("flowstart_requests_total{status=\"421\"} 1");
}

/// How a server ends an answer.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// As if all of it was sent.
    Finished,
    Reset(u64),
    Closed(u64),
}

/// How the server ends its answer to this on a request's stream, which ends with it or does not.
fn answer_to(server: &Server, cert: &str, sent: &[u8], finish: bool) -> End {
    connected(server, cert, &[], 1 << 20, async |connection| {
        let (mut stream, mut answer) = connection.open_bi().await.unwrap();
        stream.write_all(sent).await.unwrap();
        if finish {
            stream.finish().unwrap();
        }
        match tokio::time::timeout(Duration::from_secs(20), answer.read_to_end(1 << 20)).await.unwrap() {
            Ok(_) => End::Finished,
            Err(noq::ReadToEndError::Read(noq::ReadError::Reset(code))) => End::Reset(code.into_inner()),
            Err(noq::ReadToEndError::Read(noq::ReadError::ConnectionLost(
                noq::ConnectionError::ApplicationClosed(close),
            ))) => End::Closed(close.error_code.into_inner()),
            Err(error) => panic!("{error}"),
        }
    })
    .unwrap()
}

#[test]
fn a_head_that_does_not_come_to_its_end_is_no_request() {
    const H3_FRAME_ERROR: u64 = 0x106;
    const H3_REQUEST_REJECTED: u64 = 0x10b;
    const H3_REQUEST_INCOMPLETE: u64 = 0x10d;
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let server = Server::start(&["--cert", &cert, "--key", &key, "--stall", "300ms"]);
    // Nothing, and a frame of an unknown type: the stream ends before the message does (RFC 9114, section 4.1).
    for sent in [&[][..], &[0x21, 1, 9]] {
        assert_eq!(answer_to(&server, &cert, sent, true), End::Reset(H3_REQUEST_INCOMPLETE), "{sent:?}");
    }
    // Within the type, the length and the fields of a frame (RFC 9114, section 7.1).
    for sent in [&[0x40][..], &[1], &[1, 0x40], &[1, 40], &[1, 40, 0, 0]] {
        assert_eq!(answer_to(&server, &cert, sent, true), End::Closed(H3_FRAME_ERROR), "{sent:?}");
    }
    // What does not go on is given up, and was not processed (RFC 9114, section 4.1.1).
    for sent in [&[1][..], &[1, 40, 0, 0]] {
        assert_eq!(answer_to(&server, &cert, sent, false), End::Reset(H3_REQUEST_REJECTED), "{sent:?}");
    }
    assert_eq!(answer_to(&server, &cert, &request("/generate/1KB", &[]), true), End::Finished);
}

#[test]
fn heads_that_do_not_end_are_bounded_together() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let server = Server::start(&["--cert", &cert, "--key", &key]);
    let opened = |kind: u8, streams: usize| {
        // HEADERS, or an unknown frame, of 40,000 bytes, of which the last one is missing.
        let head = [&[kind, 0x80, 0, 0x9c, 0x40][..], &[0; 39_999]].concat();
        connected(&server, &cert, &[], 1 << 20, async |connection| {
            let mut open = Vec::new();
            for _ in 0..streams {
                let (mut stream, answer) = connection.open_bi().await.unwrap();
                let _ = stream.write_all(&head).await;
                open.push((stream, answer));
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
            connection.close_reason()
        })
        .unwrap()
    };
    for kind in [1, 0x21] {
        assert!(opened(kind, 6).is_none(), "240 KB are within the bound");
        let Some(noq::ConnectionError::ApplicationClosed(close)) = opened(kind, 8) else { panic!("320 KB are kept") };
        assert_eq!(close.error_code.into_inner(), H3_EXCESSIVE_LOAD);
    }
}

/// Sends `asked` on each of these streams, reads nothing, and does something meanwhile.
fn with_unread<T>(server: &Server, cert: &str, asked: &[u8], streams: usize, act: impl FnOnce() -> T) -> T {
    connected(server, cert, &[], 3000, async |connection| {
        let mut open = Vec::new();
        for _ in 0..streams {
            let (mut stream, answer) = connection.open_bi().await.unwrap();
            stream.write_all(asked).await.unwrap();
            stream.finish().unwrap();
            open.push((stream, answer));
        }
        // The connection goes on in this thread.
        tokio::time::sleep(Duration::from_secs(3)).await;
        act()
    })
    .unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn what_nobody_reads_holds_few_files_and_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let file = std::fs::File::create(folder.path().join("large")).unwrap();
    file.set_len(40_000_000).unwrap();
    let root = folder.path().to_str().unwrap();
    let options = ["--cert", &cert, "--key", &key, "--root", root, "--connection-memory", "100KB"];
    let server = Server::start(&options);
    let process = server.child.id();
    let files = || std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    let kilobytes = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim_matches(|one: char| !one.is_ascii_digit()).parse().unwrap()
    };
    // Whatever the first answers of a process take.
    let plain = request("/large", &[]);
    with_unread(&server, &cert, &plain, 1, || {});
    let before = (files(), kilobytes());
    let held = with_unread(&server, &cert, &plain, 100, || (files(), kilobytes()));
    // 16 answers of 128 KB, the 100 KB, and what a connection takes.
    assert!(held.0 <= before.0 + 20 && held.1 <= before.1 + 5000, "{before:?} {held:?}");
    // A byte each for 1750 fields (`age: 0`), which take 0.25 MB while a request is read: 25 MB if they stayed. The
    // allocator keeps some of what was read.
    let many = request("/large", &[0xc2; 1750]);
    let held = with_unread(&server, &cert, &many, 100, || (files(), kilobytes()));
    assert!(held.0 <= before.0 + 20 && held.1 <= before.1 + 12_000, "{before:?} {held:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn nobody_takes_all_files_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    std::fs::write(folder.path().join("file"), [7; 100_000]).unwrap();
    let mut program = Program::new("sh");
    let binary = assert_cmd::cargo::cargo_bin("flowstart");
    program.arg("-c").arg("ulimit -n 64; exec \"$0\" \"$@\"").arg(binary).stderr(Stdio::piped());
    let root = folder.path().to_str().unwrap();
    // 32 files are for answers; three clients hold 16 each or wait for them.
    let server = Server::run(&mut program, &["--cert", &cert, "--key", &key, "--root", root, "--stall", "60s"]);
    std::thread::scope(|scope| {
        let greedy =
            || with_unread(&server, &cert, &request("/file", &[]), 60, || std::thread::sleep(Duration::from_secs(2)));
        let clients = [scope.spawn(greedy), scope.spawn(greedy), scope.spawn(greedy)];
        std::thread::sleep(Duration::from_secs(3));
        // Neither the metrics nor generated content wants a file that is not there.
        assert!(server.http("GET", "/metrics").starts_with("HTTP/1.1 200"));
        let url = format!("{}/generate/1KB", server.url);
        flowstart().args(["get", "--ca", &cert, &url, "--timeout", "20s"]).assert().success();
        for client in clients {
            client.join().unwrap();
        }
    });
}

#[test]
fn the_last_places_are_for_clients_that_prove_their_addresses() {
    let server = Server::self_signed(&["--max-connections", "4", "--max-handshakes", "1000"]);
    let hold = || {
        Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
            .args(["get", "--insecure", &format!("{}/generate/1GB", server.url), "--out", "-"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut held = vec![hold(), hold()];
    server.wait_for("flowstart_connections_active 2");
    assert_eq!(server.timings("/generate/1KB")["bytes"], 1000);
    server.wait_for("flowstart_connection_attempts_total{result=\"retry\"} 1");
    for client in &mut held {
        client.kill().unwrap();
        client.wait().unwrap();
    }
}

#[test]
fn beyond_the_bound_of_memory_clients_prove_their_addresses_and_then_are_refused() {
    // One connection is 8 % of 1 MB; what the server writes ahead of a long transfer, up to 2 MB, is more than all.
    let server = Server::self_signed(&["--memory", "1MB", "--connection-memory", "2MB", "--stall", "60s"]);
    assert_eq!(server.timings("/generate/100KB")["bytes"], 100_000);
    let mut reader = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
        .args(["get", "--insecure", &format!("{}/generate/1000GB", server.url)])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    server.wait_for("flowstart_requests_total{status=\"200\"} 2");
    let signal = |name: &str| Program::new("kill").args([name, &reader.id().to_string()]).status().unwrap().success();
    let refused = || !server.get("/generate/1KB").arg("--timeout=60s").output().unwrap().status.success();
    // A client that is stopped acknowledges nothing. What it acknowledged before, but its program had not read, is
    // part of its credit (1.25 MB): with much of that the server holds little, so another moment is tried.
    assert!((0..20).any(|_| {
        assert!(signal("-STOP"));
        let held = (0..10).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            refused()
        });
        held || {
            assert!(signal("-CONT"));
            std::thread::sleep(Duration::from_millis(200));
            false
        }
    }));
    assert!(server.http("GET", "/metrics").contains("flowstart_connection_attempts_total{result=\"memory\"}"));
    reader.kill().unwrap();
    reader.wait().unwrap();
    // What it held is free when its connection is over.
    let served = || server.get("/generate/1KB").output().unwrap().status.success();
    assert!((0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        served()
    }));
}

#[test]
fn an_answer_that_was_cancelled_takes_nothing_of_the_memory_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let options = ["--cert", &cert, "--key", &key, "--memory", "1MB", "--connection-memory", "2MB", "--stall", "60s"];
    let server = Server::start(&options);
    let is_served = connected(&server, &cert, &[], 3000, async |connection| {
        let (mut asked, mut answer) = connection.open_bi().await.unwrap();
        asked.write_all(&request("/generate/1000GB", &[])).await.unwrap();
        asked.finish().unwrap();
        answer.read(&mut [0; 1]).await.unwrap();
        // The server has written ahead as far as it does.
        tokio::time::sleep(Duration::from_millis(500)).await;
        answer.stop(0_u32.into()).unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let is_served = server.get("/generate/1KB").arg("--timeout=20s").output().unwrap().status.success();
        assert!(connection.close_reason().is_none());
        is_served
    });
    assert!(is_served.unwrap());
}

#[test]
#[cfg(target_os = "linux")]
fn a_store_that_another_program_holds_stops_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("paths.redb");
    let server = Server::self_signed(&["--path-store", store.to_str().unwrap()]);
    assert_eq!(server.timings("/generate/200KB")["bytes"], 200_000);
    let shown = || flowstart().args(["oracle", "show", "--json", "--store"]).arg(&store).output().unwrap().stdout;
    assert!((0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        String::from_utf8(shown()).unwrap().contains("127.0.0.0/24")
    }));
    let mode = redb::ConcurrencyMode::MultiWriter;
    let database = redb::Database::builder().set_concurrency_mode(mode).create(&store).unwrap();
    let held = database.begin_write().unwrap();
    let url = format!("{}/generate/200KB", server.url);
    flowstart().args(["get", "--insecure", "--connections", "300", &url]).assert().success();
    server.get("/generate/1KB").arg("--timeout=60s").assert().success();
    let threads = std::fs::read_dir(format!("/proc/{}/task", server.child.id())).unwrap().count();
    assert!(threads < 80, "{threads} threads");
    drop(held);
    assert_eq!(server.timings("/generate/1KB")["bytes"], 1000);
}

/// Takes packets until there are no more, and hands each on when `due` says.
fn hand_on(
    mut receive: impl FnMut(&mut [u8]) -> std::io::Result<usize> + Send + 'static,
    mut due: impl FnMut() -> Instant + Send + 'static,
    mut send: impl FnMut(&[u8]) + Send + 'static,
) {
    let (queue, delayed) = std::sync::mpsc::channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        let mut packet = [0; 2000];
        while let Ok(length) = receive(&mut packet) {
            drop(queue.send((due(), packet[..length].to_vec())));
        }
    });
    std::thread::spawn(move || {
        for (due, packet) in delayed {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            send(&packet);
        }
    });
}

/// A path to the server, over which nothing comes back once this is set. Where clients connect.
fn silenced_path(server: &Server) -> (SocketAddr, Arc<AtomicBool>) {
    let server: SocketAddr = server.url.strip_prefix("https://").unwrap().parse().unwrap();
    let socket = || Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    let (near, far, client) = (socket(), socket(), Arc::<OnceLock<SocketAddr>>::default());
    let address = near.local_addr().unwrap();
    let (from_client, known, to_server) = (near.clone(), client.clone(), far.clone());
    hand_on(
        move |packet| {
            let (length, from) = from_client.recv_from(packet)?;
            known.get_or_init(|| from);
            Ok(length)
        },
        Instant::now,
        move |packet| drop(to_server.send_to(packet, server)),
    );
    let silenced = Arc::<AtomicBool>::default();
    let is_silenced = silenced.clone();
    hand_on(
        move |packet| far.recv(packet),
        Instant::now,
        move |packet| {
            if !is_silenced.load(Ordering::Relaxed) {
                drop(near.send_to(packet, client.get().unwrap()));
            }
        },
    );
    (address, silenced)
}

#[test]
#[cfg(target_os = "linux")]
fn open_connections_keep_to_the_bound_of_memory_together() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    // What four clients that acknowledge nothing take, in kB of 1024.
    let taken = |memory: &str| {
        let options = ["--cert", &cert, "--key", &key, "--connection-memory", "8MB", "--stall", "60s"];
        let server = Server::start(&[&options[..], &["--memory", memory]].concat());
        let resident = || -> u64 {
            let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
            line.trim_matches(|one: char| !one.is_ascii_digit()).parse().unwrap()
        };
        assert_eq!(server.timings("/generate/100KB")["bytes"], 100_000);
        let (before, connected, all) = (resident(), std::sync::Barrier::new(4), std::sync::Barrier::new(5));
        let silent = || {
            let (address, silenced) = silenced_path(&server);
            let tls = Arc::new(trusting(&cert).with_encoded_parameters(Vec::new()));
            connected_at(address, tls, 1 << 30, async |connection| {
                // Who came when the others hold everything would be refused.
                connected.wait();
                let (mut asked, mut answer) = connection.open_bi().await.unwrap();
                asked.write_all(&request("/generate/1000GB", &[])).await.unwrap();
                asked.finish().unwrap();
                answer.read(&mut [0; 1]).await.unwrap();
                silenced.store(true, Ordering::Relaxed);
                all.wait();
                all.wait();
            })
        };
        std::thread::scope(|scope| {
            let clients: [_; 4] = std::array::from_fn(|_| scope.spawn(silent));
            all.wait();
            std::thread::sleep(Duration::from_secs(1));
            let after = resident();
            all.wait();
            clients.into_iter().for_each(|client| client.join().unwrap().unwrap());
            after.saturating_sub(before)
        })
    };
    let [bound, free] = ["2MB", "1GB"].map(taken);
    assert!(bound < 8_000 && free > 20_000, "{bound} and {free} kB");
}

#[test]
fn who_does_not_acknowledge_the_end_of_an_answer_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let options = ["--cert", &cert, "--key", &key, "--memory", "1MB", "--connection-memory", "2MB", "--stall", "5s"];
    let server = Server::start(&options);
    let (address, silenced) = silenced_path(&server);
    let is_served = || server.get("/generate/1KB").arg("--timeout=2s").output().unwrap().status.success();
    let tls = Arc::new(trusting(&cert).with_encoded_parameters(Vec::new()));
    let seen = connected_at(address, tls, 1 << 30, async |connection| {
        let (mut asked, mut answer) = connection.open_bi().await.unwrap();
        asked.write_all(&request("/generate/1000GB", &[])).await.unwrap();
        asked.finish().unwrap();
        answer.read(&mut [0; 1]).await.unwrap();
        silenced.store(true, Ordering::Relaxed);
        // The server writes ahead as far as it does.
        tokio::time::sleep(Duration::from_millis(500)).await;
        answer.stop(0_u32.into()).unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        // The stack keeps what it was given.
        let before = is_served();
        let given_up = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            is_served()
        });
        (before, given_up)
    });
    assert_eq!(seen.unwrap(), (false, true));
}

#[test]
fn a_client_that_leaves_early_was_not_answered() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let server = Server::start(&["--cert", &cert, "--key", &key]);
    let no_error = noq::VarInt::from_u32(0x100);
    // All but the first packets wait, for there is no credit; and all of it is there.
    for (window, size) in [(3000, "/generate/20MB"), (1 << 20, "/generate/2KB")] {
        connected(&server, &cert, &[], window, async |connection| {
            let (mut asked, mut answer) = connection.open_bi().await.unwrap();
            asked.write_all(&request(size, &[])).await.unwrap();
            asked.finish().unwrap();
            answer.read(&mut [0; 1]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
            connection.close(no_error, b"");
        })
        .unwrap();
    }
    server.wait_for("flowstart_connections_active 0");
    let metrics = server.http("GET", "/metrics");
    let answered: Vec<&str> = metrics.lines().filter(|line| line.starts_with("flowstart_fct_seconds_count")).collect();
    assert!(answered.iter().all(|line| line.ends_with(" 1")) && answered.len() == 1, "{answered:?}");
}

/// A path of this delay from the server. After its first packet, all packets of the client are held until `held` is
/// over, and later none, so the handshake looks as if it took so long. Where clients connect.
fn lying_path(server: &Server, delay: Duration, held: Duration) -> String {
    let server: SocketAddr = server.url.strip_prefix("https://").unwrap().parse().unwrap();
    let socket = || Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    let (near, far, client) = (socket(), socket(), Arc::<OnceLock<SocketAddr>>::default());
    nix::sys::socket::setsockopt(&*far, nix::sys::socket::sockopt::RcvBuf, &(4 << 20)).unwrap();
    let address = near.local_addr().unwrap().to_string();
    let (from_client, known, to_server) = (near.clone(), client.clone(), far.clone());
    let mut until = None;
    hand_on(
        move |packet| {
            let (length, from) = from_client.recv_from(packet)?;
            known.get_or_init(|| from);
            Ok(length)
        },
        move || {
            let now = Instant::now();
            until.replace(until.unwrap_or(now + held)).map_or(now, |until| until.max(now))
        },
        move |packet| drop(to_server.send_to(packet, server)),
    );
    hand_on(
        move |packet| far.recv(packet),
        move || Instant::now() + delay,
        move |packet| drop(near.send_to(packet, client.get().unwrap())),
    );
    address
}

#[test]
fn a_client_whose_handshake_looks_long_gets_no_more_than_the_cap() {
    let logs = tempfile::tempdir().unwrap();
    let options = ["--startup", "blitzstart", "--hint-policy", "cap:rate=10mbit"];
    let server = Server::self_signed(&[&options[..], &["--qlog", logs.path().to_str().unwrap()]].concat());
    // Below the first timeout of a probe, so that the server repeats nothing.
    let path = lying_path(&server, Duration::from_millis(40), Duration::from_millis(700));
    let url = format!("https://{path}/generate/2MB");
    flowstart().args(["get", "--insecure", "--json", "--hint", "rate=10mbit", &url]).assert().success();
    server.wait_for("flowstart_connections_active 0");
    assert!(server.end().0.success());
    let log = std::fs::read_dir(logs.path()).unwrap().next().unwrap().unwrap().path();
    let log = std::fs::read_to_string(log).unwrap();
    let (mut launch, mut sent, mut smallest, mut checked, mut last) = (None, 0, f64::INFINITY, 0, 0);
    for record in log.split('\u{1e}').skip(1) {
        let Value::Object(event) = serde_json::from_str(record).unwrap() else { panic!("{record}") };
        let (Some(name), data) = (event.get("name"), &event.get("data").unwrap_or(&Value::Null)) else { continue };
        let time = event["time"].as_f64().unwrap();
        match name.as_str().unwrap() {
            "flowstart:launch" => launch = Some((time, data["cwnd_bytes"].as_u64().unwrap())),
            "quic:packet_sent" if launch.is_some() => sent += data["header"]["length"].as_u64().unwrap_or(1200),
            "quic:recovery_metrics_updated" => {
                // The window of an event is the one before its acknowledgement, of which the controller hears all when
                // the next event begins.
                let before = smallest;
                smallest = data["min_rtt"].as_f64().map_or(smallest, |rtt| rtt.min(smallest));
                let (Some((launched, _)), Some(window)) = (launch, data["congestion_window"].as_u64()) else {
                    continue;
                };
                last = window;
                // 10 Mbit/s are 1250 bytes in a millisecond.
                let borne_out = (before * 1250.0) as u64;
                if before < 300.0 {
                    assert!(window <= borne_out + sent + 1200, "{window} after {sent}, {before} ms");
                    checked += 1;
                } else {
                    assert!(sent <= ((time - launched) * 1250.0) as u64 + 30_000, "{sent} at {time}, {launched}");
                }
            }
            _ => {}
        }
    }
    // The lie was believed, and then it was not.
    let launched = launch.map(|(_, window)| window);
    assert!(launched > Some(600_000) && smallest < 300.0 && checked > 2, "{launched:?}, {smallest} ms, {checked}");
    // Slow start does not lead back to it.
    assert!(last < 300_000, "{last} bytes in the end");
}
