//! `flowstart replay`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::{CellAlignment, Table, presets};
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::path::{AccessTechnology, Hint};
use flowstart_core::units::{Bytes, Rate};
use flowstart_lab::spec::link::{Saved, stated_rate};
use flowstart_serve::printable;
use flowstart_serve::replay::{Exit, How, Launch, Question, ReplayError, Replayed, Round, Row, avoidance_of, replay};

use crate::attention::Waiting;
use crate::failure::Failure;
use crate::output::{fitted, print, wrapped};
use crate::quic;

/// Rounds that the table shows, and how many of those that are not certain.
const SHOWN: usize = 20;
const SHOWN_BEHIND: usize = 3;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Replay a qlog file: what would a scheme have decided?
    Qlog(QlogArguments),
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart replay qlog connection.sqlog --scheme search
  flowstart replay qlog connection.qlog --scheme blitzstart --hint 40mbit
  flowstart replay qlog connection.sqlog --scheme careful-resume \\
    --saved 40mbit/50ms/60s --json
  flowstart replay qlog connection.sqlog --scheme hystart --csv > rows.csv

The file is a qlog of QUIC, as flowstart serve, flowstart trace, noq, quic-go and aioquic write it: records one after \
the other (.sqlog), or one object with `traces` (.qlog). The controller is told what the recorded sender sent, and \
what was acknowledged, marked and lost. The output is its window and rate, beside those of the recorded sender.

A replay has a limit: acknowledgements answer what the recorded sender sent. What it says is what the scheme would \
have done up to the first event at which the scheme would have sent more or less, by more than a packet; the answer \
says where that is. What follows is not known from the file: `flowstart recommend --from-qlog FILE` simulates it. \
Exit code: 0 done, also for a file that is cut, 2 bad input.")]
struct QlogArguments {
    /// qlog file of one connection, by its data sender.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Startup scheme. Such as search, or blitzstart:estimate=1.5; `flowstart list schemes` shows all.
    #[arg(long, value_name = "SCHEME")]
    scheme: String,
    /// Congestion avoidance. `flowstart list avoidance` shows all. Default: what `flowstart serve` has written, or
    /// cubic.
    #[arg(long, value_name = "AVOIDANCE")]
    avoidance: Option<String>,
    /// The client's hint. Such as 40mbit.
    #[arg(long, value_name = "RATE", value_parser = stated_rate)]
    hint: Option<Rate>,
    /// What an earlier connection saved. Such as 40mbit/50ms/60s.
    #[arg(long, value_name = "RATE/RTT/AGE", value_parser = str::parse::<Saved>)]
    saved: Option<Saved>,
    /// What a capacity oracle answers. Such as 40mbit.
    #[arg(long, value_name = "RATE", value_parser = stated_rate)]
    oracle: Option<Rate>,
    /// Print JSON instead of a table.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print a row for every acknowledgement, as CSV.
    #[arg(long)]
    csv: bool,
}

impl QlogArguments {
    /// The congestion avoidance: what is stated, what the file says, or CUBIC.
    fn avoidance(&self) -> Result<(String, AvoidanceConfig), Failure> {
        if let Some(stated) = &self.avoidance {
            return Ok((stated.clone(), quic::avoidance(stated)?));
        }
        let Some(text) = avoidance_of(&self.file) else {
            return Ok(("cubic".to_owned(), quic::avoidance("cubic")?));
        };
        let file = self.file.display();
        let refused = |_| {
            let told = format!(
                "{file}: flowstart:connection: avoidance `{text}` is none that this version knows; --avoidance states one"
            );
            Failure::Input(printable(&told))
        };
        let config = quic::avoidance(&text).map_err(refused)?;
        Ok((text, config))
    }
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let What::Qlog(arguments) = &arguments.what;
    let (avoidance, config) = arguments.avoidance()?;
    let question = Question {
        startup: quic::startup("scheme", &arguments.scheme)?,
        avoidance: config,
        hint: arguments.hint.map(|bandwidth| Hint { bandwidth, technology: AccessTechnology::Unknown }),
        saved: arguments.saved.map(Saved::path),
        oracle: arguments.oracle,
    };
    if arguments.csv {
        return rows(arguments, &question);
    }
    let waiting = Waiting::begin("replaying");
    let replayed = replay(&arguments.file, &question, &mut |_| {}).map_err(|error| refused(arguments, error))?;
    drop(waiting);
    warn(&arguments.file, &replayed);
    if arguments.json {
        let mut value = serde_json::json!(replayed);
        value["scheme"] = arguments.scheme.clone().into();
        value["avoidance"] = avoidance.clone().into();
        value["answer"] = answer(arguments, &avoidance, &replayed).into();
        let text = serde_json::to_string_pretty(&value).map_err(|error| Failure::Other(error.to_string()))?;
        print(&format!("{text}\n"))?;
    } else {
        let sentences: String =
            answer(arguments, &avoidance, &replayed).iter().map(|sentence| wrapped(sentence)).collect();
        print(&format!("{sentences}{}", table(&replayed)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A row for every acknowledgement, written as the file is read.
fn rows(arguments: &QlogArguments, question: &Question) -> Result<ExitCode, Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut written = writeln!(out, "{}", COLUMNS.join(","));
    let replayed = replay(&arguments.file, question, &mut |row| {
        if written.is_ok() {
            written = write_row(&mut out, row);
        }
    });
    match written.and_then(|()| out.flush()) {
        // The reader has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            return Err(Failure::Other(format!("stdout: {error}")));
        }
        _ => {}
    }
    warn(&arguments.file, &replayed.map_err(|error| refused(arguments, error))?);
    Ok(ExitCode::SUCCESS)
}

/// The columns of the rows.
const COLUMNS: [&str; 13] = [
    "time_ms",
    "event",
    "delivered_bytes",
    "lost_bytes",
    "in_flight_bytes",
    "cwnd_bytes",
    "ssthresh_bytes",
    "pacing_rate_bps",
    "in_startup",
    "certain",
    "recorded_cwnd_bytes",
    "recorded_ssthresh_bytes",
    "recorded_pacing_rate_bps",
];

fn write_row(out: &mut dyn Write, row: &Row) -> io::Result<()> {
    let some = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    writeln!(
        out,
        "{},{},{},{},{},{},{},{},{},{},{},{},{}",
        row.time_ms,
        row.event,
        row.delivered_bytes,
        row.lost_bytes,
        row.in_flight_bytes,
        row.cwnd_bytes,
        some(row.ssthresh_bytes),
        some(row.pacing_rate_bps),
        row.in_startup,
        row.certain,
        some(row.recorded_cwnd_bytes),
        some(row.recorded_ssthresh_bytes),
        some(row.recorded_pacing_rate_bps),
    )
}

fn refused(arguments: &QlogArguments, error: ReplayError) -> Failure {
    match error {
        ReplayError::Scheme(error) => Failure::Input(format!("--scheme `{}`: {error}", arguments.scheme)),
        other => Failure::Input(printable(&other.to_string())),
    }
}

/// Says what of the file could not be used.
fn warn(file: &Path, replayed: &Replayed) {
    let file = printable(&file.display().to_string());
    for cut in &replayed.cuts {
        let kept = format!("{} whole events are used", replayed.events);
        tell!("warning: {file}:{}: {} has no end, as in a file that is cut; {kept}", cut.place, cut.missing);
    }
    let totals = &replayed.totals;
    if totals.unfollowed > 0 {
        tell!("warning: {file}: {} packets have no number or no type, and are left out", totals.unfollowed);
    }
}

/// What the replay says, the answer first.
fn answer(arguments: &QlogArguments, avoidance: &str, replayed: &Replayed) -> Vec<String> {
    let scheme = &*arguments.scheme;
    let Some(launch) = &replayed.launch else {
        let why = "the file has no acknowledgement of a packet before the first of the application, nor a loss";
        return vec![format!("{scheme} would not have launched: {why}.")];
    };
    let valid = valid(scheme, launch, replayed, &arguments.file);
    vec![launched(scheme, launch, replayed), valid, ended(avoidance, replayed)]
}

fn launched(scheme: &str, launch: &Launch, replayed: &Replayed) -> String {
    let segment = replayed.given.segment_bytes;
    let window = |bytes: u64| format!("{} ({:.1} packets)", Bytes::new(bytes), bytes as f64 / segment as f64);
    let rate = |rate: Option<u64>| match rate.filter(|rate| *rate < UNPACED) {
        Some(rate) => format!(", paced at {}", mbit(rate)),
        None => String::new(),
    };
    let recorded = match launch.recorded_cwnd_bytes {
        Some(cwnd) => {
            let paced = rate(launch.recorded_pacing_rate_bps);
            format!("the recorded sender had {}{paced}", window(cwnd))
        }
        None => "the file does not say what the recorded window was".to_owned(),
    };
    let why = match &launch.depends_on[..] {
        [] => "without anything that others know of the path".to_owned(),
        used => format!("because of {}", used.join(" and ")),
    };
    let rtt = launch.handshake_rtt_ms.map_or(String::new(), |rtt| format!(", behind a handshake of {rtt:.1} ms"));
    format!(
        "{scheme} would have launched {:.1} ms after the first event{rtt}, with {}{}, {why}; {recorded}.",
        launch.time_ms,
        window(launch.cwnd_bytes),
        rate(launch.pacing_rate_bps),
    )
}

/// Rates from which on a sender does not pace.
const UNPACED: u64 = 100_000_000_000;

fn mbit(rate: u64) -> String {
    format!("{:.2} Mbit/s", rate as f64 / 1e6)
}

/// What a difference does not show.
const UNCOMPARED: &str =
    "How packets are paced is not compared: within a window some would have left earlier or later.";

/// Up to where the rest holds.
fn valid(scheme: &str, launch: &Launch, replayed: &Replayed, file: &Path) -> String {
    let only_less = match replayed.has_recorded_window {
        true => "",
        false => {
            " The file does not say what the recorded window was, so it cannot show where more would have been sent."
        }
    };
    let Some(differs) = &replayed.differs else {
        return format!(
            "It would have sent the same bytes up to the end of the file ({:.1} ms), as far as the file shows, so the \
             rest is what it would have done. {UNCOMPARED}{only_less}",
            replayed.duration_ms
        );
    };
    let (in_flight, cwnd) = (Bytes::new(differs.in_flight_bytes), Bytes::new(differs.cwnd_bytes));
    let how = match differs.how {
        How::More => format!("more: {in_flight} in flight filled the recorded window, and {scheme} had {cwnd}"),
        How::Less => format!("less: with {in_flight} in flight another packet left, and {scheme} had {cwnd}"),
    };
    format!(
        "Its window is certain up to {:.1} ms, {:.1} ms after the launch (event {}, line {}, packet {}). There it \
         would have sent {how}. {UNCOMPARED} What follows depends on acknowledgements that the file does not have; \
         `flowstart recommend --from-qlog {}` simulates transfers over the path that it shows.{only_less}",
        differs.time_ms,
        differs.time_ms - launch.time_ms,
        differs.event,
        differs.line,
        differs.packet_number,
        printable(&file.display().to_string()),
    )
}

fn ended(avoidance: &str, replayed: &Replayed) -> String {
    let left = |exit: &Exit| {
        let cwnd = exit.cwnd_bytes.map_or(String::new(), |cwnd| format!(" with a window of {}", Bytes::new(cwnd)));
        let ssthresh = match exit.ssthresh_bytes {
            Some(ssthresh) => format!(" and ssthresh {}", Bytes::new(ssthresh)),
            None => " and no ssthresh".to_owned(),
        };
        format!("at {:.1} ms ({}){cwnd}{ssthresh}", exit.time_ms, printable(&exit.reason))
    };
    let certain = |exit: &Exit| replayed.differs.as_ref().is_none_or(|differs| exit.time_ms <= differs.time_ms);
    let own = match &replayed.exit {
        Some(exit) if certain(exit) => {
            let behind = match replayed.differs {
                Some(_) => {
                    format!("; what differs behind that is {avoidance}'s, unless the recorded sender had it, too")
                }
                None => String::new(),
            };
            format!("Startup would have ended {}{behind}", left(exit))
        }
        _ if replayed.differs.is_some() => "Until then its startup would not have ended".to_owned(),
        _ => "Its startup would not have ended".to_owned(),
    };
    let recorded = match (&replayed.recorded_exit, &replayed.recorded_scheme) {
        (Some(exit), Some(recorded)) => format!("; the recorded {} left it {}", printable(recorded), left(exit)),
        (Some(exit), None) => format!("; the recorded sender left it {}", left(exit)),
        (None, _) => String::new(),
    };
    let totals = &replayed.totals;
    let losses = match (totals.lost, totals.marked) {
        (0, 0) => "No packet was lost".to_owned(),
        (lost, 0) => format!("{lost} of {} packets were lost", totals.sent),
        (lost, marked) => format!("{lost} of {} packets were lost, and {marked} marked", totals.sent),
    };
    format!("{own}{recorded}. {losses}.")
}

/// The rounds, and the losses among them.
fn table(replayed: &Replayed) -> String {
    if replayed.rounds.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(COLUMNS_OF_ROUNDS);
    let certain = replayed.rounds.iter().take_while(|round| round.end.certain).count();
    let shown = replayed.rounds.len().min(SHOWN).min(certain + SHOWN_BEHIND);
    for round in replayed.rounds.iter().take(shown) {
        table.add_row(entries(round));
    }
    for column in table.column_iter_mut().take(COLUMNS_OF_ROUNDS.len() - 1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let left_out = replayed.rounds.len().saturating_sub(shown) as u64 + replayed.rounds_left_out;
    let mut notes = wrapped(
        "KB and Mbit/s at the end of each round trip; acknowledged and lost within it. `was`: recorded. `?`: not known, \
         because it is behind the first difference.",
    );
    if left_out > 0 {
        notes += &format!("{left_out} more rounds; --csv has every acknowledgement.\n");
    }
    format!("{}\n{notes}", fitted(table))
}

/// The columns of the table.
const COLUMNS_OF_ROUNDS: [&str; 9] = ["round", "ms", "acked", "lost", "window", "was", "rate", "was", "phase"];

fn entries(round: &Round) -> [String; 9] {
    let end = &round.end;
    let bytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e3);
    let some = |value: Option<u64>| value.map_or("–".into(), bytes);
    let paced = |rate: Option<u64>| {
        rate.filter(|rate| *rate < UNPACED).map_or("–".into(), |rate| format!("{:.2}", rate as f64 / 1e6))
    };
    let known = |text: String| if end.certain { text } else { "?".into() };
    let phase = if end.in_startup { "startup" } else { "avoidance" };
    [
        round.round.to_string(),
        format!("{:.1}", end.time_ms),
        bytes(end.delivered_bytes),
        bytes(end.lost_bytes),
        known(bytes(end.cwnd_bytes)),
        some(end.recorded_cwnd_bytes),
        known(paced(end.pacing_rate_bps)),
        paced(end.recorded_pacing_rate_bps),
        known(phase.to_owned()),
    ]
}
