//! Where the population comes from: a table of the user's own, or what a server logged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration as StdDuration;

use clap::Args;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_lab::fleet::observed::{self, Observed, Table};
use flowstart_lab::fleet::population::{Population, PopulationError};
use flowstart_serve::analyze::log::OfPath;
use flowstart_serve::analyze::paths::{Bucket, Paths};
use flowstart_serve::analyze::{exposition, paths};
use flowstart_serve::printable;

use crate::command::analyze::{self, Logs};
use crate::failure::Failure;
use crate::output;

/// The name that stands for stdout.
const STDOUT: &str = "-";

/// How long metrics may take.
const PATIENCE: StdDuration = StdDuration::from_secs(20);

/// The options.
#[derive(Debug, Args)]
pub(crate) struct Origin {
    /// The transfers: a line for each kind.
    #[arg(value_name = "POPULATION.csv", required_unless_present = "made", conflicts_with = "made")]
    population: Option<PathBuf>,
    /// Make the population of these qlog files or folders.
    ///
    /// Those of `flowstart serve --qlog`, or of another server with the standard events of QUIC. In a folder, all files
    /// that end in .sqlog or .qlog are read.
    #[arg(long, num_args = 1.., value_name = "DIR", group = "made")]
    from_qlog: Vec<PathBuf>,
    /// Make the population of a server's metrics.
    ///
    /// A file or `http://HOST/metrics`, of `flowstart serve --metrics`, or of another server with histograms of the
    /// same names: `flowstart_connection_min_rtt_seconds`, `flowstart_connection_delivery_rate_bytes_per_second`, with
    /// the label by="link" where the link limited it, and `flowstart_connection_payload_bytes`.
    #[arg(long, value_name = "FILE|URL", group = "made")]
    from_prometheus: Option<String>,
    /// Keep the population that was made here; -: print it and end.
    #[arg(long, value_name = "FILE", requires = "made")]
    write_population: Option<PathBuf>,
}

/// A population, and what has to be known of it.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) population: Population,
    /// Its table.
    pub(crate) text: String,
    /// The folder to which its recordings are relative.
    pub(crate) folder: PathBuf,
    /// What was assumed and left out when it was made, in sentences.
    pub(crate) notes: Vec<String>,
    /// Whether a file could not be used.
    pub(crate) is_partial: bool,
}

/// What became of the options.
#[derive(Debug)]
pub(crate) enum Read {
    /// The population.
    Population(Described),
    /// Its table was printed, which is all that was asked for.
    Printed {
        /// Whether a file could not be used.
        is_partial: bool,
    },
}

impl Origin {
    /// Reads or makes the population.
    pub(crate) fn read(&self) -> Result<Read, Failure> {
        if let Some(file) = &self.population {
            let text = Population::text(file).map_err(|error| self.problem(&error))?;
            let population = Population::from_text(&text).map_err(|error| self.problem(&error))?;
            let folder = file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
            let folder = folder.to_owned();
            let described = Described { population, text, folder, notes: Vec::new(), is_partial: false };
            return Ok(Read::Population(described));
        }
        let (Table { text, notes }, is_partial) = match &self.from_prometheus {
            Some(source) => (of_metrics(source)?, false),
            None => of_logs(&self.from_qlog)?,
        };
        notes.iter().for_each(|note| tell!("{note}"));
        let population = Population::from_text(&text).map_err(|error| self.problem(&error))?;
        match &self.write_population {
            Some(file) if file.as_os_str() == STDOUT => {
                output::print(&text)?;
                return Ok(Read::Printed { is_partial });
            }
            Some(file) => flowstart_files::replace(file, text.as_bytes())
                .map_err(|error| Failure::Input(format!("--write-population {}: {error}", file.display())))?,
            None => {}
        }
        Ok(Read::Population(Described { population, text, folder: PathBuf::from("."), notes, is_partial }))
    }

    /// A problem of the table.
    pub(crate) fn problem(&self, error: &PopulationError) -> Failure {
        match &self.population {
            Some(file) => Failure::File { file: file.clone(), message: error.to_string(), text: None },
            None => Failure::Input(format!("the population that was made, {error}")),
        }
    }
}

/// The table of logs, and whether a file could not be used.
fn of_logs(named: &[PathBuf]) -> Result<(Table, bool), Failure> {
    let Logs { connections, unusable } = analyze::paths(named)?;
    let observed: Vec<Observed> = connections.iter().filter_map(observed).collect();
    let mut table = observed::table(&observed)
        .map_err(|error| Failure::Input(format!("--from-qlog: {error} ({} connections)", connections.len())))?;
    let unmeasured = connections.len() - observed.len();
    if unmeasured > 0 {
        table.add(format!(
            "{unmeasured} more connections are left out: they answered nothing completely, or measured no RTT."
        ));
    }
    if unusable > 0 {
        table.add(format!("{unusable} files could not be used."));
    }
    Ok((table, unusable > 0))
}

/// What a connection of a log showed, if it showed anything.
fn observed(one: &OfPath) -> Option<Observed> {
    let shown = one.shown.filter(|_| one.size.get() > 0)?;
    Some(Observed {
        weight: 1.0,
        size: one.size,
        rtt: shown.min_rtt,
        // Any link is faster than nothing.
        rate: shown.highest_rate.unwrap_or(Rate::from_bits_per_sec(0)),
        is_rate_of_link: shown.is_rate_of_link(),
        queue: Some(shown.queue),
        has_lost: shown.has_lost,
        known: f64::from(one.is_known),
    })
}

/// The table of metrics, which have each distribution by itself.
fn of_metrics(source: &str) -> Result<Table, Failure> {
    let refused =
        |problem: &dyn std::fmt::Display| Failure::Input(printable(&format!("--from-prometheus {source}: {problem}")));
    let wrong = |error: paths::MetricsError| Failure::Input(printable(&format!("--from-prometheus {error}")));
    let paths = if source.starts_with("https://") {
        return Err(refused(&"https is not read; allowed are a file and http://HOST/metrics"));
    } else if source.starts_with("http://") {
        let text = fetched(source).map_err(|error| refused(&error))?;
        paths::parse(&text, Path::new(source)).map_err(wrong)?
    } else {
        paths::read(Path::new(source)).map_err(wrong)?
    };
    let mut table = observed::table(&independent(&paths)).map_err(|error| refused(&error))?;
    table.add(format!(
        "Metrics have the distribution of each of rate, RTT and size by itself. They are taken as independent: large \
         transfers come over slow links as often as over fast ones. Rates are those of the {:.0} of {:.0} connections \
         that filled their link, and counters go back to the server's start.",
        Bucket::sum(&paths.rates),
        Bucket::sum(&paths.sizes)
    ));
    Ok(table)
}

/// The values of a histogram with their shares, one for each power of two: the table has no finer ones.
fn parts(buckets: &[Bucket]) -> Vec<(f64, f64)> {
    let all = Bucket::sum(buckets);
    let mut octaves: BTreeMap<i32, (f64, f64)> = BTreeMap::new();
    for bucket in buckets {
        // A value is above 0, and the logarithm of what a number can be fits.
        let (count, logarithms) = octaves.entry(bucket.value.log2().floor() as i32).or_default();
        *count += bucket.count;
        *logarithms += bucket.count * bucket.value.ln();
    }
    octaves.into_values().map(|(count, logarithms)| ((logarithms / count).exp(), count / all)).collect()
}

/// Every combination of the three, as often as it is if they are independent.
fn independent(paths: &Paths) -> Vec<Observed> {
    let all = Bucket::sum(&paths.sizes);
    let [rates, rtts, sizes] = [&paths.rates, &paths.rtts, &paths.sizes].map(|buckets| parts(buckets));
    let mut observed = Vec::with_capacity(rates.len() * rtts.len() * sizes.len());
    for (rate, of_rate) in &rates {
        for (rtt, of_rtt) in &rtts {
            for (size, of_size) in &sizes {
                observed.push(Observed {
                    weight: all * of_rate * of_rtt * of_size,
                    size: Bytes::new(*size as u64),
                    rtt: Duration::from_secs(*rtt),
                    rate: Rate::from_bits_per_sec((rate * 8.0) as u64),
                    is_rate_of_link: true,
                    queue: None,
                    has_lost: false,
                    known: paths.known,
                });
            }
        }
    }
    observed
}

/// The format of metrics that has an end (`OpenMetrics` 1.0, section "Content Type").
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0";

/// What a server answers.
fn fetched(url: &str) -> Result<Vec<u8>, ureq::Error> {
    let agent = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build().new_agent();
    // Its end is marked, so that a text which was cut is not taken for a whole one.
    agent
        .get(url)
        .header("accept", OPEN_METRICS)
        .call()?
        .body_mut()
        .with_config()
        .limit(exposition::LONGEST)
        .read_to_vec()
}
