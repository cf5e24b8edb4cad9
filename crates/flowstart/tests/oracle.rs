//! `flowstart oracle` over the loopback, as clients and people meet it.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use flowstart_sensing::path_store::Retention;
use flowstart_sensing::path_store::embedded::EmbeddedStore;
use serde_json::{Value, json};
use tempfile::TempDir;

fn oracle(arguments: &[&str]) -> Assert {
    Command::cargo_bin("flowstart").unwrap().arg("oracle").args(arguments).assert()
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

fn json_of(assert: &Assert) -> Value {
    serde_json::from_slice(&assert.get_output().stdout).unwrap()
}

/// A folder with the path of a store in it.
fn place() -> (TempDir, String) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("paths.redb").display().to_string();
    (folder, file)
}

fn record(store: &str, address: &str, rate: &str) -> Assert {
    oracle(&["record", "--store", store, address, "--rate", rate, "--rtt", "50ms", "--cwnd", "70KB"])
}

/// A service that is killed when the test is over.
struct Running {
    process: Child,
    url: String,
}

impl Running {
    fn start(store: &str, extra: &[&str]) -> Self {
        let mut process = std::process::Command::new(assert_cmd::cargo::cargo_bin!("flowstart"))
            .args(["oracle", "serve", "--store", store, "--listen", "127.0.0.1:0"])
            .args(extra)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").unwrap_or_default().to_owned();
        Self { process, url }
    }

    /// Sends `request` and returns status and body.
    fn exchange(&self, request: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.url.strip_prefix("http://").unwrap()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
    }

    fn get(&self, target: &str) -> (u16, Value) {
        self.exchange(&format!("GET {target} HTTP/1.1\r\nHost: oracle\r\nConnection: close\r\n\r\n"))
    }

    #[cfg(unix)]
    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let id = self.process.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        let status = self.process.wait().unwrap();
        let mut errors = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (status.code(), errors)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn what_was_recorded_is_answered_and_can_be_recorded_meanwhile() {
    let (_folder, store) = place();
    let saved = record(&store, "192.0.2.7", "25mbit").success();
    assert_eq!(stdout(&saved), "saved for 192.0.2.0/24\n");

    let running = Running::start(&store, &[]);
    let (status, known) = running.get("/capacity?address=192.0.2.99");
    assert_eq!(status, 200);
    assert_eq!((&known["prefix"], &known["rate"]), (&json!("192.0.2.0/24"), &json!("25mbit")));
    assert_eq!((&known["min_rtt"], &known["cwnd"], &known["samples"]), (&json!("50ms"), &json!("70KB"), &json!(1)));
    assert_eq!(running.get("/capacity?address=198.51.100.1").0, 404);
    assert_eq!(running.get("/capacity?address=here").0, 400);
    let question = r#"{"properties": ["priv:flowstart-capacity"], "endpoints": ["ipv4:192.0.2.34"]}"#;
    let (status, answer) = running.exchange(&format!(
        "POST /endpointprop HTTP/1.1\r\nHost: oracle\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{question}",
        question.len()
    ));
    assert_eq!(status, 200);
    assert_eq!(answer["endpoint-properties"]["ipv4:192.0.2.34"]["priv:flowstart-capacity"]["rate"], "25mbit");

    // Both of the command's ways to look agree, also on what is recorded while the service runs.
    record(&store, "2001:db8:1::7", "5mbit").success();
    for address in ["192.0.2.34", "2001:db8:1:2::3"] {
        let asked = json_of(&oracle(&["ask", &running.url, address, "--json"]).success());
        let mut shown = json_of(&oracle(&["show", "--store", &store, address, "--json"]).success());
        shown["age_seconds"] = asked["age_seconds"].clone();
        assert_eq!(asked, shown);
        assert!(asked["rate"].is_string());
    }
    let unknown = ["ask", &running.url, "198.51.100.1"];
    assert_eq!(stdout(&oracle(&unknown).success()), "nothing is known of 198.51.100.1\n");
    assert_eq!(json_of(&oracle(&[&unknown[..], &["--json"]].concat()).success()), Value::Null);
    assert!(stdout(&oracle(&["ask", &running.url, "192.0.2.1"]).success()).contains("25mbit"));
    let all = json_of(&oracle(&["show", "--store", &store, "--json"]).success());
    let prefixes: Vec<&str> = all.as_array().unwrap().iter().map(|one| one["prefix"].as_str().unwrap()).collect();
    assert_eq!(prefixes, ["192.0.2.0/24", "2001:db8:1::/48"]);
}

#[cfg(unix)]
#[test]
fn signals_end_the_service_without_a_complaint_and_without_harm() {
    let (_folder, store) = place();
    record(&store, "192.0.2.7", "25mbit").success();
    for signal in ["-INT", "-TERM"] {
        let running = Running::start(&store, &[]);
        let waiting = TcpStream::connect(running.url.strip_prefix("http://").unwrap()).unwrap();
        assert_eq!(running.end(signal), (Some(0), String::new()), "{signal}");
        drop(waiting);
    }
    // Even the hardest end leaves the file whole.
    assert_eq!(Running::start(&store, &[]).end("-KILL").0, None);
    let shown = oracle(&["show", "--store", &store]).success();
    assert!(stdout(&shown).contains("25mbit") && stderr(&shown).is_empty());
}

#[test]
fn programs_that_record_at_the_same_time_lose_nothing_of_each_other() {
    let (_folder, store) = place();
    std::thread::scope(|scope| {
        for address in ["192.0.2.1", "192.0.2.2", "192.0.3.1"] {
            let store = &store;
            scope.spawn(move || (0..5).for_each(|_| drop(record(store, address, "25mbit").success())));
        }
    });
    let shown = json_of(&oracle(&["show", "--store", &store, "--json"]).success());
    assert_eq!((&shown[0]["samples"], &shown[1]["samples"]), (&json!(10), &json!(5)));
}

#[test]
fn observations_are_merged_as_told_and_kept_for_their_lifetime() {
    let (_folder, store) = place();
    record(&store, "192.0.2.7", "10mbit").success();
    record(&store, "192.0.2.8", "30mbit").success();
    let rate = |extra: &[&str]| {
        let shown = oracle(&[&["show", "--store", &store, "--json"], extra].concat()).success();
        json_of(&shown)[0]["rate"].clone()
    };
    assert_eq!(rate(&[]), "30mbit");
    // 0.75 x 10 + 0.25 x 30.
    assert_eq!(rate(&["--ewma", "0.25"]), "15mbit");
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() - 1800;
    let (_other, past) = place();
    let arguments =
        ["record", "--store", &past, "192.0.2.7", "--rate", "1mbit", "--rtt", "1s", "--cwnd", "1KB", "--at"];
    let saved = oracle(&[&arguments[..], &[&since.to_string(), "--json"]].concat()).success();
    assert_eq!(json_of(&saved)["observation"]["at"], since);
    assert_eq!(
        stdout(&oracle(&["show", "--store", &past, "--lifetime", "1s"]).success()),
        "nothing is known of any address\n"
    );
    assert!(json_of(&oracle(&["show", "--store", &past, "--json"]).success())[0]["age_seconds"].as_u64() >= Some(1800));
}

#[test]
fn prefixes_are_those_that_were_chosen() {
    let (_folder, store) = place();
    let arguments = ["record", "--store", &store, "198.51.100.7", "--rate", "1mbit", "--rtt", "1s", "--cwnd", "1KB"];
    for (extra, prefix) in [
        (&[][..], "198.51.100.0/24"),
        (&["--ipv4-bits", "32"][..], "198.51.100.7/32"),
        (&["--network", "198.51.100.0/22", "192.0.2.0/25"][..], "198.51.100.0/22"),
    ] {
        let saved = json_of(&oracle(&[&arguments[..], extra, &["--json"]].concat()).success());
        assert_eq!(saved["prefix"], prefix);
    }
}

#[test]
fn bad_input_is_refused_with_what_is_allowed() {
    let (folder, store) = place();
    record(&store, "192.0.2.7", "25mbit").success();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let text = file("text", "no database, but long enough to be looked at. ".repeat(100).as_bytes());
    let (empty, absent) = (file("empty", b""), folder.path().join("absent").display().to_string());
    let (cut, later) = (file("cut", &fs::read(&store).unwrap()[..3000]), later(folder.path()));
    let folder_itself = folder.path().display().to_string();
    let nowhere = folder.path().join("no/such/folder").display().to_string();
    for command in [&["show", "--store"][..], &["serve", "--listen", "127.0.0.1:0", "--store"]] {
        for (path, expected) in [
            (&text, "damaged"),
            (&cut, "damaged"),
            (&empty, "the file is empty"),
            (&absent, "flowstart oracle record"),
            (&nowhere, "no such file"),
            (&folder_itself, "cannot be opened"),
            (&later, "has layout 7, and this program knows layouts up to 1"),
        ] {
            let output = oracle(&[command, &[path]].concat()).code(2);
            let stderr = stderr(&output);
            assert!(stderr.contains(expected) && stderr.contains(path.as_str()), "{command:?} {path}: {stderr}");
            assert!(output.get_output().stdout.is_empty());
        }
    }
    assert_eq!(fs::read(&empty).unwrap(), b"", "looking changes nothing");
    assert!(!Path::new(&absent).exists());
    record(&nowhere, "192.0.2.7", "25mbit").code(2);
    record(&text, "192.0.2.7", "25mbit").code(2);

    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let in_use = taken.local_addr().unwrap().to_string();
    let recorded = ["record", "--store", &store, "192.0.2.7", "--rate", "1mbit", "--rtt", "1ms", "--cwnd", "1KB"];
    let with = |option: &'static str, value: &'static str| {
        let mut arguments = recorded.to_vec();
        match arguments.iter().position(|argument| *argument == option) {
            Some(place) => arguments[place + 1] = value,
            None => arguments.extend([option, value]),
        }
        arguments
    };
    let serve = |listen| vec!["serve", "--store", store.as_str(), "--listen", listen];
    let ask = |url, address| vec!["ask", url, address];
    for (arguments, expected) in [
        (with("--rate", "0mbit"), "1kbit to 1000gbit"),
        (with("--rate", "fast"), "--rate"),
        (with("--rtt", "0s"), "1us to 100s"),
        (with("--rtt", "50"), "the unit must be one of"),
        (with("--cwnd", "0B"), "1B to 1000GB"),
        (with("--at", "0"), "a time in the last 3600s"),
        (with("--at", "99999999999"), "a time in the last 3600s"),
        (with("--at", "yesterday"), "--at"),
        (with("--lifetime", "0s"), "1s or more"),
        (with("--ipv4-bits", "33"), "0 to 32"),
        (with("--ipv6-bits", "129"), "0 to 128"),
        (with("--network", "198.51.100.0"), "198.51.100.0/22"),
        (vec!["record", "--store", &store, "host.example"], "192.0.2.7 or 2001:db8::1"),
        (vec!["record", "192.0.2.7"], "--store"),
        (vec!["show", "--store", &store, "--ewma", "0"], "above 0 and at most 1"),
        (vec!["show", "--store", &store, "--ewma", "nan"], "above 0 and at most 1"),
        (vec!["show", "--store", &store, "192.0.2.0/24"], "192.0.2.7 or 2001:db8::1"),
        (serve("8085"), "127.0.0.1:8085 or [::1]:8085"),
        (serve("localhost"), "127.0.0.1:8085 or [::1]:8085"),
        (serve("192.0.2.1:8085"), "--listen `192.0.2.1:8085`"),
        (serve(&in_use), "in use"),
        (ask("http://127.0.0.1:9", "here"), "192.0.2.7 or 2001:db8::1"),
        (ask("127.0.0.1:8085", "192.0.2.7"), "http://HOST:PORT"),
        (ask("https://oracle.example", "192.0.2.7"), "http://HOST:PORT"),
        (vec!["ask", "http://127.0.0.1:9", "192.0.2.7", "--bound", "0ms"], "1ms to 600s"),
        (vec![], "serve"),
        (vec!["forget"], "unrecognized subcommand"),
    ] {
        let stderr = stderr(&oracle(&arguments).code(2));
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}

/// A store that a later version of the program wrote.
fn later(folder: &Path) -> String {
    let path: PathBuf = folder.join("later");
    let database = redb::Database::create(&path).unwrap();
    let writing = database.begin_write().unwrap();
    let facts = redb::TableDefinition::<&str, u64>::new("flowstart-facts");
    writing.open_table(facts).unwrap().insert("layout", 7).unwrap();
    writing.commit().unwrap();
    path.display().to_string()
}

#[test]
fn a_store_that_another_program_has_for_itself_is_told() {
    let (_folder, store) = place();
    let _alone = EmbeddedStore::open(Path::new(&store), Retention::default()).unwrap();
    for output in [record(&store, "192.0.2.7", "25mbit"), oracle(&["show", "--store", &store])] {
        let stderr = stderr(&output.code(1));
        assert!(stderr.contains("in use by another process") && stderr.contains(&store), "{stderr}");
    }
}

#[test]
fn an_oracle_that_cannot_be_asked_is_told_within_the_bound() {
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let started = std::time::Instant::now();
    for address in [closed, silent.local_addr().unwrap()] {
        let output = oracle(&["ask", &format!("http://{address}"), "192.0.2.7", "--bound", "200ms"]).code(1);
        assert!(stderr(&output).contains("cannot be asked") && output.get_output().stdout.is_empty());
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(5));
}

#[test]
fn another_service_is_told_from_an_oracle() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        for answer in ["200 OK\r\nContent-Length: 4\r\n\r\nwhat", "500 Oh\r\nContent-Length: 0\r\n\r\n"] {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).unwrap();
        }
    });
    for expected in ["answer cannot be read", "status 500"] {
        let stderr = stderr(&oracle(&["ask", &url, "192.0.2.7", "--bound", "5s"]).code(1));
        assert!(stderr.contains(expected) && stderr.contains(&url), "{stderr}");
    }
    thread.join().unwrap();
}

#[test]
fn every_action_has_help_with_examples() {
    for action in ["", "serve", "ask", "record", "show"] {
        let arguments: Vec<&str> = [action, "--help"].into_iter().filter(|text| !text.is_empty()).collect();
        assert!(stdout(&oracle(&arguments).success()).contains("Examples:"), "{action}");
    }
}
