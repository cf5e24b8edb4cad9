//! The options of Quick-Start in C are those of `flowstart-core`, and so is what a sender makes of an answer.
//!
//! It takes a compiler of C.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use flowstart_core::quick_start::host::{Refusal, Request, respond};
use flowstart_core::quick_start::nonce::Nonce;
use flowstart_core::quick_start::rate::{RateCode, RateEncoding, Rounding};
use flowstart_core::quick_start::wire::{IpOption, IpVersion, Response};
use flowstart_core::rng::Substream;

/// What the program in C says to these lines.
fn said(lines: &str) -> Vec<String> {
    let folder = tempfile::TempDir::new().unwrap();
    let made = folder.path().join("options");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    compiler.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"]);
    compiler.arg("-I").arg(here.join("bpf")).arg("-o").arg(&made).arg(here.join("tests/options/driver.c"));
    assert!(compiler.status().unwrap().success());
    let mut child = Command::new(made).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // Told while it answers, for neither pipe holds all.
    let (mut stdin, lines) = (child.stdin.take().unwrap(), lines.to_owned());
    let telling = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let told = child.wait_with_output().unwrap();
    telling.join().unwrap().unwrap();
    assert!(told.status.success());
    String::from_utf8(told.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn in_hex(bytes: [u8; 8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[test]
fn requests_answers_and_what_is_made_of_them_are_those_of_the_core() {
    let mut rng = Substream::new(7, "options", 0);
    let (mut lines, mut expected) = (String::new(), Vec::new());
    let mut told = [0; 5];
    for number in 0..4000_u32 {
        let asked = RateCode::from_bits((1 + number % 15) as u8);
        let ip_ttl = rng.next_u64() as u8;
        let bits = number % 3;
        let request = Request::new(asked.rate(), Rounding::Up, RateEncoding::Exponential, ip_ttl, &mut rng).unwrap();
        let request = request.comparing(bits);
        let IpOption::RateRequest { rate, ttl, nonce } = request.option() else { panic!("a request") };
        writeln!(lines, "ask {} {ttl} {}", rate.bits(), nonce.bits()).unwrap();
        expected.push(in_hex(request.option().emit(IpVersion::V4)));
        // Routers reduce the rate, some take no part, and some receivers lie.
        let hops = (rng.next_u64() % 5) as u8;
        let left = RateCode::from_bits((rng.next_u64() % u64::from(asked.bits() + 1)) as u8);
        let absent = u8::from(rng.next_u64().is_multiple_of(4));
        let arrived = IpOption::RateRequest {
            rate: left,
            ttl: ttl.wrapping_sub(hops),
            nonce: nonce.reduced(asked, left, &mut rng),
        };
        let arrived_ttl = ip_ttl.wrapping_sub(hops + absent);
        let response = respond(arrived, arrived_ttl).unwrap();
        writeln!(lines, "respond {} {arrived_ttl}", in_hex(arrived.emit(IpVersion::V4))).unwrap();
        expected.push(in_hex(response.emit()));
        let lie = if rng.next_u64().is_multiple_of(3) { (rng.next_u64() % 3) as u8 } else { 0 };
        let response = Response { rate: RateCode::from_bits((left.bits() + lie).min(15)), ..response };
        let compared = [0, 0x2aaa_aaaa_u32, 0x3fff_ffff][bits as usize];
        let ttl_diff = ip_ttl.wrapping_sub(ttl);
        let (code, nonce) = (asked.bits(), Nonce::bits(nonce));
        writeln!(lines, "verify {code} {ttl_diff} {nonce} {compared} {}", in_hex(response.emit())).unwrap();
        let answer = match request.verify(&response) {
            Ok(_) => 0,
            Err(Refusal::Denied) => 1,
            Err(Refusal::TooHigh) => 2,
            Err(Refusal::TtlDiff) => 3,
            Err(Refusal::Nonce) => 4,
        };
        told[answer] += 1;
        expected.push(format!("{answer} {}", response.rate.rate().bits_per_sec() / 8));
    }
    assert!(told.iter().all(|times| *times > 50), "{told:?}");
    assert_eq!(said(&lines), expected);
}
