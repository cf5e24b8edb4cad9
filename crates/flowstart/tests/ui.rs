//! `flowstart ui` over the loopback, as browsers and those who mean no good meet it.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;
use tempfile::TempDir;

/// A question that takes a moment.
const SHORT: &str = "link=lte&size=70KB&scheme=slow-start&scheme=hystart&reps=5";
/// A question that takes longer than anybody waits here.
const LONG: &str = "link=dsl-fast&size=20MB&scheme=slow-start&competitor=cubic&reps=100";

/// A server that is killed when the test is over.
struct Running {
    process: Child,
    /// Where it says it is, with the token if it has one.
    url: String,
    /// Its port on this machine.
    port: u16,
}

/// An answer of HTTP.
struct Answer {
    code: u16,
    head: String,
    body: String,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut process = std::process::Command::new(assert_cmd::cargo::cargo_bin!("flowstart"))
            .args(["ui", "--json"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        let url = told["listening"].as_str().unwrap().to_owned();
        let port = url.rsplit_once(':').unwrap().1.split('/').next().unwrap().parse().unwrap();
        Self { process, url, port }
    }

    fn here(results: Option<&Path>) -> Self {
        let folder = results.map(|folder| folder.display().to_string());
        let more = folder.as_deref().map_or(Vec::new(), |folder| vec!["--results", folder]);
        Self::start(&[&["--listen", "127.0.0.1:0"][..], &more].concat())
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream
    }

    /// Sends a request and reads all of the answer.
    fn ask(&self, method: &str, address: &str, headers: &[&str], body: &str) -> Answer {
        let mut stream = self.connect();
        let host = if headers.iter().any(|header| header.starts_with("host:")) { "" } else { "host: localhost\r\n" };
        let more: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let request = format!("{method} {address} HTTP/1.1\r\n{host}{more}{length}connection: close\r\n\r\n{body}");
        // A server that has refused may not read on.
        let _ = stream.write_all(request.as_bytes());
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let all = String::from_utf8_lossy(&all).into_owned();
        let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Answer { code, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn get(&self, address: &str) -> Answer {
        self.ask("GET", address, &[], "")
    }

    /// The events of a question: name and data.
    fn events(&self, query: &str) -> Vec<(String, Value)> {
        let answer = self.get(&format!("/events?{query}"));
        assert_eq!(answer.code, 200, "{}", answer.body);
        assert!(answer.head.contains("text/event-stream"), "{}", answer.head);
        // Lines of lengths stand between the parts of an answer.
        let lines: Vec<&str> = answer.body.lines().collect();
        let names = lines.iter().enumerate().filter_map(|(place, line)| Some((place, line.strip_prefix("event: ")?)));
        names.map(|(place, name)| (name.to_owned(), data(lines[place + 1]))).collect()
    }
}

/// A text as it was before it became a part of a page.
fn plain(html: &str) -> String {
    html.replace("&#x2f;", "/")
        .replace("&#x27;", "'")
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&amp;", "&")
}

/// The data of an event.
fn data(line: &str) -> Value {
    serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap()
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn flowstart(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("flowstart").unwrap();
    command.args(arguments);
    command
}

/// Results of a short experiment.
fn results(folder: &Path, name: &str, seed: &str) {
    let out = folder.join(name).display().to_string();
    let base = ["compare", "--link", "lte", "--size", "70KB", "--scheme", "slow-start", "hystart", "--reps", "2"];
    flowstart(&[&base[..], &["--seed", seed, "--out", &out]].concat()).assert().success();
}

#[test]
fn the_first_page_has_a_finished_example_and_nothing_from_elsewhere() {
    let server = Running::here(None);
    let page = server.get("/");
    assert_eq!(page.code, 200);
    assert!(page.body.contains("times as fast as slow-start"), "no answer in the first page");
    assert!(page.body.contains("\"causes\":[[\"physical limit\""), "no runs in the first page");
    assert!(page.head.contains("content-security-policy: default-src 'none'; script-src 'self'"), "{}", page.head);
    for address in ["/", "/style.css", "/ui.css", "/colours.css", "/chart.js", "/source.js", "/lab.js", "/packets.js"] {
        let part = server.get(address);
        assert_eq!(part.code, 200, "{address}");
        let elsewhere: Vec<&str> = part.body.split("://").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(elsewhere.iter().all(|rest| *rest == "www.w3.org/2000/svg"), "{address}: {elsewhere:?}");
    }
    for choice in ["value=\"quick-start\"", "value=\"fq-codel\"", "value=\"cbr:rate=5mbit\"", "value=\"geo\""] {
        assert!(page.body.contains(choice), "{choice}");
    }
    // Its report is a page of its own, which reaches nothing.
    let body = plain(&page.body);
    let report = body.split("href=\"/answers/").nth(1).unwrap().split('"').next().unwrap();
    let report = server.get(&format!("/answers/{report}"));
    assert_eq!(report.code, 200);
    assert!(report.head.contains("content-security-policy: sandbox allow-scripts"), "{}", report.head);
    assert!(report.body.contains("vegaEmbed") && report.body.contains("times as fast as slow-start"));
}

#[test]
fn runs_are_told_as_they_are_simulated_and_the_answer_is_that_of_the_command() {
    let server = Running::here(None);
    let events = server.events(SHORT);
    let names: Vec<&str> = events.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names[..3], ["asked", "run", "run"]);
    assert!(names[3..names.len() - 1].iter().all(|name| *name == "times") && names.len() > 4, "{names:?}");
    assert_eq!(names.last(), Some(&"answer"));
    let of =
        |name: &str| -> Vec<&Value> { events.iter().filter(|(one, _)| one == name).map(|(_, data)| data).collect() };
    let times: usize = of("times").iter().map(|data| data["times"].as_array().unwrap().len()).sum();
    assert_eq!(times, 10, "each run");
    for run in of("run") {
        for series in ["sent", "cwnd", "in_flight", "queue", "causes"] {
            assert!(run[series].as_array().unwrap().len() > 3, "{series}");
        }
    }
    let arguments =
        ["compare", "--link", "lte", "--size", "70KB", "--scheme", "slow-start", "hystart", "--reps", "5", "--json"];
    let of_command = flowstart(&arguments).assert().success();
    let of_command: Value = serde_json::from_slice(&of_command.get_output().stdout).unwrap();
    let report = of("answer")[0]["report"].as_str().unwrap().to_owned();
    let beside = |name: &str| server.get(&report.replace("report.html", name));
    let summary: Value = serde_json::from_str(&beside("summary.json").body).unwrap();
    assert_eq!(summary, of_command);
    let shown = plain(of("answer")[0]["html"].as_str().unwrap());
    assert!(shown.contains(summary["answer"].as_str().unwrap()), "{shown}");
    assert_eq!(beside("flows.csv").body.lines().count(), 11);
    assert_eq!(beside("../secret").code, 404);
    // A kept answer is told in the same way.
    let again: Vec<String> = server.events(SHORT).into_iter().map(|(name, _)| name).collect();
    assert_eq!(again, ["asked", "run", "run", "times", "answer"]);
}

#[test]
fn bad_questions_are_refused_with_what_is_allowed() {
    let server = Running::here(None);
    let base = "link=dsl-fast&scheme=slow-start";
    for (query, parts) in [
        (format!("{base}&size=2MB&reps=1000000"), ["reps `1000000`", "1 to 1000"]),
        (format!("{base}&size=1000000000B"), ["size `1000000000B`", "100 MB"]),
        (format!("{base}&size=1GB"), ["size `1GB`", "100 MB"]),
        ("link=/etc/passwd&size=2MB&scheme=slow-start".to_owned(), ["link `/etc/passwd`", "list links"]),
        ("link=trace%3D/etc/passwd&size=2MB&scheme=slow-start".to_owned(), ["/etc/passwd", "without files"]),
        (format!("{base}&size=2MB&out=/tmp/x"), ["`out`", "allowed are"]),
        (format!("{base}&size=2MB&scheme=%ff%fe"), ["scheme", "list schemes"]),
        (format!("{base}&size=2MB&title=%00"), ["title", "control character"]),
    ] {
        for address in [format!("/events?{query}"), format!("/?{query}"), format!("/question.toml?{query}")] {
            let told = server.get(&address);
            let text = plain(&told.body);
            assert!(
                told.code == 400 && parts.iter().all(|part| text.contains(part)),
                "{address}: {} {text}",
                told.code
            );
        }
    }
    // The page still has a form to go on with.
    assert!(server.get("/?reps=0").body.contains("id=\"question\""));
    for (query, part) in
        [("cell=9", "0 to 2"), ("cell=x", "whole numbers"), ("rep=1000", "0 to 9"), ("link=x", "link `x`")]
    {
        let told = server.get(&format!("/packets?{query}"));
        assert!(told.code == 400 && told.body.contains(part), "{query}: {}", told.body);
    }
    assert_eq!(server.get(&format!("/?title={}", "x".repeat(20_000))).code, 400);
    assert!([0, 400, 414, 431].contains(&server.get(&format!("/?title={}", "x".repeat(500_000))).code));
    assert_eq!(server.get("/nothing").code, 404);
    assert_eq!(server.ask("DELETE", "/", &[], "").code, 405);
    assert_eq!(server.ask("GET", "/question", &[], "").code, 404);
    // It is still there.
    assert_eq!(server.get("/").code, 200);
}

#[test]
fn a_study_file_carries_the_question_in_both_directions() {
    let server = Running::here(None);
    let file = server.get(&format!("/question.toml?{SHORT}"));
    assert!(file.head.contains("attachment; filename=\"question.toml\""), "{}", file.head);
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("question.toml"), &file.body).unwrap();
    let ran = flowstart(&["run", "question.toml", "--json"]).current_dir(&folder).assert().success();
    let ran: Value = serde_json::from_slice(&ran.get_output().stdout).unwrap();
    let events = server.events(SHORT);
    let shown = plain(events.last().unwrap().1["html"].as_str().unwrap());
    assert!(shown.contains(ran["answer"].as_str().unwrap()), "{shown}");
    let posted = server.ask("POST", "/question", &[], &file.body);
    assert_eq!((posted.code, &*posted.body), (200, &*format!("/?{SHORT}")));
    let form = format!("file={}", file.body.replace('%', "%25").replace('&', "%26").replace('+', "%2B"));
    let kind = "content-type: application/x-www-form-urlencoded";
    let led = server.ask("POST", "/question", &[kind], &form);
    assert!(led.code == 303 && led.head.contains(&format!("location: /?{SHORT}").to_lowercase()), "{}", led.head);
    for (text, part) in [
        ("link = [", "study file: "),
        ("link = [\"trace=/etc/passwd\"]\nscheme = [\"slow-start\"]", "without files"),
        ("link = [\"lte\"]\nscheme = [\"slow-start\"]\nsize = [\"1KB\"]\nreps = 99999", "1 to 1000"),
        ("\u{0}", "study file: "),
    ] {
        let told = server.ask("POST", "/question", &[], text);
        assert!(told.code == 400 && told.body.contains(part), "{text}: {}", told.body);
    }
    let long = server.ask("POST", "/question", &[], &"#".repeat(200_000));
    assert!([0, 413].contains(&long.code), "{}", long.code);
    assert_eq!(server.ask("POST", "/question", &["origin: http://evil.example"], &file.body).code, 403);
}

#[test]
fn who_goes_takes_the_runs_along() {
    let server = Running::here(None);
    // As many as there are places, and some that wait.
    let mut held: Vec<TcpStream> = (0..5)
        .map(|seed| {
            let mut stream = server.connect();
            write!(stream, "GET /events?{LONG}&seed={seed} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            stream
        })
        .collect();
    let mut first = [0; 12];
    held[0].read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    std::thread::sleep(Duration::from_millis(500));
    drop(held);
    let began = Instant::now();
    let events = server.events(SHORT);
    assert_eq!(events.last().unwrap().0, "answer");
    // Each of the long ones takes a minute or more.
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
}

#[test]
fn names_that_are_given_this_machine_and_pages_of_others_are_refused() {
    let server = Running::here(None);
    assert_eq!(server.ask("GET", "/", &["host: evil.example"], "").code, 421);
    assert_eq!(server.ask("GET", "/", &["host: 127.0.0.1:1"], "").code, 200);
    let foreign = ["sec-fetch-site: cross-site", "sec-fetch-mode: no-cors"];
    assert_eq!(server.ask("GET", &format!("/events?{SHORT}"), &foreign, "").code, 403);
    for (dest, code) in [("sec-fetch-dest: document", 200), ("sec-fetch-dest: iframe", 403)] {
        let led = ["sec-fetch-site: cross-site", "sec-fetch-mode: navigate", dest];
        assert_eq!(server.ask("GET", "/", &led, "").code, code, "{dest}");
    }
}

#[test]
fn elsewhere_than_on_the_loopback_a_token_is_needed() {
    let server = Running::start(&["--listen", "0.0.0.0:0"]);
    let token = server.url.split_once("?token=").unwrap().1.to_owned();
    assert!(token.len() >= 32, "{}", server.url);
    for address in ["/", "/style.css", "/?token=", "/?token=0", "/results/"] {
        assert_eq!(server.get(address).code, 401, "{address}");
    }
    let led = server.get(&format!("/?token={token}&reps=3"));
    assert!(led.code == 303 && led.head.contains("location: /?reps=3"), "{}", led.head);
    assert!(
        led.head.contains(&format!("set-cookie: token={token}; path=/; httponly; samesite=strict")),
        "{}",
        led.head
    );
    assert_eq!(server.ask("GET", "/", &[&format!("cookie: token={token}")], "").code, 200);
    assert_eq!(server.ask("GET", "/", &["cookie: token=0"], "").code, 401);
    // Two servers have two tokens.
    assert_ne!(Running::start(&["--listen", "0.0.0.0:0"]).url, server.url);
}

#[test]
fn results_open_alone_and_beside_each_other_and_nothing_outside_of_their_folder() {
    let outer = TempDir::new().unwrap();
    let folder = outer.path().join("results");
    fs::create_dir(&folder).unwrap();
    results(&folder, "before", "1");
    results(&folder, "after", "1");
    results(&folder, "other", "2");
    fs::create_dir(folder.join("record")).unwrap();
    fs::write(folder.join("record/record.toml"), "command = \"flowstart run x --json\"").unwrap();
    fs::write(folder.join("record/cells.csv"), "cell,fct_ms\nlte/taildrop,12.5\n").unwrap();
    fs::write(outer.path().join("secret"), "treasure").unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(outer.path(), folder.join("out")).unwrap();
        std::os::unix::fs::symlink("/etc", folder.join("etc")).unwrap();
    }
    let server = Running::here(Some(&folder));
    let list = plain(&server.get("/results/").body);
    for name in ["after", "before", "other", "record"] {
        assert!(list.contains(&format!("href=\"/results/{name}/\"")), "{name}: {list}");
    }
    assert!(!list.contains("/results/etc") && !list.contains("/results/out"), "{list}");
    let page = server.get("/results/before/");
    assert!(page.code == 200 && page.body.contains("Ask this question in the lab"), "{}", page.body);
    let report = server.get("/results/before/report.html");
    assert!(report.code == 200 && report.head.contains("sandbox allow-scripts"), "{}", report.head);
    assert_eq!(report.body, fs::read_to_string(folder.join("before/report.html")).unwrap());
    assert!(server.get("/results/before/flows.csv").head.contains("attachment"));
    assert!(server.get("/results/record/").body.contains("12.5"));
    // A report that is missing is made anew.
    fs::remove_file(folder.join("other/report.html")).unwrap();
    assert!(server.get("/results/other/report.html").body.contains("vegaEmbed"));
    let same = server.get("/beside?before=before&after=after");
    assert!(same.code == 200 && same.body.contains("All that changed"), "{}", same.body);
    assert!(server.get("/change.html?before=before&after=after").head.contains("sandbox allow-scripts"));
    let different = server.get("/beside?before=before&after=other");
    assert!(different.code == 200 && different.body.contains("cannot be said"), "{}", different.body);
    let why = different.body.split("cannot be said").nth(1).unwrap().split("<a ").next().unwrap();
    let place = folder.canonicalize().unwrap().display().to_string();
    assert!(why.contains("seed") && !plain(why).contains(&place), "{why}");
    assert!(server.get("/beside?before=record&after=before").body.contains("record.html"));
    for address in [
        "/results/../secret",
        "/results/..%2fsecret/",
        "/results/%2e%2e/secret",
        "/results/%2e%2e/",
        "/results//etc/",
        "/results/out/",
        "/results/out/secret",
        "/results/etc/",
        "/results/before/../../secret",
        "/results/before/..%2f..%2fsecret",
        "/results/nothing/",
        "/beside?before=..&after=before",
        "/beside?before=/etc&after=before",
        "/change.html?before=before&after=out",
        "/beside",
    ] {
        let told = server.get(address);
        assert!(told.code == 404 && !told.body.contains("treasure"), "{address}: {} {}", told.code, told.body);
    }
    // Without a folder there is nothing to show.
    assert_eq!(Running::here(None).get("/results/").code, 404);
}

#[test]
fn the_packets_of_a_run_are_there_to_be_stepped_through() {
    let server = Running::here(None);
    let page = server.get(&format!("/packets?{SHORT}&cell=1&rep=4"));
    assert_eq!(page.code, 200, "{}", page.body);
    let start = page.body.split("id=\"start\">").nth(1).unwrap().split("</script>").next().unwrap();
    let start: Value = serde_json::from_str(start).unwrap();
    assert_eq!(start["scheme"], "hystart");
    let packets = start["run"]["packets"].as_array().unwrap();
    let of = |kind: &str| packets.iter().filter(|packet| packet["carries"] == kind).count();
    assert!(of("data") > 40 && of("ack") > 20 && of("handshake") > 1, "{} {}", of("data"), of("ack"));
}

#[test]
fn arguments_that_cannot_be_used_are_refused() {
    for (arguments, part) in [
        (&["--listen", "nowhere"][..], "--listen"),
        (&["--listen", "192.0.2.1:80"], "--listen `192.0.2.1:80`"),
        (&["--results", "/no/such/folder"], "--results `/no/such/folder`"),
        (&["--jobs", "9999"], "--jobs"),
    ] {
        flowstart(&[&["ui"], arguments].concat()).assert().code(2).stdout("").stderr(contains(part));
    }
    let occupied = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = occupied.local_addr().unwrap().to_string();
    let told = flowstart(&["ui", "--listen", &address]).assert().code(2);
    told.stderr(contains("--listen").and(contains(address)));
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_server_while_runs_go_on() {
    let mut server = Running::here(None);
    let mut stream = server.connect();
    write!(stream, "GET /events?{LONG} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    let pid = server.process.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let began = Instant::now();
    while server.process.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(20), "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
}
