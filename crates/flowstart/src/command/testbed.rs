//! `flowstart testbed`.

use std::io::{self, Read};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use flowstart_core::time::Duration as Span;
use flowstart_emu::dumbbell::{CLIENTS, Dumbbell, SERVERS};
use flowstart_emu::router::Told;
use serde_json::json;

use super::real_link::real_link;
use super::relay::until_signal;
use super::router::{as_json, in_words, warn_of_slow_host};
use crate::failure::{FAILED, Failure};
use crate::output::print;
use crate::quic::std_time;
use crate::testbed::path;

/// The port that stands for `{port}`. Nothing else listens in a new namespace.
const PORT: u16 = 5201;
/// How often it is looked whether a program has ended.
const LOOK: Duration = Duration::from_millis(5);
/// Bytes of a client's output that a line of JSON has.
const MOST_KEPT: u64 = 1_000_000;
/// Most repetitions.
const MOST: u32 = 10_000;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart testbed --link lte --server 'iperf3 -s -1 -p {port}' \\
    --client 'iperf3 -c {server} -p {port} -R -n 2M -C cubic'
  flowstart testbed --link rate=10mbit,rtt=200ms,buffer=1bdp --reps 5 --json \\
    --ready-after 2s \\
    --server 'python3 -m http.server -d /usr/bin {port}' \\
    --client 'curl -so /dev/null http://{server}:{port}/git'

Both programs are those of a shell (sh -c). Each runs in a network namespace of its own, as root; {server} stands for \
the address of the server's, {port} for a port that is free there, {client} for the address of the client's. Between \
them is the link with its AQM, in real time, as with flowstart router; what the server sends crosses --link, the rest \
its way back. When the client has ended, the server is ended, and all of it is gone: nothing has a name outside. Every \
repetition has new namespaces and a new link. Without --json the client's output passes, and what took place stands \
beside it on stderr. The server has to stay in the foreground. Exit code 1: a client failed or was ended, or the server \
failed before it.")]
pub(crate) struct Arguments {
    /// The link: a preset, a preset with keys, or keys (list links, list link-options).
    #[arg(long)]
    link: String,
    /// The queue discipline of the link to clients (list aqms).
    #[arg(long, default_value = "taildrop")]
    aqm: String,
    /// What to run on the side of servers.
    #[arg(long, value_name = "COMMAND")]
    server: String,
    /// What to run on the side of clients.
    #[arg(long, value_name = "COMMAND")]
    client: String,
    /// Time that the server gets before the client begins.
    #[arg(long, value_name = "TIME", default_value = "300ms")]
    ready_after: Span,
    /// Longest time of a client.
    #[arg(long, value_name = "TIME", default_value = "300s")]
    limit: Span,
    /// Repetitions, 1 to 10000.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST)))]
    reps: u32,
    /// Seed of loss, jitter and of the queue's random numbers; each repetition adds one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A line of JSON per repetition: times, exit, output, and what the link counted.
    #[arg(long)]
    json: bool,
}

/// What a client did.
struct Ran {
    /// How the server ended, if it did so before the client.
    server: Option<ExitStatus>,
    status: ExitStatus,
    taken: Duration,
    /// What it wrote, where that is kept.
    wrote: String,
    /// Bytes that it wrote beyond that.
    unkept: u64,
    /// Whether the time was over, or a signal came.
    is_cut_off: bool,
}

/// Ends its program when it is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Arguments {
    /// A command of the user in a shell. All that it starts ends with it, and it ends with the thread that starts it:
    /// the shell is the first process of a namespace of processes.
    fn command(text: &str) -> Command {
        let words =
            [("{server}", SERVERS.to_string()), ("{client}", CLIENTS.to_string()), ("{port}", PORT.to_string())];
        let text = words.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value));
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "unshare", "--fork", "--pid", "--kill-child", "--", "sh", "-c"]);
        // A new namespace has no way to itself.
        command.arg(format!("ip link set lo up\n{text}"));
        command
    }

    fn run(&self, dumbbell: &Dumbbell, stop: &AtomicBool) -> io::Result<Ran> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let serving = scope.spawn(|| {
                dumbbell.servers.within(|| {
                    let mut server = Self::command(&self.server);
                    let mut server = Ended(server.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
                    while !is_over.load(Ordering::Relaxed) {
                        if let Some(status) = server.0.try_wait()? {
                            return Ok(Some(status));
                        }
                        thread::sleep(LOOK);
                    }
                    Ok(None)
                })
            });
            let (began, ready) = (Instant::now(), std_time(self.ready_after));
            while began.elapsed() < ready && !stop.load(Ordering::Relaxed) {
                thread::sleep(LOOK.min(ready.saturating_sub(began.elapsed())));
            }
            let ran = dumbbell.clients.within(|| self.client(stop));
            is_over.store(true, Ordering::Relaxed);
            let server = serving.join().map_err(|_| io::Error::other("the server's thread has panicked"))??;
            Ok(Ran { server, ..ran? })
        })
    }

    fn client(&self, stop: &AtomicBool) -> io::Result<Ran> {
        let mut command = Self::command(&self.client);
        command.stdin(Stdio::null());
        if self.json {
            command.stdout(Stdio::piped());
        }
        let began = Instant::now();
        let mut client = Ended(command.spawn()?);
        let reading = client.0.stdout.take().map(|mut stdout| {
            thread::spawn(move || {
                let mut wrote = Vec::new();
                // What is missing, the program did not write.
                drop(io::copy(&mut (&mut stdout).take(MOST_KEPT), &mut wrote));
                let unkept = io::copy(&mut stdout, &mut io::sink()).unwrap_or(0);
                (String::from_utf8_lossy(&wrote).into_owned(), unkept)
            })
        });
        let limit = std_time(self.limit);
        let mut is_cut_off = false;
        let status = loop {
            if let Some(status) = client.0.try_wait()? {
                break status;
            }
            if stop.load(Ordering::Relaxed) || began.elapsed() >= limit {
                is_cut_off = true;
                client.0.kill()?;
                break client.0.wait()?;
            }
            thread::sleep(LOOK);
        };
        let taken = began.elapsed();
        let (wrote, unkept) = reading.and_then(|reading| reading.join().ok()).unwrap_or_default();
        Ok(Ran { server: None, status, taken, wrote, unkept, is_cut_off })
    }

    fn say(&self, rep: u32, ran: &Ran, told: &Told) -> Result<(), Failure> {
        let (seconds, exit) = (ran.taken.as_secs_f64(), ran.status.code());
        if self.json {
            let line = json!({
                "rep": rep,
                "seconds": seconds,
                "exit": exit,
                "cut_off": ran.is_cut_off,
                "output": ran.wrote,
                "output_left_out_bytes": ran.unkept,
                "server_exit": ran.server.map(|status| status.code()),
                "link": as_json(told),
            });
            return print(&format!("{line}\n"));
        }
        let how = match exit {
            _ if ran.is_cut_off => "it was ended".to_owned(),
            Some(code) => format!("exit code {code}"),
            None => "a signal ended it".to_owned(),
        };
        if let Some(server) = ran.server.filter(|server| !server.success()) {
            tell!("the server had ended before, with {server}; it has to stay in the foreground");
        }
        tell!("the client took {seconds:.3} s, {how}; {}", in_words(told));
        Ok(())
    }
}

/// Runs both, and says what took place.
pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (link, aqm) = real_link("testbed", &arguments.link, None, &arguments.aqm)?;
    let stop = until_signal()?;
    let mut code = ExitCode::SUCCESS;
    for rep in 0..arguments.reps {
        let seed = arguments.seed.wrapping_add(u64::from(rep));
        let dumbbell =
            Dumbbell::new(&path(&link, &aqm, false, seed)).map_err(|error| Failure::Other(error.to_string()))?;
        let ran = arguments.run(&dumbbell, &stop);
        let told = dumbbell.end().map_err(|error| Failure::Other(error.to_string()))?;
        let ran = ran.map_err(|error| {
            Failure::Other(format!("setpriv and unshare (util-linux), which start programs: {error}"))
        })?;
        arguments.say(rep, &ran, &told)?;
        warn_of_slow_host(&told.late);
        let has_server_failed = ran.server.is_some_and(|server| !server.success());
        if !ran.status.success() || ran.is_cut_off || has_server_failed || stop.load(Ordering::Relaxed) {
            code = ExitCode::from(FAILED);
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(code)
}
