//! The highest delivery rate of each access network, kept in a file from run to run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flowstart_core::time::Duration;
use flowstart_core::units::Rate;
use flowstart_sensing::estimator::highest_rate::{self, HighestRate};
use flowstart_sensing::path_store::UnixTime;
use serde::{Deserialize, Serialize};

use super::ClientError;

/// The layout of the file.
const VERSION: u32 = 1;
/// Networks that are kept, those with the latest transfers.
const NETWORKS_MAX: usize = 64;
/// Largest file that is read: all networks with all of their rates take less.
const LARGEST_FILE: u64 = 1 << 20;

/// What the file holds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    networks: BTreeMap<String, HighestRate>,
}

/// The rates, and where they are kept.
#[derive(Debug)]
pub struct Rates {
    file: PathBuf,
    networks: BTreeMap<String, HighestRate>,
}

impl Rates {
    /// Those in `file`; none if it does not exist yet.
    ///
    /// # Errors
    ///
    /// What is wrong with the file.
    pub fn read(file: &Path) -> Result<Self, ClientError> {
        let failed = |problem: String| ClientError::File { file: file.to_owned(), problem };
        let read = flowstart_files::read_if_any(file, LARGEST_FILE).map_err(|error| failed(error.to_string()))?;
        let networks = match read {
            None => BTreeMap::new(),
            Some(text) => {
                let kept: Kept = serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
                if kept.version != VERSION {
                    return Err(failed(format!("version is {}; this program reads {VERSION}", kept.version)));
                }
                kept.networks
            }
        };
        Ok(Self { file: file.to_owned(), networks })
    }

    /// The highest rate that a transfer had in `network`, and its age.
    pub fn highest(&self, network: &str, now: UnixTime) -> Option<(Rate, Duration)> {
        self.networks.get(network)?.estimate(now)
    }

    /// A transfer in `network` had this rate.
    pub fn observe(&mut self, network: &str, rate: Rate, now: UnixTime) {
        let new = || HighestRate::new(highest_rate::Config::default());
        self.networks.entry(network.to_owned()).or_insert_with(new).observe(rate, now);
        while self.networks.len() > NETWORKS_MAX {
            let silent = self.networks.iter().min_by_key(|(_, rates)| rates.latest());
            let Some(silent) = silent.map(|(name, _)| name.clone()) else { break };
            self.networks.remove(&silent);
        }
    }

    /// Writes the file. It appears whole or not at all.
    ///
    /// # Errors
    ///
    /// Why it cannot be written.
    pub fn save(&self) -> Result<(), ClientError> {
        let kept = Kept { version: VERSION, networks: self.networks.clone() };
        let written = serde_json::to_vec_pretty(&kept).map_err(std::io::Error::from);
        written.and_then(|text| flowstart_files::replace_secret(&self.file, &text)).map_err(|error| ClientError::File {
            file: self.file.clone(),
            problem: format!("cannot be written: {error}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> UnixTime {
        UnixTime::from_secs(seconds)
    }

    #[test]
    fn rates_outlive_the_program_and_belong_to_their_network() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rates");
        let mut rates = Rates::read(&file).unwrap();
        assert_eq!(rates.highest("home", at(0)), None);
        rates.observe("home", Rate::from_mbit(40), at(100));
        rates.observe("home", Rate::from_mbit(30), at(200));
        rates.observe("train", Rate::from_mbit(3), at(300));
        rates.save().unwrap();
        let rates = Rates::read(&file).unwrap();
        assert_eq!(rates.highest("home", at(300)), Some((Rate::from_mbit(40), Duration::from_secs(200.0))));
        assert_eq!(rates.highest("train", at(300)), Some((Rate::from_mbit(3), Duration::ZERO)));
        assert_eq!(rates.highest("work", at(300)), None);
    }

    #[test]
    fn the_network_that_was_silent_longest_is_forgotten() {
        let mut rates = Rates { file: PathBuf::new(), networks: BTreeMap::new() };
        for (network, second) in (0..100).zip(1000..) {
            rates.observe(&network.to_string(), Rate::from_mbit(1), at(second));
        }
        assert_eq!(rates.networks.len(), NETWORKS_MAX);
        assert!(rates.highest("35", at(1100)).is_none() && rates.highest("36", at(1100)).is_some());
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_and_it_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rates");
        for (text, problem) in [
            ("", "EOF"),
            ("{\"version\":2,\"networks\":{}}", "version is 2; this program reads 1"),
            ("{\"version\":1,\"networks\":{},\"more\":1}", "unknown field `more`"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = Rates::read(&file).unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("rates: "), "{error}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }
}
