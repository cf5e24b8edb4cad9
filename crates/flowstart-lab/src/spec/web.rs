//! Web sessions as the measured traffic: `web:sessions=20`, an application whose connections come and go.
//!
//! The defaults are those of Sarolahti, Allman and Floyd, section 4. Details that the paper omits follow ns-2's
//! generator and the scripts that its authors published for it: the numbers of pages and objects are fixed; gaps are
//! exponential and in seconds, 10 ms between requests; sessions start at any time of the run. Those scripts give host
//! number i of ten the delay longest (i / 9)^4. Here a host draws longest u^(longest / mean - 1), the same law with the
//! paper's mean and maximum. It is uniform if the longest delay is twice the mean.

use flowstart_core::rng::Substream;
use flowstart_core::spec::names;
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use flowstart_sim::traffic::web::{ObjectSizes, SessionLength, WebConfig};

use super::form::Key;
use super::size::LARGEST;
use super::{InputError, Spec};

/// The name of this application.
pub const WEB: &str = "web";
/// Its keys.
pub(super) const KEYS: &[Key] = &[
    Key::new("sessions", "1 to 2000", "sessions whose servers send towards the receivers: the load", ""),
    Key::new("reverse", "0 to 2000", "sessions whose servers send the other way", "half of sessions"),
    Key::new("pages", "1 to 10000", "pages of a session", "30"),
    Key::new("time", "1s to 1000s", "time of a session, in place of pages", "none"),
    Key::new("inter_page", "a time", "mean gap between pages, exponential", "800ms"),
    Key::new("objects", "1 to 1000", "objects of a page", "10"),
    Key::new("inter_object", "a time", "mean gap between the requests of a page, exponential", "10ms"),
    Key::new("mean", "packets", "mean size of objects, Pareto II", "400"),
    Key::new("shape", "1.0001 to 10", "shape of the sizes of objects", "1.002"),
    Key::new("transfers", "0 to 1000", "transfers of a session beside its pages", "0"),
    Key::new("transfer", "bytes", "their size", "146KB"),
    Key::new("mean_delay", "0s to 10s", "mean one-way delay between a host and its router", "12ms"),
    Key::new("longest_delay", "0s to 10s", "longest one-way delay between a host and its router", "110ms"),
    Key::new("run", "1s to 10000s", "length of the run", "150s"),
    Key::new("share", "0 to 1", "share of connections with the scheme; others use the first scheme", "1"),
    Key::new("rows", "repetition or connections", "what has a row of results", "repetition"),
];
/// Most sessions of a direction.
const MAX_SESSIONS: u32 = 2000;
/// Numbers that each session has for its objects, more than it can request.
const OBJECTS_OF_A_SESSION: u64 = 100_000_000;
/// Most rows that a repetition of a cell may have.
const MAX_ROWS: u64 = 100_000;

/// The unit of a result row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Each repetition: means and sums over its connections.
    Repetition,
    /// Each connection that was completed.
    Connections,
}

/// Web sessions, validated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sessions {
    /// Sessions of the measured direction.
    pub sessions: u32,
    /// Sessions of the other direction.
    pub reverse: u32,
    /// The length of each session.
    pub length: SessionLength,
    /// Mean gap between pages.
    pub inter_page: Duration,
    /// Objects of a page.
    pub objects: u32,
    /// Mean gap between the requests of a page.
    pub inter_object: Duration,
    /// Sizes of objects, in packets.
    pub sizes: ObjectSizes,
    /// Payload of a packet.
    pub payload: Bytes,
    /// Transfers of a session.
    pub transfers: u32,
    /// Their size.
    pub transfer: Bytes,
    /// Mean one-way delay of a host.
    pub mean_delay: Duration,
    /// Longest one-way delay of a host.
    pub longest_delay: Duration,
    /// The length of the run.
    pub run: Duration,
    /// Share of the connections that use the cell's scheme.
    pub share: f64,
    /// The unit of a result row.
    pub rows: Rows,
}

impl Sessions {
    /// Reads `web:sessions=N,...`; `None` for another application. `payload` is a packet's.
    ///
    /// # Errors
    ///
    /// What cannot be read.
    pub fn parse(field: &str, text: &str, payload: Bytes) -> Result<Option<Self>, InputError> {
        let mut spec = Spec::parse(field, text)?;
        if !names::is_same(spec.name(), WEB) {
            return Ok(None);
        }
        let times = |least, most| Duration::from_millis(least)..=Duration::from_millis(most);
        let sessions = spec.within("sessions", 1..=MAX_SESSIONS)?;
        let reverse = spec.within("reverse", 0..=MAX_SESSIONS)?;
        let length = match (spec.within("pages", 1..=10_000)?, spec.within("time", times(1000, 1_000_000))?) {
            (Some(_), Some(_)) => return Err(spec.refused("a session has pages or time; give one of them")),
            (_, Some(time)) => SessionLength::Time(time),
            (pages, None) => SessionLength::Pages(pages.unwrap_or(30)),
        };
        let inter_page = spec.within("inter_page", times(1, 1_000_000))?.unwrap_or(Duration::from_millis(800));
        let objects = spec.within("objects", 1..=1000)?.unwrap_or(10);
        let inter_object = spec.within("inter_object", times(0, 1_000_000))?.unwrap_or(Duration::from_millis(10));
        let sizes = ObjectSizes {
            mean: spec.within("mean", 0.001..=1e9)?.unwrap_or(400.0),
            shape: spec.within("shape", 1.0001..=10.0)?.unwrap_or(1.002),
        };
        let transfers = spec.within("transfers", 0..=1000)?.unwrap_or(0);
        let transfer = spec.within("transfer", Bytes::new(1)..=LARGEST)?.unwrap_or(Bytes::new(146_000));
        let mean_delay = spec.within("mean_delay", times(0, 10_000))?.unwrap_or(Duration::from_millis(12));
        let longest_delay = spec.within("longest_delay", times(0, 10_000))?.unwrap_or(Duration::from_millis(110));
        if longest_delay < mean_delay {
            return Err(spec.refused(format_args!(
                "longest_delay is {longest_delay}; allowed is {mean_delay}, the mean, or more"
            )));
        }
        let run = spec.within("run", times(1000, 10_000_000))?.unwrap_or(Duration::from_millis(150_000));
        let share = spec.within("share", 0.0..=1.0)?.unwrap_or(1.0);
        let rows = spec.one_of("rows", &[("repetition", Rows::Repetition), ("connections", Rows::Connections)])?;
        spec.finish()?;
        let sessions = sessions.ok_or_else(|| spec.refused("sessions is missing, as in web:sessions=20"))?;
        let web = Self {
            sessions,
            reverse: reverse.unwrap_or(sessions / 2),
            length,
            inter_page,
            objects,
            inter_object,
            sizes,
            payload,
            transfers,
            transfer,
            mean_delay,
            longest_delay,
            run,
            share,
            rows: rows.unwrap_or(Rows::Repetition),
        };
        match web.most_rows() {
            Some(rows) if rows <= MAX_ROWS => Ok(Some(web)),
            _ => Err(spec.refused(format_args!(
                "rows=connections is for up to {MAX_ROWS} connections of a known number of pages"
            ))),
        }
    }

    /// Most rows of a repetition; `None`: not known.
    fn most_rows(&self) -> Option<u64> {
        match (self.rows, self.length) {
            (Rows::Repetition, _) => Some(1),
            (Rows::Connections, SessionLength::Time(_)) => None,
            (Rows::Connections, SessionLength::Pages(pages)) => Some(
                u64::from(self.sessions) * (u64::from(pages) * u64::from(self.objects) + u64::from(self.transfers)),
            ),
        }
    }

    /// The number of a session's object in results.
    pub fn flow_number(&self, session: u32, object: u32) -> u64 {
        u64::from(session) * OBJECTS_OF_A_SESSION + u64::from(object)
    }

    /// The sessions in the simulator's terms.
    pub fn config(&self) -> WebConfig {
        WebConfig {
            length: self.length,
            inter_page: self.inter_page,
            objects: self.objects,
            inter_object: self.inter_object,
            sizes: self.sizes,
            payload: self.payload,
            transfers: self.transfers,
            transfer_size: self.transfer,
            share: self.share,
            run: self.run,
        }
    }

    /// The delay of host number `index` of a repetition with this seed.
    pub fn delay(&self, seed: u64, index: u64) -> Duration {
        if self.mean_delay == Duration::ZERO {
            return Duration::ZERO;
        }
        let exponent = self.longest_delay.as_secs() / self.mean_delay.as_secs() - 1.0;
        let uniform = Substream::new(seed, "web host delay", index).uniform();
        self.longest_delay.scale(libm::pow(uniform, exponent))
    }
}

impl std::fmt::Display for Sessions {
    /// The canonical text, with every default filled in.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{WEB}:sessions={},reverse={},", self.sessions, self.reverse)?;
        match self.length {
            SessionLength::Pages(pages) => write!(f, "pages={pages}")?,
            SessionLength::Time(time) => write!(f, "time={time}")?,
        }
        let Self { inter_page, objects, inter_object, sizes, transfers, transfer, .. } = self;
        write!(f, ",inter_page={inter_page},objects={objects},inter_object={inter_object}")?;
        write!(f, ",mean={},shape={},transfers={transfers},transfer={transfer}", sizes.mean, sizes.shape)?;
        write!(f, ",mean_delay={},longest_delay={}", self.mean_delay, self.longest_delay)?;
        let rows = if self.rows == Rows::Repetition { "repetition" } else { "connections" };
        write!(f, ",run={},share={},rows={rows}", self.run, self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web(text: &str) -> Sessions {
        Sessions::parse("application", text, Bytes::new(1460)).unwrap().unwrap()
    }

    #[test]
    fn the_defaults_are_the_papers() {
        let plain = web("web:sessions=21");
        assert_eq!((plain.sessions, plain.reverse, plain.length), (21, 10, SessionLength::Pages(30)));
        assert_eq!(web(&plain.to_string()), plain);
        let other = web("web:sessions=5,reverse=0,time=45s,share=0.5,transfers=10,mean=60");
        assert_eq!((other.length, other.reverse), (SessionLength::Time(Duration::from_millis(45_000)), 0));
        assert_eq!(web(&other.to_string()), other);
        assert_eq!(Sessions::parse("application", "page:objects=3", Bytes::new(1460)).unwrap(), None);
    }

    #[test]
    fn hosts_have_the_mean_and_the_longest_delay() {
        let delays = |text: &str| -> Vec<f64> {
            let web = web(text);
            (0..40_000).map(|host| web.delay(1, host).as_millis_f64()).collect()
        };
        let mean = |delays: &[f64]| delays.iter().sum::<f64>() / delays.len() as f64;
        let paper = delays("web:sessions=1");
        // The standard deviation of u^8.17 is 0.214: of the mean of 40,000 times 110 ms, 0.12 ms.
        assert!((mean(&paper) - 12.0).abs() < 0.5, "{}", mean(&paper));
        let longest = paper.iter().copied().fold(0.0, f64::max);
        assert!((109.0..=110.0).contains(&longest), "{longest}");
        // Twice the mean: uniform, a quarter in each quarter.
        let uniform = delays("web:sessions=1,mean_delay=5ms,longest_delay=10ms");
        let quarter = uniform.iter().filter(|delay| **delay < 2.5).count() as f64 / 40_000.0;
        assert!((quarter - 0.25).abs() < 0.01 && (mean(&uniform) - 5.0).abs() < 0.1, "{quarter}");
        assert!(delays("web:sessions=1,mean_delay=0s,longest_delay=0s").iter().all(|delay| *delay == 0.0));
    }

    #[test]
    fn wrong_sessions_say_what_is_allowed() {
        let error = |text: &str| Sessions::parse("--application", text, Bytes::new(1460)).unwrap_err().to_string();
        assert!(error("web").contains("sessions is missing"));
        assert!(error("web:sessions=0").contains("sessions is 0; allowed is 1 to 2000"));
        assert!(error("web:sessions=x").contains("sessions `x`"));
        assert!(error("web:sessions=3,load=5mbit").contains("`load` is not known here; allowed are sessions, reverse"));
        assert!(error("web:sessions=3,pages=3,time=45s").contains("give one of them"));
        assert!(error("web:sessions=3,share=1.5").contains("share is 1.5; allowed is 0 to 1"));
        assert!(error("web:sessions=3,shape=1").contains("shape is 1; allowed is 1.0001 to 10"));
        assert!(error("web:sessions=3,longest_delay=1ms").contains("12ms, the mean, or more"));
        assert!(error("web:sessions=3,rows=all").contains("repetition and connections"));
        assert!(error("web:sessions=1000,rows=connections").contains("up to 100000 connections"));
        assert!(error("web:sessions=3,transfer=0B").contains("1B to 1000GB"));
    }
}
