//! What a scheme did in the repetitions of a cell.

use serde::{Deserialize, Serialize};

/// What a scheme did in the repetitions of a cell. The lists have a value for each repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runs {
    /// The scheme, as written.
    pub scheme: String,
    /// Completion time in milliseconds, the mean over transfers that start together; absent if one did not complete.
    pub fct_ms: Vec<Option<f64>>,
    /// Payload sent again over payload, of all transfers together.
    pub sent_twice: Vec<f64>,
    /// What the others got in the 10 s from the start, in Mbit; none without others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others_mbit: Vec<f64>,
    /// What they got in the same time of the same world without the transfers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_mbit: Vec<f64>,
    /// Mean opinion score of the worst second of media; none without media.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst_mos: Vec<f64>,
    /// Packets beyond what path and buffer hold that left in the first RTT; none beside others, and where nobody can
    /// say what a path holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beyond_packets: Vec<f64>,
}

fn mean(values: &[f64]) -> Option<f64> {
    flowstart_statistics::mean(values)
}

impl Runs {
    /// The completion times, if all completed.
    pub fn completed(&self) -> Option<Vec<f64>> {
        self.fct_ms.iter().copied().collect()
    }

    /// The mean completion time in milliseconds; infinite if a transfer did not complete.
    pub fn mean_fct_ms(&self) -> f64 {
        self.completed().and_then(|all| mean(&all)).unwrap_or(f64::INFINITY)
    }

    /// The mean of what was sent again, over the payload.
    pub fn mean_sent_twice(&self) -> Option<f64> {
        mean(&self.sent_twice)
    }

    /// What the others lost in the 10 s from the start, in Mbit; `None` without others.
    pub fn harm_mbit(&self) -> Option<f64> {
        Some(mean(&self.without_mbit)? - mean(&self.others_mbit)?)
    }

    /// Mean opinion score of the worst second of media.
    pub fn mean_worst_mos(&self) -> Option<f64> {
        mean(&self.worst_mos)
    }

    /// Most packets beyond what path and buffer hold that left in the first RTT.
    pub fn most_beyond(&self) -> Option<f64> {
        self.beyond_packets.iter().copied().reduce(f64::max)
    }

    /// What is wrong with it, as a part of results of `reps` repetitions.
    pub(super) fn problem(&self, reps: u32) -> Option<String> {
        let reps = reps as usize;
        let lists = [&self.others_mbit, &self.without_mbit, &self.worst_mos, &self.beyond_packets];
        let is_short = self.fct_ms.len() != reps
            || self.sent_twice.len() != reps
            || lists.into_iter().any(|list| !(list.is_empty() || list.len() == reps));
        let fct = self.fct_ms.iter().flatten().any(|fct| !(fct.is_finite() && *fct > 0.0));
        let is_odd = |list: &Vec<f64>| list.iter().any(|value| !value.is_finite());
        if is_short {
            Some(format!("{}: a list has not a value for each of {reps} repetitions", self.scheme))
        } else if fct || is_odd(&self.sent_twice) || lists.into_iter().any(is_odd) {
            Some(format!("{}: a value is not a number in range; a completion time is above 0", self.scheme))
        } else {
            None
        }
    }
}

/// A scheme that a cell does not have, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// The scheme, as written.
    pub scheme: String,
    /// Why.
    pub why: String,
}

/// What came of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellResult {
    /// Its name.
    pub cell: String,
    /// The cell as text.
    pub text: String,
    /// Time that its runs took on this machine, all threads together, in seconds.
    pub seconds: f64,
    /// The physical limit of the completion time, in milliseconds.
    pub limit_ms: f64,
    /// Schemes that it does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// What each scheme did.
    pub schemes: Vec<Runs>,
}

impl CellResult {
    /// What a scheme did.
    pub fn of(&self, scheme: &str) -> Option<&Runs> {
        self.schemes.iter().find(|runs| runs.scheme == scheme)
    }

    /// The shortest mean completion time of any scheme, in milliseconds.
    pub fn best_fct_ms(&self) -> Option<f64> {
        let times = self.schemes.iter().map(Runs::mean_fct_ms).filter(|fct| fct.is_finite());
        times.reduce(f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harm_is_what_others_lack_and_a_failure_takes_for_ever() {
        let runs = Runs {
            scheme: "a".into(),
            fct_ms: vec![Some(100.0), Some(300.0)],
            sent_twice: vec![0.0, 0.5],
            others_mbit: vec![10.0, 20.0],
            without_mbit: vec![14.0, 20.0],
            beyond_packets: vec![3.0, 0.0],
            ..Runs::default()
        };
        assert_eq!((runs.mean_fct_ms(), runs.mean_sent_twice()), (200.0, Some(0.25)));
        assert_eq!((runs.harm_mbit(), runs.most_beyond(), runs.mean_worst_mos()), (Some(2.0), Some(3.0), None));
        assert_eq!(runs.problem(2), None);
        assert!(runs.problem(3).unwrap().contains("each of 3 repetitions"));
        let failed = Runs { fct_ms: vec![Some(100.0), None], ..runs.clone() };
        assert_eq!((failed.mean_fct_ms(), failed.problem(2)), (f64::INFINITY, None));
        let odd = Runs { fct_ms: vec![Some(100.0), Some(0.0)], ..runs };
        assert!(odd.problem(2).unwrap().contains("above 0"));
    }
}
