//! One run of a question: of which cell, and which repetition.

use flowstart_lab::study::plan::Cell;
use flowstart_lab::trace::packets::{Packets, packets};
use form_urlencoded::{Serializer, parse};

use super::{Question, Refusal};

/// Most packets whose way is shown.
const MOST_PACKETS: usize = 12_000;

/// One run of a question.
#[derive(Clone, Debug)]
pub struct Run {
    /// The question.
    pub question: Question,
    /// The cell.
    pub(crate) cell: Cell,
    /// The repetition, from 0.
    pub(crate) rep: u32,
}

impl Run {
    /// The run in an address: a question with `cell` and `rep`, or a run of the first page's question.
    ///
    /// # Errors
    ///
    /// What is wrong, and what is allowed.
    pub fn of_query(query: &str) -> Result<Self, Refusal> {
        let (cell, rep, rest) = read(query);
        let question = if rest.is_empty() { Question::first()? } else { Question::of_query(&rest)? };
        let plan = &question.study.plan;
        let cells = plan.cells();
        let (Some(cell), Some(rep)) = (cell, rep) else {
            return Err(Refusal("cell and rep: allowed are whole numbers from 0 on".into()));
        };
        let Some(shown) = cells.get(cell).copied().filter(|_| rep < plan.reps) else {
            let (most, reps) = (cells.len() - 1, plan.reps - 1);
            return Err(Refusal(format!("cell `{cell}`, rep `{rep}`: allowed are 0 to {most} and 0 to {reps}")));
        };
        if !plan.sizes[shown.size].value.is_one_connection() {
            let problem = "has connections of HTTP/1.1; packets are shown of a transfer, or of a page with http=2 or 3";
            let size = &plan.sizes[shown.size].text;
            return Err(Refusal(format!("application `{size}`: {problem}")));
        }
        Ok(Self { question, cell: shown, rep })
    }

    /// Simulates the run and tells of its packets.
    pub(crate) fn packets(&self) -> Packets {
        packets(&self.question.study.plan, &self.cell, self.rep, MOST_PACKETS)
    }
}

/// The place of a cell, a repetition, and the question that has them.
fn read(query: &str) -> (Option<usize>, Option<u32>, String) {
    let (mut cell, mut rep) = (Some(0), Some(0));
    let mut rest = Serializer::new(String::new());
    for (name, value) in parse(query.as_bytes()) {
        match &*name {
            "cell" => cell = value.parse().ok(),
            "rep" => rep = value.parse().ok(),
            _ => drop(rest.append_pair(&name, &value)),
        }
    }
    (cell, rep, rest.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_a_question_with_a_cell_and_a_repetition() {
        let query = "link=lte&size=70KB&scheme=slow-start&scheme=hystart&reps=5";
        let run = Run::of_query(&format!("{query}&cell=1&rep=4")).unwrap();
        assert_eq!((run.cell.index, run.rep, &*run.question.query), (1, 4, query));
        let first = Run::of_query("cell=2").unwrap();
        assert_eq!((first.cell.index, first.rep, first.question.query), (2, 0, Question::first().unwrap().query));
    }

    #[test]
    fn runs_that_are_not_there_are_refused() {
        for (query, part) in [
            ("cell=9", "0 to 2"),
            ("rep=10", "0 to 9"),
            ("cell=-1", "whole numbers"),
            ("rep=99999999999", "whole numbers"),
            ("link=x", "link `x`"),
            ("reps=1000000&cell=1", "1 to 1000"),
            (
                "link=lte&scheme=slow-start&application=page%3Aobjects%3D6%2Csize%3D50KB%2Cwaves%3D3%2Chttp%3D1.1",
                "http=2 or 3",
            ),
        ] {
            let told = Run::of_query(query).unwrap_err().to_string();
            assert!(told.contains(part), "{query}: {told}");
        }
    }
}
