//! `flowstart trace`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, Id};
use flowstart_lab::report;
use flowstart_lab::results::folder::{self, GrowingFile, MANIFEST};
use flowstart_lab::results::identity::Identity;
use flowstart_lab::results::manifest::Manifest;
use flowstart_lab::run::outcome::FlowOutcome;
use flowstart_lab::study::plan::{Cell, Plan};
use flowstart_lab::study::scenario::Scenario;
use flowstart_lab::trace::export::{Format, Outputs, export};
use flowstart_report::Method;

use crate::attention::Waiting;
use crate::command::axes::Axes;
use crate::command::compare::Setup;
use crate::command::run::{command_line, host, mixed};
use crate::failure::{FAILED, Failure};
use crate::output::print;

/// The options that describe a run. A cell of earlier results has them already.
fn description() -> Vec<Id> {
    let described = Setup::augment_args(Axes::<false>::augment_args(Command::new("trace")));
    let options = described.get_arguments().map(|option| option.get_id().clone());
    options.chain([Id::from("scheme")]).collect()
}

#[derive(Debug, Args)]
#[command(
    override_usage = "\
flowstart trace [OPTIONS] --link <LINK> --size <SIZE> --scheme <SCHEME>
       flowstart trace [OPTIONS] --cell <ID> --from <DIR>",
    after_long_help = "\
Examples:
  flowstart trace --link dsl-fast --size 2MB --scheme blitzstart \\
    --competitor cubic --out results/trace
  flowstart trace --cell dsl-fast/taildrop/2MB/slow-start/cubic --rep 3 \\
    --from results/table1 --out results/trace
  flowstart trace --link 3g --size 70KB --scheme slow-start > packets.csv

Writes trace.html (time-sequence, cwnd, pacing, queue), trace.csv (every event), trace.sqlog (qlog) and trace.pcapng \
(packets at both hosts, for Wireshark; with --transport quic the sender's datagrams and their TLS secrets) into \
--out; without --out and --pcap the events go to stdout as CSV."
)]
pub(crate) struct Arguments {
    /// The startup scheme. With parameters, blitzstart:estimate=1.5. See `flowstart list schemes`. Not with --cell.
    #[arg(long, value_name = "SCHEME", required_unless_present_any = ["cell", "from"])]
    scheme: Option<String>,
    #[command(flatten)]
    selection: Selection,
    /// Folder for the files; must be new or empty.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
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
        if let Some(size) = plan.sizes.iter().find(|size| size.value.sessions().is_some()) {
            let problem = "has thousands of connections; trace and explain show one, give --size instead";
            return Err(Failure::Input(format!("--application `{}`: {problem}", size.text)));
        }
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
        mixed(&scenario, &plan, "give --avoidance to choose");
        let cells = plan.cells();
        Ok((plan, cells))
    }
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (plan, cells) = arguments.selection.cells(arguments.scheme.iter().cloned().collect())?;
    let [cell] = cells[..] else {
        return Err(Failure::Other("one value of each option did not make one cell".into()));
    };
    let rep = arguments.selection.rep;
    let _occupied = arguments.out.as_ref().map(|folder| folder::prepare_folder(folder, false)).transpose()?;
    if let Some(file) = &arguments.pcap
        && file.exists()
    {
        return Err(Failure::Input(format!("--pcap {}: exists already, and nothing is overwritten", file.display())));
    }
    match (&arguments.out, &arguments.pcap) {
        (Some(folder), pcap) => write_folder(&plan, &cell, rep, folder, pcap.as_deref()),
        (None, Some(file)) => {
            let (growing, out) = GrowingFile::create(file)?;
            let outputs = Outputs { pcapng: Some(Box::new(out)), ..Outputs::default() };
            let run = export(&plan, &cell, rep, outputs).map_err(|failed| growing.refused(&failed.error))?;
            growing.complete()?;
            Ok(code(&run.outcomes))
        }
        (None, None) => {
            let outputs = Outputs { csv: Some(Box::new(io::stdout())), ..Outputs::default() };
            match export(&plan, &cell, rep, outputs) {
                Ok(run) => Ok(code(&run.outcomes)),
                // The reader has seen enough.
                Err(failed) if failed.error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
                Err(failed) => Err(Failure::Other(format!("stdout: {}", failed.error))),
            }
        }
    }
}

/// Writes all files into the folder, and the packets to another file if there is one.
fn write_folder(plan: &Plan, cell: &Cell, rep: u32, folder: &Path, pcap: Option<&Path>) -> Result<ExitCode, Failure> {
    let _waiting = Waiting::begin("simulating and writing the trace");
    let (csv, csv_out) = GrowingFile::create(&folder.join("trace.csv"))?;
    let (qlog, qlog_out) = GrowingFile::create(&folder.join("trace.sqlog"))?;
    let packets = folder.join("trace.pcapng");
    let (pcapng, pcapng_out) = GrowingFile::create(&packets)?;
    let outputs = Outputs {
        csv: Some(Box::new(csv_out)),
        qlog: Some(Box::new(qlog_out)),
        pcapng: Some(Box::new(pcapng_out)),
        page: true,
    };
    let run = export(plan, cell, rep, outputs).map_err(|failed| {
        let growing = match failed.format {
            Format::Csv => &csv,
            Format::Qlog => &qlog,
            Format::Pcapng => &pcapng,
        };
        growing.refused(&failed.error)
    })?;
    [csv, qlog, pcapng].into_iter().try_for_each(GrowingFile::complete)?;
    let method = Method {
        command: command_line().join(" "),
        directory: folder.display().to_string(),
        version: env!("CARGO_PKG_VERSION").into(),
        seed: Some(plan.seed),
        host: host(),
        ..Method::default()
    };
    let page = report::trace(plan, cell, rep, &run.outcomes, &run.seen, method);
    let html = flowstart_report::render_trace(&page).map_err(|error| Failure::Other(format!("page: {error}")))?;
    folder::write_file(&folder.join("trace.html"), |out| out.write_all(html.as_bytes()))?;
    if let Some(file) = pcap {
        folder::write_file(file, |out| io::copy(&mut File::open(&packets)?, out).map(|_| ()))?;
    }
    print(&format!("{}\nPage: {}\n", page.answer.join(" "), folder.join("trace.html").display()))?;
    Ok(code(&run.outcomes))
}

/// Whether a measured flow did not finish.
pub(crate) fn failed(outcomes: &[FlowOutcome]) -> bool {
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
        refused(format!("{error}{hint}"))
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
