//! `flowstart trace`.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, Id};
use flowstart_core::startup::StartupConfig;
use flowstart_lab::perform::Provenance;
use flowstart_lab::report;
use flowstart_lab::results::folder::{self, GrowingFile, MANIFEST};
use flowstart_lab::results::identity::Identity;
use flowstart_lab::results::manifest::Manifest;
use flowstart_lab::run::outcome::FlowOutcome;
use flowstart_lab::spec::STACK;
use flowstart_lab::study::plan::{Cell, Plan};
use flowstart_lab::study::scenario::Scenario;
use flowstart_lab::trace::explained::check_traced;
use flowstart_lab::trace::export::{Columns, Exported, Format, Outputs, Sink, export};
use flowstart_report::{DataFile, Method};

use crate::attention::Waiting;
use crate::command::axes::Axes;
use crate::command::compare::Setup;
use crate::command::run::mixed;
use crate::failure::{FAILED, Failure};
use crate::interruption::leaves_nothing_half_written;
use crate::output::{print, wrapped};

/// The table of events.
const TABLE: &str = "trace.csv";
/// The page.
const PAGE: &str = "trace.html";
/// Why `--pcap` does not go with several schemes.
const ONE_CAPTURE: &str = "--pcap has the packets of one run; give one --scheme, or --out for a capture of each";
/// What a user waits for.
const WRITES: &str = "simulating and writing the trace";
/// Most characters of a scheme in the name of a file.
const LONGEST_STEM: usize = 60;

/// The options that describe a run. A cell of earlier results has them already.
fn description() -> Vec<Id> {
    let described = Setup::augment_args(Axes::<false>::augment_args(Command::new("trace")));
    let options = described.get_arguments().map(|option| option.get_id().clone());
    options.chain([Id::from("scheme")]).collect()
}

#[derive(Debug, Args)]
#[command(
    override_usage = "\
flowstart trace [OPTIONS] --link <LINK> --size <SIZE>
           --scheme <SCHEME>...
       flowstart trace [OPTIONS] --cell <ID> --from <DIR>",
    after_long_help = "\
Examples:
  flowstart trace --link dsl-fast --size 2MB --scheme blitzstart \\
    --competitor cubic --out results/trace
  flowstart trace --link geo --size 200MB --avoidance cubic \\
    --scheme slow-start search:exit=drain,skipped_bins=fill \\
    --transport model-quic:receive_window=256MB --out results/overlay
  flowstart trace --cell dsl-fast/taildrop/2MB/slow-start/cubic --rep 3 \\
    --from results/table1 --out results/trace
  flowstart trace --link 3g --size 70KB --scheme slow-start > packets.csv

Writes trace.html (time-sequence, cwnd, pacing, queue, inner variables of the algorithms), trace.csv (every event), \
trace.sqlog (qlog) and trace.pcapng (packets at both hosts, for Wireshark; with --transport quic the sender's datagrams \
and their TLS secrets) into --out; without --out and --pcap the events go to stdout as CSV. Several schemes share the \
page and trace.csv, which gets a column for them; each has its own trace-SCHEME.sqlog and .pcapng."
)]
pub(crate) struct Arguments {
    /// Startup schemes: a run of each, over the same time axes. With parameters, blitzstart:estimate=1.5. See
    /// `flowstart list schemes`. Not with --cell.
    #[arg(long, num_args = 1.., value_name = "SCHEME", required_unless_present_any = ["cell", "from"])]
    scheme: Vec<String>,
    #[command(flatten)]
    selection: Selection,
    /// Folder for the files; must be new or empty.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also write inner variables of the algorithms, such as CUBIC's `W_max`, to trace.csv and the qlog.
    #[arg(long)]
    variables: bool,
    /// File for only the packets, as pcapng; must be new.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
}

/// Which run to look at; shared with `explain`. Each command has its own `--scheme`.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    #[command(flatten)]
    axes: Axes<false>,
    #[command(flatten)]
    setup: Setup,
    /// Cell of earlier results to replay. Its name is in reports and in summary.json. It replaces the options that
    /// describe a run.
    #[arg(long, value_name = "ID", requires = "from", conflicts_with_all = description())]
    cell: Option<String>,
    /// Repetition to show.
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) rep: u32,
    /// Folder of results with the cell of --cell.
    #[arg(long, value_name = "DIR", requires = "cell")]
    from: Option<PathBuf>,
}

impl Selection {
    /// The plan and its cells: the cell of earlier results, or a cell for each scheme.
    pub(crate) fn cells(&self, schemes: Vec<String>) -> Result<(Plan, Vec<Cell>), Failure> {
        let (plan, cells) = match (&self.cell, &self.from) {
            (Some(id), Some(folder)) => {
                let (plan, cell) = reported(id, folder)?;
                (plan, vec![cell])
            }
            _ => self.described(schemes)?,
        };
        check_traced(&plan, &cells)?;
        if self.rep >= plan.reps.max(1) {
            return Err(Failure::Input(format!("--rep {}: allowed is 0 to {}", self.rep, plan.reps - 1)));
        }
        Ok((plan, cells))
    }

    /// The cells that the options describe.
    fn described(&self, schemes: Vec<String>) -> Result<(Plan, Vec<Cell>), Failure> {
        let mut scenario = Scenario { scheme: schemes, ..self.setup.scenario() };
        self.axes.write(&mut scenario);
        let plan = scenario.plan(Path::new("."))?;
        if plan.transports.len() > 1 {
            let transport = scenario.transport.join(" ");
            let names: Vec<&str> = plan.transports.iter().map(|one| &*one.text).collect();
            let problem = format!("trace and explain show one transport; give {}", names.join(" or "));
            return Err(Failure::Input(format!("--transport `{transport}`: {problem}")));
        }
        mixed(&scenario, &plan, "give --avoidance to choose");
        let cells = plan.cells();
        Ok((plan, cells))
    }
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (plan, cells) = arguments.selection.cells(arguments.scheme.clone())?;
    let rep = arguments.selection.rep;
    if arguments.pcap.is_some() && cells.len() > 1 {
        return Err(Failure::Input(ONE_CAPTURE.into()));
    }
    // The folder of --out may be new.
    if let Some(file) = arguments.pcap.as_ref().filter(|file| file.parent() != arguments.out.as_deref()) {
        Failure::without_folder("--pcap", file)?;
    }
    let _occupied = arguments.out.as_ref().map(|folder| folder::prepare_folder(folder, false)).transpose()?;
    if let Some(file) = &arguments.pcap
        && file.symlink_metadata().is_ok()
    {
        return Err(Failure::Input(format!("--pcap {}: exists already, and nothing is overwritten", file.display())));
    }
    leaves_nothing_half_written();
    let traced = Traced { plan: &plan, cells: &cells, rep, variables: arguments.variables };
    match (&arguments.out, &arguments.pcap) {
        (Some(folder), pcap) => traced.write_folder(folder, pcap.as_deref()),
        (None, Some(file)) => traced.write_packets(file),
        (None, None) => traced.write_table(),
    }
}

/// The runs to trace: of one setting and repetition, a scheme each.
struct Traced<'a> {
    plan: &'a Plan,
    cells: &'a [Cell],
    rep: u32,
    /// Whether the table and the log have inner variables.
    variables: bool,
}

impl Traced<'_> {
    fn scheme(&self, cell: &Cell) -> &str {
        &self.plan.schemes[cell.scheme].text
    }

    /// What the table has beside the events of the run in this place.
    fn columns(&self, place: usize) -> Columns {
        let several = self.cells.len() > 1;
        let scheme = several.then(|| self.scheme(&self.cells[place]).to_owned());
        Columns { scheme, continues: place > 0, variables: self.variables }
    }

    /// Only the packets, of one run.
    fn write_packets(&self, file: &Path) -> Result<ExitCode, Failure> {
        let [cell] = self.cells else {
            return Err(Failure::Input(ONE_CAPTURE.into()));
        };
        let _waiting = Waiting::begin(WRITES);
        let (growing, out) = GrowingFile::create(file)?;
        let outputs = Outputs { pcapng: Some(Box::new(out)), ..Outputs::default() };
        let run = export(self.plan, cell, self.rep, outputs).map_err(|failed| growing.refused(&failed.error))?;
        growing.complete()?;
        Ok(code(&run.outcomes))
    }

    /// Only the events, to stdout.
    fn write_table(&self) -> Result<ExitCode, Failure> {
        // Rows on a terminal are a sign of life themselves.
        let _waiting = (!io::stdout().is_terminal()).then(|| Waiting::begin(WRITES));
        let mut outcomes = Vec::new();
        for (place, cell) in self.cells.iter().enumerate() {
            let csv: Option<Sink> = Some(Box::new(io::stdout()));
            let outputs = Outputs { csv, columns: self.columns(place), ..Outputs::default() };
            match export(self.plan, cell, self.rep, outputs) {
                Ok(run) => outcomes.extend(run.outcomes),
                // The reader has seen enough.
                Err(failed) if failed.error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
                Err(failed) => return Err(Failure::Other(format!("stdout: {}", failed.error))),
            }
        }
        Ok(code(&outcomes))
    }

    /// Writes all files into the folder, and the packets to another file if there is one.
    fn write_folder(&self, folder: &Path, pcap: Option<&Path>) -> Result<ExitCode, Failure> {
        let waiting = Waiting::begin(WRITES);
        let (csv, csv_out) = GrowingFile::create(&folder.join(TABLE))?;
        let stems = self.stems();
        let mut runs = Vec::new();
        for (place, (cell, stem)) in self.cells.iter().zip(&stems).enumerate() {
            let (qlog, qlog_out) = GrowingFile::create(&folder.join(format!("{stem}.sqlog")))?;
            let (pcapng, pcapng_out) = GrowingFile::create(&folder.join(format!("{stem}.pcapng")))?;
            let table = csv_out.try_clone().map_err(|error| csv.refused(&error))?;
            let outputs = Outputs {
                csv: Some(Box::new(table)),
                columns: self.columns(place),
                qlog: Some(Box::new(qlog_out)),
                pcapng: Some(Box::new(pcapng_out)),
                page: true,
            };
            let run = export(self.plan, cell, self.rep, outputs).map_err(|failed| {
                let growing = match failed.format {
                    Format::Csv => &csv,
                    Format::Qlog => &qlog,
                    Format::Pcapng => &pcapng,
                };
                growing.refused(&failed.error)
            })?;
            [qlog, pcapng].into_iter().try_for_each(GrowingFile::complete)?;
            runs.push(run);
        }
        csv.complete()?;
        let (html, answer) = self.page(&runs, &stems, folder)?;
        let page = folder.join(PAGE);
        let mut written = folder::write_file(&page, |out| out.write_all(html.as_bytes()));
        // The answer is worth as much if the page cannot be written.
        let place = if written.is_ok() { format!("Page: {}\n", page.display()) } else { String::new() };
        if let (Ok(()), Some(file), Some(stem)) = (&written, pcap, stems.first()) {
            let packets = folder.join(format!("{stem}.pcapng"));
            written = folder::write_file(file, |out| io::copy(&mut File::open(&packets)?, out).map(|_| ()));
        }
        drop(waiting);
        print(&(wrapped(&answer.join(" ")) + &place))?;
        written?;
        Ok(code(&runs.into_iter().flat_map(|run| run.outcomes).collect::<Vec<_>>()))
    }

    /// The page of the runs, and its answer.
    fn page(&self, runs: &[Exported], stems: &[String], folder: &Path) -> Result<(String, Vec<String>), Failure> {
        let Provenance { version, command, host } = Provenance::of_this_process("flowstart", env!("CARGO_PKG_VERSION"));
        let method = Method {
            command: command.join(" "),
            directory: folder.display().to_string(),
            version,
            seed: Some(self.plan.seed),
            host,
            ..Method::default()
        };
        let unwritable = |error| Failure::Other(format!("page: {error}"));
        let is_real = |cell: &Cell| self.plan.transport_of(cell).stack.is_some();
        let packets = match self.cells.iter().any(is_real) {
            true => "the sender's datagrams and their TLS secrets, for Wireshark",
            false => "the packets at both hosts, for Wireshark: an interface for each",
        };
        if let ([cell], [run], [stem]) = (self.cells, runs, stems) {
            let files = vec![
                file(TABLE, "every event, a row each"),
                file(&format!("{stem}.sqlog"), "the same for QUIC tools (qlog)"),
                file(&format!("{stem}.pcapng"), packets),
            ];
            let method = Method { files, ..method };
            let page = report::trace(self.plan, cell, self.rep, &run.outcomes, &run.seen, method);
            return Ok((flowstart_report::render_trace(&page).map_err(unwritable)?, page.answer));
        }
        let mut files = vec![file(TABLE, "every event of every run, a row each")];
        for (cell, stem) in self.cells.iter().zip(stems) {
            let scheme = self.scheme(cell);
            files.push(file(&format!("{stem}.sqlog"), &format!("the run with {scheme} for QUIC tools (qlog)")));
            files.push(file(&format!("{stem}.pcapng"), packets));
        }
        let page = report::overlay(self.plan, self.cells, self.rep, runs, Method { files, ..method });
        Ok((flowstart_report::render_overlay(&page).map_err(unwritable)?, page.answer))
    }

    /// The names of each run's log and capture, without their endings: the scheme's name as far as any file system
    /// takes it, and a number where two would be the same.
    fn stems(&self) -> Vec<String> {
        if self.cells.len() == 1 {
            return vec!["trace".to_owned()];
        }
        let mut stems: Vec<String> = Vec::new();
        for (place, cell) in self.cells.iter().enumerate() {
            let safe = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' };
            let name: String = self.scheme(cell).chars().map(safe).take(LONGEST_STEM).collect();
            let stem = format!("trace-{name}");
            stems.push(if stems.contains(&stem) { format!("trace-{}-{name}", place + 1) } else { stem });
        }
        stems
    }
}

/// A file beside the page.
fn file(name: &str, what: &str) -> DataFile {
    DataFile { name: name.to_owned(), what: what.to_owned() }
}

/// Whether a measured flow did not finish.
fn failed(outcomes: &[FlowOutcome]) -> bool {
    outcomes.iter().any(|outcome| outcome.failure.is_some())
}

fn code(outcomes: &[FlowOutcome]) -> ExitCode {
    if failed(outcomes) { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}

/// A cell of results that were written earlier.
fn reported(id: &str, folder: &Path) -> Result<(Plan, Cell), Failure> {
    let file = folder.join(MANIFEST);
    let refused = |problem: String| Failure::Input(format!("--from {}: {problem}", file.display()));
    let manifest = Manifest::read(folder).map_err(refused)?;
    let manifest = manifest.ok_or_else(|| refused("does not exist".into()))?;
    let scenario: Scenario = toml::from_str(&manifest.scenario).map_err(|error| refused(error.message().to_owned()))?;
    let plan = scenario.plan(&manifest.directory).map_err(|error| {
        let hint =
            if error.field == "link" { "; paths are relative to the folder that the command was given in" } else { "" };
        let foreign = "; this program does not have it, the one that made the results does";
        let name = error.value.split(':').next().unwrap_or_default();
        let is_foreign = error.field == "scheme" && name != STACK && !StartupConfig::NAMES.contains(&name);
        refused(format!("{error}{}", if is_foreign { foreign } else { hint }))
    })?;
    if let Some(then) = &manifest.experiment {
        let now = Identity::of(&plan);
        let parts = then.other_parts(&now);
        if !parts.is_empty() {
            let differences: Vec<String> = then.other_program(&now).into_iter().chain(parts).collect();
            return Err(refused(format!("is of another experiment: {}", differences.join("; "))));
        }
        // A developer of a scheme may look at a run with the next build, so the command warns that the run may differ.
        if let Some(program) = then.other_program(&now) {
            note!("{}: {program}; the run may not be the one of the results", file.display());
        }
    }
    match plan.cell(id) {
        Some(cell) => Ok((plan, cell)),
        None => {
            let ids: Vec<String> = plan.cells().iter().take(5).map(|cell| plan.id(cell)).collect();
            Err(Failure::Input(format!(
                "--cell `{id}`: not among the cells of {}, such as {}",
                folder.display(),
                ids.join(" ")
            )))
        }
    }
}
