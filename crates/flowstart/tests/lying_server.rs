//! What a server that lies can do to `flowstart get`.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::net::SocketAddr;
#[cfg(target_os = "linux")]
use std::os::unix::fs::MetadataExt;
use std::process::{Command as Program, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use rustls::pki_types::PrivateKeyDer;
use tokio::runtime::Runtime;

mod server;

use server::{field, flowstart};

/// `:status: 200` in the static table (RFC 9204, appendix A).
const OK: u8 = 0xc0 | 25;

/// A number of a frame (RFC 9000, section 16).
fn number(value: usize) -> [u8; 4] {
    (u32::try_from(value).unwrap() | 0x8000_0000).to_be_bytes()
}

/// A frame (RFC 9114, section 7.1).
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind][..], &number(payload.len()), payload].concat()
}

/// A section of fields without a dynamic table.
fn headers(fields: &[u8]) -> Vec<u8> {
    frame(1, &[&[0, 0], fields].concat())
}

/// A server that answers a request with these bytes, and where it is. An answer that is not whole has no end.
fn server_of(answer: Vec<u8>, is_whole: bool) -> (Runtime, SocketAddr) {
    let key = rcgen::KeyPair::generate().unwrap();
    let cert = rcgen::CertificateParams::new(["localhost".into()]).unwrap().self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut tls = tls.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key).unwrap();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = noq::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let address: SocketAddr = runtime.block_on(async {
        let config = noq::ServerConfig::with_crypto(Arc::new(crypto));
        let endpoint = noq::Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
        let address = endpoint.local_addr().unwrap();
        tokio::spawn(async move {
            let connection = endpoint.accept().await.unwrap().await.unwrap();
            let mut control = connection.open_uni().await.unwrap();
            control.write_all(&[0, 4, 0]).await.unwrap();
            let (mut send, mut receive) = connection.accept_bi().await.unwrap();
            let _ = receive.read_to_end(1 << 20).await;
            let _ = send.write_all(&answer).await;
            if is_whole {
                let _ = send.finish();
            }
            connection.closed().await;
            drop(control);
        });
        address
    });
    (runtime, address)
}

/// Runs `get` with these options against a server that answers each request with these bytes.
fn got(answer: Vec<u8>, options: &[&str]) -> (Option<i32>, String) {
    let (runtime, address) = server_of(answer, true);
    let mut get: Command = flowstart();
    get.args(["get", "--insecure", &format!("https://{address}/")]).args(options).timeout(Duration::from_secs(60));
    let output = get.output().unwrap();
    runtime.shutdown_background();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_plain_answer_is_got() {
    let answer = [headers(&[OK]), frame(0, b"content")].concat();
    let (code, told) = got(answer, &[]);
    assert!(code == Some(0) && told.contains("200 OK, 7B"), "{told}");
}

#[test]
fn a_section_of_many_fields_is_refused() {
    let many = vec![OK; 60_000];
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let (code, told) = got(headers(&many), &[]);
    assert!(code == Some(1) && !told.contains("panicked"), "{code:?}: {told}");
    // The same behind the content, where a client with a path state looks for the next one.
    let answer = [headers(&[OK]), frame(0, b"content"), headers(&many)].concat();
    let (code, told) = got(answer, &["--path-state", state.to_str().unwrap()]);
    assert!(code == Some(1) && !told.contains("panicked"), "{code:?}: {told}");
}

#[test]
fn an_answer_in_the_manner_of_http_1_is_malformed() {
    for (name, value) in [("transfer-encoding", "chunked"), ("connection", "close"), ("upgrade", "h2c")] {
        let fields = [vec![OK], field(name, value)].concat();
        let (code, told) = got([headers(&fields), frame(0, b"5\r\nhello\r\n0\r\n\r\n")].concat(), &[]);
        assert!(code == Some(1) && told.contains(name), "{name}: {told}");
    }
}

#[test]
fn an_answer_with_other_pseudo_fields_is_malformed() {
    let path = field(":path", "/");
    let content = frame(0, b"content");
    let answers = [
        headers(&[vec![OK, OK]].concat()),
        headers(&[vec![OK], path.clone()].concat()),
        headers(&[field("server", "x"), vec![OK]].concat()),
        // In trailers.
        [headers(&[OK]), content.clone(), headers(&path)].concat(),
    ];
    for answer in answers {
        let (code, told) = got([&answer[..], &content].concat(), &[]);
        assert!(code == Some(1) && told.contains("H3_MESSAGE_ERROR"), "{answer:?}: {told}");
    }
    let interim = headers(&[0xc0 | 24]);
    let (code, told) = got([interim, headers(&[OK]), content].concat(), &[]);
    assert!(code == Some(0) && told.contains("200 OK, 7B"), "{told}");
}

#[test]
fn no_more_than_announced_is_taken_and_the_earlier_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    let answers = [
        [headers(&[vec![OK], field("content-length", "5")].concat()), frame(0, &[b'x'; 100_000])].concat(),
        [headers(&[vec![OK], field("content-length", "500000")].concat()), frame(0, &[b'x'; 100_000])].concat(),
        headers(&[0xc0 | 27]),
        // Half of a frame of content, and content behind trailers.
        [headers(&[OK]), [&[0][..], &number(100_000), &[b'x'; 50_000]].concat()].concat(),
        [headers(&[OK]), frame(0, b"new"), headers(&field("a", "b")), frame(0, b"newer")].concat(),
    ];
    for answer in answers {
        let (code, told) = got(answer, &["--out", file.to_str().unwrap()]);
        assert_eq!(code, Some(1), "{told}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing half-written remains");
    }
    let answer = [headers(&[vec![OK], field("content-length", "3")].concat()), frame(0, b"new")].concat();
    assert_eq!(got(answer, &["--out", file.to_str().unwrap()]).0, Some(0));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
}

#[test]
fn a_path_state_that_could_not_be_sent_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let with = |told: &str| {
        let trailers = headers(&field("flowstart-path-state", told));
        let (code, told) =
            got([headers(&[OK]), frame(0, b"content"), trailers].concat(), &["--path-state", state.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{told}");
    };
    let largest = "ab".repeat(256);
    with(&largest);
    assert_eq!(std::fs::read(&state).unwrap(), [0xab; 256]);
    for told in ["", "a", "xy", &"ab".repeat(257)] {
        with(told);
        assert_eq!(std::fs::read(&state).unwrap(), [0xab; 256], "{told}");
    }
}

#[test]
fn what_is_not_the_object_changes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (file, state) = (folder.path().join("file"), folder.path().join("state"));
    let beside = folder.path().join("file.new");
    for one in [&file, &state, &beside] {
        std::fs::write(one, "precious").unwrap();
    }
    let trailers = headers(&field("flowstart-path-state", "abab"));
    let status = |code: &str| field(":status", code);
    let moved = [headers(&status("302")), frame(0, b"moved"), trailers.clone()].concat();
    let part = [headers(&status("206")), frame(0, b"part"), trailers.clone()].concat();
    let unknown = [headers(&status("999")), frame(0, b"what"), trailers.clone()].concat();
    let short = [&[OK][..], &field("content-length", "1000")].concat();
    let short = [headers(&short), frame(0, b"ten bytes."), trailers].concat();
    for answer in [moved, part, unknown, short] {
        let options = ["--out", file.to_str().unwrap(), "--path-state", state.to_str().unwrap()];
        let (code, told) = got(answer, &options);
        assert_eq!(code, Some(1), "{told}");
        for one in [&file, &state, &beside] {
            assert_eq!(std::fs::read_to_string(one).unwrap(), "precious", "{told}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_is_only_announced_takes_neither_memory_nor_disk() {
    const ANNOUNCED: u64 = 1 << 40;
    const SENT: usize = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    // In the length of the content, and in that of the frame with the content.
    let fields = [vec![OK], field("content-length", &ANNOUNCED.to_string())].concat();
    let length = (ANNOUNCED | 0xc000_0000_0000_0000).to_be_bytes();
    let answer = [&headers(&fields), &[0][..], &length, &[b'x'; SENT]].concat();
    let (runtime, address) = server_of(answer, false);
    let mut get = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
        .args(["get", "--insecure", &format!("https://{address}/"), "--out", file.to_str().unwrap()])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let growing = || {
        let all = std::fs::read_dir(folder.path()).unwrap();
        all.map(|entry| entry.unwrap().metadata().unwrap())
            .map(|found| (found.len(), found.blocks()))
            .collect::<Vec<_>>()
    };
    let begin = Instant::now();
    while growing().iter().all(|(length, _)| *length < SENT as u64) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", growing());
        std::thread::sleep(Duration::from_millis(10));
    }
    let files = growing();
    assert!(matches!(files[..], [(length, blocks)] if length == SENT as u64 && blocks * 512 < 1 << 20), "{files:?}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", get.id())).unwrap();
    let of = |name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    // Address space has room for threads' stacks; a thousandth of what was announced would be more.
    assert!(of("VmHWM:") < 200_000 && of("VmPeak:") < 1_000_000, "{status}");
    get.kill().unwrap();
    get.wait().unwrap();
    runtime.shutdown_background();
}
