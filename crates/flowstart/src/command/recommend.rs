//! `flowstart recommend`.

mod population;
mod results;
mod tables;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use flowstart_core::spec::names;
use flowstart_core::startup::StartupConfig;
use flowstart_lab::fleet::answer::sentences;
use flowstart_lab::fleet::choices::{Choices, Start, Subject};
use flowstart_lab::fleet::measured::{FleetError, Question, measure};
use flowstart_lab::fleet::population::Population;
use flowstart_lab::fleet::recommendation::{Budget, Recommendation};
use flowstart_lab::study::scenario::default_seed;
use serde_json::{Value, json};

use self::population::{Described, Origin, Read};
use self::results::Results;
use self::tables::{of_choices, of_kinds};
use crate::command::axes::default_of;
use crate::command::run::{jobs, part};
use crate::failure::{FAILED, Failure};
use crate::new_folder;
use crate::output::{self, Bars};

/// Repetitions of each kind of transfer, unless told otherwise.
const REPS: u32 = 10;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart recommend fleet.csv
  flowstart recommend fleet.csv --scheme slow-start:iw=10 suss jump-start \\
    --max-inflation 2% --max-harm 1.2 --reps 30
  flowstart recommend --from-qlog logs --write-population fleet.csv
  flowstart recommend fleet.csv --aqm codel pie --buffer 50ms \\
    --scheme slow-start 0.2=jump-start

POPULATION.csv names its columns in the first line and has a line for each kind of transfer:
  name,weight,rate,rtt,buffer,size,known,aqm,competitor
  dsl,0.6,50mbit,30ms,1bdp,300KB,0.4,taildrop,cubic
weight and size are needed, and rate and rtt, or link, which is any link of --link. weight is a share or a number of \
transfers, known the share of them whose path is known before. buffer is 1bdp unless given, known 0, aqm taildrop and \
competitor none. Lines that begin with # are comments.

--from-qlog makes the table of what a server logged: for each connection its size, its smallest RTT, the highest rate \
over at least one RTT, and whether a source knew its path. Only a connection that filled its link shows the link's \
rate; smaller ones have the rates of the others. What was assumed and left out stands in the table and in the answer.

--aqm asks an operator's question: which queue should the links have, for transfers that arrive with the schemes of \
--scheme? 0.2=jump-start is a share of 0.2; those without a share divide what is left. Of queues with which transfers \
are as fast, and surely at most 5 % slower, the one with the shortest delay is recommended.

The first scheme is the baseline. Recommended is the one with the largest gain that is measurably faster than the \
baseline within the budget, or one that sends less twice and is as fast.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    origin: Origin,
    /// Startup schemes, the baseline first.
    ///
    /// Default: all that depend neither on routers nor on other connections. With --aqm those that arrive, also with a
    /// share, as 0.2=jump-start; default: slow-start.
    #[arg(long, num_args = 1.., value_name = "SCHEME")]
    scheme: Vec<String>,
    /// Which queue disciplines to compare for the links. Default: all.
    ///
    /// The baseline is taildrop with the link's own buffer.
    #[arg(long, num_args = 0.., value_name = "AQM")]
    aqm: Option<Vec<String>>,
    /// Buffers to compare with each of --aqm, as 50ms or 1bdp.
    #[arg(long, num_args = 1.., value_name = "BUFFER", requires = "aqm")]
    buffer: Vec<String>,
    /// Transport of all transfers.
    #[arg(long, value_name = "TRANSPORT", default_value = default_of("transport"))]
    transport: String,
    /// Congestion avoidance of all schemes.
    ///
    /// Default: the transport's, or a scheme's own.
    #[arg(long, value_name = "AVOIDANCE")]
    avoidance: Option<String>,
    /// Most that may be sent twice, such as 2%.
    ///
    /// Of the payload, in the mean over the fleet.
    #[arg(long, value_name = "P", value_parser = share, allow_hyphen_values = true)]
    max_inflation: Option<f64>,
    /// Most that others may lose, such as 1.2.
    ///
    /// Over what they lose beside the baseline.
    #[arg(long, value_name = "FACTOR", value_parser = factor, allow_hyphen_values = true)]
    max_harm: Option<f64>,
    /// Repetitions of each kind of transfer.
    #[arg(long, value_name = "N", default_value_t = REPS, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    reps: u32,
    /// Master seed.
    #[arg(long, value_name = "N", default_value_t = default_seed())]
    seed: u64,
    /// Threads; 0: one per core.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = jobs)]
    jobs: usize,
    /// Folder for a report, the tables and all of it as JSON.
    ///
    /// The folder must not exist, or be empty.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let in_range = part(text).filter(|part| (0.0..=10.0).contains(part));
    in_range.ok_or_else(|| "allowed is 0% to 1000%, such as 2%".to_owned())
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| (0.0..=1000.0).contains(factor));
    factor.ok_or_else(|| "allowed is 0 to 1000, such as 1.2".to_owned())
}

/// A start with its share, as 0.2=jump-start; without one it has none yet.
fn start(text: &str) -> Result<(String, Option<f64>), Failure> {
    // A scheme's parameters have equals signs, too, but behind a colon.
    let Some((share, scheme)) = text.split_once('=').filter(|(share, _)| !share.contains(':')) else {
        return Ok((text.to_owned(), None));
    };
    let share = part(share).filter(|share| (0.0..=1.0).contains(share) && *share > 0.0);
    let problem = || Failure::Input(format!("--scheme `{text}`: use SHARE=SCHEME, as 0.2=jump-start, above 0 to 1"));
    Ok((scheme.to_owned(), Some(share.ok_or_else(problem)?)))
}

/// The starts that arrive. Those without a share divide what is left.
fn starts(texts: &[String]) -> Result<Vec<Start>, Failure> {
    let read = texts.iter().map(|text| start(text)).collect::<Result<Vec<_>, _>>()?;
    let given: f64 = read.iter().filter_map(|(_, share)| *share).sum();
    let open = read.iter().filter(|(_, share)| share.is_none()).count();
    let left = 1.0 - given;
    // Shares as 0.1 are not exact.
    if given > 1.0 + 1e-9 || (open > 0) == (left <= 1e-9) {
        let problem = "the shares together are 1, or less if a scheme has none";
        return Err(Failure::Input(format!("--scheme {}: {problem}", texts.join(" "))));
    }
    Ok(read
        .into_iter()
        .map(|(scheme, share)| Start { scheme, share: share.unwrap_or(left / open.max(1) as f64) })
        .collect())
}

impl Arguments {
    fn choices(&self) -> Result<Choices, Failure> {
        let Some(aqms) = &self.aqm else {
            if self.scheme.is_empty() {
                return Ok(Choices::every_scheme());
            }
            if self.scheme.len() < 2 {
                return Err(Failure::Input("--scheme: two are needed; the first is the baseline".into()));
            }
            return Ok(Choices::Schemes(self.scheme.clone()));
        };
        let baseline = [StartupConfig::SlowStart(Default::default()).name().to_owned()];
        let arriving = if self.scheme.is_empty() { &baseline[..] } else { &self.scheme };
        let choices = Choices::queues(aqms, &self.buffer, starts(arriving)?);
        if choices.names().len() < 2 {
            let problem = format!("{} is the baseline; name others, or buffers", aqms.join(" "));
            return Err(Failure::Input(format!("--aqm: {problem}")));
        }
        Ok(choices)
    }
}

/// Nobody loses anything where nobody is.
fn check_harm(budget: &Budget, population: &Population) -> Result<(), Failure> {
    if budget.max_harm.is_some() && population.kinds.iter().all(|kind| names::is_same(&kind.competitor, "none")) {
        let problem = "nobody else uses a link of this population; give its lines a competitor";
        return Err(Failure::Input(format!("--max-harm: {problem}")));
    }
    Ok(())
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    arguments.out.as_deref().map_or(Ok(()), new_folder::check)?;
    let choices = arguments.choices()?;
    let budget = Budget { max_inflation: arguments.max_inflation, max_harm: arguments.max_harm };
    let Described { population, text, folder, notes, is_partial } = match arguments.origin.read()? {
        Read::Population(described) => described,
        Read::Printed { is_partial } => return Ok(exit_code(is_partial)),
    };
    check_harm(&budget, &population)?;
    let made = arguments.out.as_deref().map_or(Ok(false), new_folder::make)?;
    let question = Question {
        choices,
        transport: arguments.transport.clone(),
        avoidance: arguments.avoidance.clone(),
        reps: arguments.reps,
        seed: arguments.seed,
    };
    let bars = Bars::default();
    let fleet = measure(population, &question, &folder, arguments.jobs, &bars).map_err(|error| {
        // Of a question that cannot be asked no folder is left, unless somebody else made it or put something there.
        let _ = arguments.out.as_deref().filter(|_| made).map(std::fs::remove_dir);
        match error {
            FleetError::Population(error) => arguments.origin.problem(&error),
            FleetError::Question(error) => Failure::from(error),
            FleetError::Runs(error) => Failure::from(error),
        }
    })?;
    let told = Recommendation::of(&fleet, &budget);
    let sentences = [sentences(&fleet, &told), notes].concat();
    let value = as_json(&question, &budget, &told, &sentences);
    let json = serde_json::to_string_pretty(&value).map_err(|error| Failure::Other(error.to_string()))? + "\n";
    let results = Results { fleet: &fleet, told: &told, sentences: &sentences, population: &text, json: &json };
    let written = arguments.out.as_deref().map_or(Ok(()), |out| results.write(out));
    drop(bars);
    if arguments.json {
        output::print(&json)?;
    } else {
        let (first, notes) = sentences.split_first().map_or(("", &[][..]), |(first, notes)| (&**first, notes));
        let notes: String = notes.iter().map(|note| output::item(note)).collect();
        let (choices, kinds) = (output::fitted(of_choices(fleet.subject, &told)), output::fitted(of_kinds(&told)));
        output::print(&format!("{}\n{choices}\n\n{kinds}\n\n{notes}", output::wrapped(first)))?;
    }
    // The answer is told also where no file can be written.
    written?;
    let any_failed = told.choices.iter().any(|one| one.failed > 0.0);
    Ok(exit_code(any_failed || is_partial))
}

fn exit_code(is_failure: bool) -> ExitCode {
    if is_failure { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}

/// All of it. What is chosen is called by its own name.
fn as_json(question: &Question, budget: &Budget, told: &Recommendation, sentences: &[String]) -> Value {
    let subject = question.choices.subject();
    let starts = match &question.choices {
        Choices::Schemes(_) => None,
        Choices::Queues { starts, .. } => {
            let one = |start: &Start| json!({ "scheme": start.scheme, "share": start.share });
            Some(starts.iter().map(one).collect::<Vec<Value>>())
        }
    };
    let mut value = json!({
        "schema": 1,
        "answer": sentences.first(),
        "answer_notes": sentences.get(1..),
        "transport": question.transport,
        "avoidance": question.avoidance,
        "seed": question.seed,
        "budget": budget,
        "recommendation": named(json!(told), subject),
    });
    if let Some(starts) = starts {
        value["starts"] = json!(starts);
    }
    value
}

/// Calls choices by what they are.
fn named(value: Value, subject: Subject) -> Value {
    let word = subject.word();
    match value {
        Value::Object(fields) => {
            let one = |(key, value): (String, Value)| {
                let key = match &*key {
                    "choice" => word.to_owned(),
                    "choices" => format!("{word}s"),
                    _ => key,
                };
                (key, named(value, subject))
            };
            Value::Object(fields.into_iter().map(one).collect())
        }
        Value::Array(values) => values.into_iter().map(|value| named(value, subject)).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_without_a_share_divide_what_is_left() {
        let read = |texts: &[&str]| starts(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let shares = |texts: &[&str]| {
            let all = read(texts).unwrap();
            all.iter().map(|start| (start.share * 1000.0).round() / 1000.0).collect::<Vec<_>>()
        };
        assert_eq!(shares(&["slow-start"]), [1.0]);
        assert_eq!(shares(&["slow-start:iw=10", "20%=jump-start", "suss"]), [0.4, 0.2, 0.4]);
        assert_eq!(read(&["1=slow-start:iw=10"]).unwrap()[0].scheme, "slow-start:iw=10");
        for wrong in [
            &["2=suss"][..],
            &["0=suss"],
            &["x=suss"],
            &["0.6=suss", "0.6=jump-start"],
            &["1=suss", "slow-start"],
            &["0.2=suss"],
        ] {
            assert!(matches!(read(wrong), Err(Failure::Input(_))), "{wrong:?}");
        }
    }
}
