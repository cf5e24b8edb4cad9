//! What clients hint of their access: `hint=40mbit`, `hint=past/2s/10s`, rounded down by `hint_steps=5`.

use std::fmt;

use flowstart_core::quantize::Grid;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;
use flowstart_sim::link::capacity_trace::CapacityTrace;

use super::super::form::Key;
use super::super::{InputError, RATES, Spec};
use super::Link;
use super::known::NOTHING;

/// The keys.
pub(super) const KEYS: &[Key<Link>] = &[
    Key::new(
        "hint",
        "a rate, past/WINDOW/AGE, or none",
        "the bandwidth that the client hints",
        "the bottleneck's rate",
    )
    .such_as("hint=40mbit")
    .only_simulated(|link| matches!(link.hint, Some(Hinted::Past { .. }))),
    Key::new("hint_steps", "1 to 100", "steps per factor of ten to which hints are rounded down", "exact")
        .such_as("hint_steps=5"),
];

/// The bandwidth that a client hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hinted {
    /// None.
    Nothing,
    /// The same at every start.
    Rate(Rate),
    /// The mean rate of a part of the recording before each start, which is what the client could measure. A recording
    /// repeats, so the part before its beginning is its end.
    Past {
        /// The length of the part.
        window: Duration,
        /// The time from the end of the part to the start.
        age: Duration,
    },
}

/// Shortest part of a recording that is a hint: one in which a slow link can give a packet.
const SHORTEST: Duration = Duration::from_millis(10);

impl Link {
    /// The bandwidth that a client hints of a transfer with this start; `None` if it knows none, or the link is too
    /// slow for the grid of hints.
    pub fn hinted(&self, start: Timestamp) -> Option<Rate> {
        let hint = match self.hint {
            None => self.rate,
            Some(Hinted::Nothing) => return None,
            Some(Hinted::Rate(rate)) => rate,
            Some(Hinted::Past { window, age }) => {
                let past = self.trace.as_ref()?.rate_before(start, age, window);
                past.filter(|rate| RATES.contains(rate))?
            }
        };
        self.hint_grid.map_or(Some(hint), |grid| grid.quantize(hint))
    }

    /// How old that is.
    pub fn hint_age(&self) -> Duration {
        self.hint.map_or(Duration::ZERO, Hinted::age)
    }
}

impl Hinted {
    /// Reads it for a link with this recording.
    pub(super) fn read(spec: &mut Spec<'_>, recording: Option<&CapacityTrace>) -> Result<Option<Self>, InputError> {
        let text = spec.value("hint")?;
        if text.is_some_and(|text| text.eq_ignore_ascii_case(NOTHING)) {
            return Ok(Some(Self::Nothing));
        }
        let Some(past) = text.and_then(|text| text.strip_prefix("past")) else {
            return Ok(spec.within("hint", RATES)?.map(Self::Rate));
        };
        let parts: Vec<&str> = past.split('/').collect();
        let ["", window, age] = parts[..] else {
            return Err(spec.refused_value("hint", "expected a rate, or past/WINDOW/AGE, as past/2s/10s"));
        };
        let Some(recording) = recording else {
            return Err(spec.refused_value("hint", "a link with a rate has no recording, whose past could be known"));
        };
        let period = recording.period();
        let times = |text: &str| text.parse::<Duration>().map_err(|error| spec.refused_value("hint", error));
        let (window, age) = (times(window)?, times(age)?);
        let longest = period.saturating_sub(age);
        if age >= period || !(SHORTEST..=longest).contains(&window) {
            let allowed = "together they are at most its length";
            let problem = format_args!(
                "allowed is a WINDOW of {SHORTEST} to {period}, the recording's length, and an AGE from 0s; {allowed}"
            );
            return Err(spec.refused_value("hint", problem));
        }
        Ok(Some(Self::Past { window, age }))
    }

    /// How old it is at a start.
    const fn age(self) -> Duration {
        match self {
            Self::Nothing | Self::Rate(_) => Duration::ZERO,
            Self::Past { age, .. } => age,
        }
    }
}

impl fmt::Display for Hinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str(NOTHING),
            Self::Rate(rate) => write!(f, "{rate}"),
            Self::Past { window, age } => write!(f, "past/{window}/{age}"),
        }
    }
}

/// Reads the grid of hints.
pub(super) fn grid(spec: &mut Spec<'_>) -> Result<Option<Grid>, InputError> {
    let steps = spec.within("hint_steps", 1..=100)?;
    Ok(steps.map(|steps_per_decade| Grid { steps_per_decade, ..Grid::default() }))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn error(text: &str, folder: &Path) -> String {
        Link::parse("--link", text, folder).unwrap_err().to_string()
    }

    #[test]
    fn clients_hint_the_links_rate_unless_told_otherwise() {
        let hinted = |text: &str| {
            let link = Link::parse("--link", text, Path::new(".")).unwrap();
            link.hinted(Timestamp::ZERO).map(Rate::bits_per_sec)
        };
        assert_eq!(hinted("dsl-fast"), Some(50_000_000));
        assert_eq!(hinted("dsl-fast,hint=10mbit"), Some(10_000_000));
        // Steps of the grid are 10^(1/5) = 1.585 apart: 39.8 Mbit/s is the one below 50, 6.31 the one below 10.
        assert_eq!(hinted("dsl-fast,hint_steps=5"), Some(39_810_717));
        assert_eq!(hinted("dsl-fast,hint=9mbit,hint_steps=5"), Some(6_309_573));
        // Below the grid there is no hint.
        assert_eq!(hinted("rate=64kbit,rtt=50ms,buffer=100pkt,hint_steps=5"), None);
    }

    #[test]
    fn a_hint_from_the_past_is_another_at_each_start() {
        let folder = tempfile::tempdir().unwrap();
        // A packet in each of the first 100 ms, then one in each tenth.
        let times = (1..=100).chain((110..=200).step_by(10));
        let text: String = times.map(|time| format!("{time}\n")).collect();
        std::fs::write(folder.path().join("up"), text).unwrap();
        let link = "trace=up,rtt=20ms,hint=past/50ms/20ms,hint_steps=100";
        let link = Link::parse("--link", link, folder.path()).unwrap();
        let at = |start| link.hinted(Timestamp::ZERO + Duration::from_millis(start)).map(Rate::bits_per_sec);
        // 12 Mbit/s before 100 ms, 1.2 after it; in steps of 10^(1/100) the ones below: 11.75 and 1.175.
        assert_eq!((at(100), at(180)), (Some(11_748_976), Some(1_174_898)));
        assert_eq!((at(0), at(300)), (at(200), at(100)));
        assert_eq!(link.hint_age(), Duration::from_millis(20));
        assert_eq!(link.resolved().hint.as_deref(), Some("past/50ms/20ms"));
        for (hint, expected) in [
            ("past", "past/WINDOW/AGE"),
            ("past/1s", "past/WINDOW/AGE"),
            ("past/1s/2s/3s", "past/WINDOW/AGE"),
            ("past/x/10ms", "hint"),
            ("past/1ms/10ms", "10ms to 200ms"),
            ("past/100ms/101ms", "10ms to 200ms"),
            ("past/10ms/100000000s", "10ms to 200ms"),
        ] {
            let error = error(&format!("trace=up,rtt=20ms,hint={hint}"), folder.path());
            assert!(error.contains(expected), "{hint}: {error}");
        }
        assert!(error("lte,hint=past/2s/10s", folder.path()).contains("no recording"));
    }

    #[test]
    fn wrong_hints_say_what_is_allowed() {
        let error = |text| error(text, Path::new("."));
        assert!(error("lte,hint=0mbit").contains("allowed is 1kbit to"));
        assert!(error("lte,hint_steps=0").contains("1 to 100"));
        assert!(error("lte,hint_steps=256").contains("1 to 100"));
        assert!(error("lte,hint_steps=x").contains("hint_steps"));
    }
}
