//! The results in words.

use std::fmt::Write as _;

use serde::Serialize;

use super::bars::{Condition, bars};
use super::beats::{Beaten, Matrix, matrix};
use super::journal::Collected;
use super::regret::{Regret, regrets};

/// What is said of a scheme on a set.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// The version of this form.
    pub schema: u32,
    /// The set.
    pub set: &'static str,
    /// Its SHA-256.
    pub sha256: &'static str,
    /// Its cells.
    pub of: usize,
    /// Cells of which there are results.
    pub cells: usize,
    /// The scheme in question.
    pub scheme: String,
    /// Repetitions of each cell.
    pub reps: u32,
    /// Cells that it does not have, and why.
    pub left_out: Vec<Missing>,
    /// Processor time of all runs, in seconds.
    pub seconds: f64,
    /// The bars.
    pub bars: Vec<Condition>,
    /// The cells in which it is beaten.
    pub open: Vec<Beaten>,
    /// How far each scheme is from the best.
    pub regret: Vec<Regret>,
    /// Who beats whom.
    pub matrix: Matrix,
}

/// A scheme that cells do not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The scheme.
    pub scheme: String,
    /// Why.
    pub why: String,
    /// So many cells.
    pub cells: usize,
}

/// Judges a scheme.
///
/// # Errors
///
/// When no cell has results of it.
pub fn judge(collected: &Collected, scheme: &str) -> Result<Judgement, String> {
    let mut schemes: Vec<String> = Vec::new();
    let mut left_out: Vec<Missing> = Vec::new();
    for (_, result) in &collected.cells {
        for runs in &result.schemes {
            if !schemes.contains(&runs.scheme) {
                schemes.push(runs.scheme.clone());
            }
        }
        for one in &result.left_out {
            match left_out.iter_mut().find(|known| known.scheme == one.scheme && known.why == one.why) {
                Some(known) => known.cells += 1,
                None => left_out.push(Missing { scheme: one.scheme.clone(), why: one.why.clone(), cells: 1 }),
            }
        }
    }
    let Some(place) = schemes.iter().position(|one| one == scheme) else {
        return Err(format!("no cell has results of {scheme}; there are those of {}", schemes.join(", ")));
    };
    let results: Vec<_> = collected.cells.iter().map(|(_, result)| result).collect();
    let mut matrix = matrix(&results, &schemes, 1);
    let open = std::mem::take(&mut matrix.beaten[place]);
    let bars = bars(collected, scheme, &schemes, open.len());
    Ok(Judgement {
        schema: 1,
        set: collected.set.name(),
        sha256: collected.set.sha256(),
        of: collected.of,
        cells: collected.cells.len(),
        scheme: scheme.to_owned(),
        reps: collected.reps,
        left_out,
        seconds: results.iter().map(|result| result.seconds).sum(),
        bars,
        open,
        regret: regrets(collected, &schemes),
        matrix,
    })
}

/// A number as texts show it.
fn shown(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| format!("{number:.3}"))
}

impl Judgement {
    /// Whether every bar with cells is reached.
    pub fn reaches_all(&self) -> bool {
        self.bars.iter().all(|condition| condition.reached != Some(false))
    }

    /// The bars, for a terminal.
    pub fn text(&self) -> String {
        let Self { set, of, cells, scheme, reps, seconds, .. } = self;
        let hours = seconds / 3600.0;
        let first = format!(
            "{scheme} on {cells} of {of} cells of the {set} set, {reps} repetitions each, in {hours:.1} h of processor \
             time"
        );
        let mut text = format!("{}set {}\n\n", wrapped(&first), self.sha256);
        for condition in &self.bars {
            text += &line(condition);
        }
        let (reached, missed) = (self.count(Some(true)), self.count(Some(false)));
        let without = self.count(None);
        let _ = write!(text, "\n{reached} reached, {missed} missed, {without} without cells\n");
        if *cells < *of {
            let _ = writeln!(text, "{} cells have not run: this is no judgement on the set", of - cells);
        }
        text += "\nRegret to the fastest of each cell        mean     p95   worst  cells\n";
        for regret in &self.regret {
            let Regret { scheme, cells, failed, mean, p95, worst } = regret;
            let [mean, p95, worst] = [mean, p95, worst].map(|number| shown(*number));
            let _ = write!(text, "  {scheme:36}  {mean:>6}  {p95:>6}  {worst:>6}  {cells:>5}");
            text += &if *failed > 0 { format!(", {failed} not completed\n") } else { "\n".to_owned() };
        }
        text += &self.rivals();
        let _ = writeln!(text, "\nBeaten in {} cells", self.open.len());
        for Beaten { cell, by } in &self.open {
            text += &wrapped(&format!("  {cell}: {}", by.join(", ")));
        }
        for Missing { scheme, why, cells } in &self.left_out {
            text += &wrapped(&format!("left out of {cells} cells: {scheme}: {why}"));
        }
        text
    }

    /// How often the scheme in question beats each other one, and the reverse.
    fn rivals(&self) -> String {
        let Matrix { schemes, beats, both, .. } = &self.matrix;
        let mut text = format!("\nCells in which {} beats or is beaten by\n", self.scheme);
        let Some(own) = schemes.iter().position(|scheme| *scheme == self.scheme) else { return text };
        for (rival, scheme) in schemes.iter().enumerate().filter(|(rival, _)| *rival != own) {
            let (wins, losses, of) = (beats[own][rival], beats[rival][own], both[own][rival]);
            let _ = writeln!(text, "  {scheme:36}  {wins:>5}  {losses:>5}  of {of}");
        }
        text
    }

    fn count(&self, reached: Option<bool>) -> usize {
        self.bars.iter().filter(|condition| condition.reached == reached).count()
    }
}

/// A condition in a few lines.
fn line(condition: &Condition) -> String {
    let Condition { bar, says, cells, number, bound, at_least, reached, worst } = condition;
    let verdict = match reached {
        Some(true) => "reached",
        Some(false) => "MISSED",
        None => "no cells",
    };
    let allowed = if *at_least { ">=" } else { "<=" };
    let mut text = wrapped(&format!("{bar:>2} {verdict:8} {says}"));
    let number = if reached.is_some() && number.is_none() { "not completed".to_owned() } else { shown(*number) };
    let _ = writeln!(text, "            {number} (bar {allowed} {bound}), {cells} cells");
    if *reached == Some(false) && !worst.is_empty() {
        text += &wrapped(&format!("            worst: {}", worst.join(", ")));
    }
    text
}

/// Lines of at most 80 columns; what follows the first is indented.
fn wrapped(text: &str) -> String {
    textwrap::fill(text, textwrap::Options::new(80).subsequent_indent("            ")) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tournament::runs::{CellResult, LeftOut, Runs};
    use crate::tournament::sets::Set;

    fn runs(scheme: &str, fct: f64) -> Runs {
        Runs { scheme: scheme.into(), fct_ms: vec![Some(fct); 5], sent_twice: vec![0.0; 5], ..Runs::default() }
    }

    #[test]
    fn a_judgement_says_what_is_missing_in_eighty_columns() {
        let cells = Set::Design.cells();
        let of = cells.len();
        let with = |cell: crate::tournament::sets::Drawn| {
            let left_out = vec![LeftOut { scheme: "quick-start".into(), why: "no router of the link approves".into() }];
            let schemes = vec![runs("slow-start", 1000.0), runs("rival", 500.0), runs("new", 700.0)];
            let result = CellResult { cell: cell.name.clone(), left_out, schemes, ..CellResult::default() };
            (cell, result)
        };
        let cells = cells.into_iter().take(150).map(with).collect();
        let collected = Collected { set: Set::Design, of, cells, reps: 5 };
        let judgement = judge(&collected, "new").unwrap();
        let text = judgement.text();
        for expected in [
            "new on 150 of 223 cells of the design set",
            "73 cells have not run",
            "Beaten in 150 cells",
            "  design-001: rival",
            "left out of 150 cells: quick-start",
            "10 MISSED",
            "no cells",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{wide:?}");
        assert!(!judgement.reaches_all());
        let error = judge(&collected, "newer").unwrap_err();
        assert!(error.contains("slow-start, rival, new"), "{error}");
        assert_eq!(judge(&collected, "rival").unwrap().open, []);
    }
}
