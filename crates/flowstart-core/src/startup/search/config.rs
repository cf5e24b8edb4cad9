//! The options of SEARCH: a published revision, and each question in which revisions differ.

use alloc::format;

use crate::registry::ConfigError;
use crate::startup::validate_initial_window;

/// The published revision; the table of the parent module lists the differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Variant {
    /// Algorithm 1 of the slides: delivered bytes of each bin against twice those of an RTT earlier.
    Slides,
    /// Firefox's stack, neqo.
    #[default]
    Firefox,
    /// The authors' code 4.0 for FreeBSD.
    Freebsd,
    /// The authors' code 4.0 for Linux.
    Linux,
}

/// What happens to the window when the path is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Exit {
    /// It is reduced by what was delivered in the last two initial RTTs (Algorithm 1, lines 25 to 27).
    Reduce,
    /// It follows the bytes in flight down to what was delivered in the last initial RTT; every three acknowledged
    /// segments allow one new segment (the authors' code, 4.0).
    Drain,
    /// Nothing (Firefox; the authors' QUIC code).
    ExitOnly,
}

/// The number of bins in a sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Sum {
    /// W, a window.
    #[default]
    W,
    /// From curr - W to curr (Algorithm 1, lines 20 and 21).
    #[cfg_attr(feature = "serde", serde(rename = "W+1"))]
    WPlusOne,
}

/// An RTT in bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum LookBack {
    /// Whole bins, the rest is ignored.
    RoundDown,
    /// The nearest whole number of bins.
    Round,
    /// Between the window that is too new and the next older one.
    InterpolateOlder,
    /// Between the window that is too new and the next newer one (the text of draft-chung-ccwg-search-09).
    InterpolateNewer,
}

/// Which RTT the look-back spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum LookBackRtt {
    /// The latest sample, which grows with the queue.
    #[default]
    Current,
    /// The RTT that gave the bins their length.
    Initial,
}

/// What happens when the look-back needs a bin that W + `EXTRA_BINS` places cannot hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Wrap {
    /// There are more places.
    #[default]
    Extend,
    /// The bin in its place is read instead (Algorithm 1).
    Literal,
    /// There is no decision.
    Refuse,
}

/// What happens when an acknowledgement comes after more than one bin has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum SkippedBins {
    /// One bin ends with each acknowledgement (Algorithm 1).
    None,
    /// All of them end, and the bins between are empty (Linux).
    Fill,
    /// As `fill`; after more than W bins SEARCH begins anew with the next RTT sample (Firefox).
    Reset,
    /// As `fill`; after more than twice the whole bins of an initial RTT, four, SEARCH begins anew at once. After more
    /// than W bins it takes the current RTT as the initial one (FreeBSD).
    Restart,
}

/// What happens when a bin would end with an app-limited acknowledgement: its data left while the sender had nothing
/// more to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum AppLimited {
    /// It counts like any other.
    Count,
    /// If less than half of the window was in flight since before its packet left, its bytes count but no bin ends with
    /// it (Firefox).
    Wait,
    /// SEARCH begins anew at once, with its current initial RTT (Linux).
    Restart,
}

/// Parameters of SEARCH. Names as in Algorithm 1.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Initial window in segments, 1 to 100000. Default: the transport profile's.
    pub iw: Option<u32>,
    /// Which published revision. Default: Firefox's.
    pub variant: Variant,
    /// `WINDOW_SIZE` in initial RTTs, 2 to 20; with `skipped_bins=restart` at most `w`. All revisions: 3.5.
    pub window_factor: f64,
    /// W: bins in a window, 2 to 1000. All revisions: 10.
    pub w: u32,
    /// `EXTRA_BINS`, which bounds the look-back, 1 to 1000. It must span the RTT at which a path can look full.
    /// Default: the revision's.
    pub extra_bins: Option<u32>,
    /// THRESH: the missing share of the deliveries at which the path counts as full, 0.01 to 1. Default: the
    /// revision's.
    pub thresh: Option<f64>,
    /// What happens to the window when the path is full. Default: the revision's.
    pub exit: Option<Exit>,
    /// The number of bins in a sum; only `slides` can have another number than W. Default W.
    pub sum: Sum,
    /// Whether the new, still empty bin counts as one of them; only in `slides`. Default: no.
    pub count_current: bool,
    /// An RTT in bins. Default: the revision's. Algorithm 1 does not define it; `round`, because 2.86 is nearer to 3.
    pub look_back: Option<LookBack>,
    /// Which RTT the look-back spans. All revisions: the current one.
    pub look_back_rtt: LookBackRtt,
    /// What happens when the oldest bin of the look-back was overwritten; all except `slides` extend. Default:
    /// `extend`.
    pub wrap: Wrap,
    /// What happens when more than one bin has ended. Default: the revision's; `fill` for `slides`.
    pub skipped_bins: Option<SkippedBins>,
    /// What happens when the sender had nothing more to send. Default: the revision's.
    pub app_limited: Option<AppLimited>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            iw: None,
            variant: Variant::Firefox,
            window_factor: 3.5,
            w: 10,
            extra_bins: None,
            thresh: None,
            exit: None,
            sum: Sum::W,
            count_current: false,
            look_back: None,
            look_back_rtt: LookBackRtt::Current,
            wrap: Wrap::Extend,
            skipped_bins: None,
            app_limited: None,
        }
    }
}

/// A revision's answers to the questions that the configuration leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Answers {
    pub(super) thresh: f64,
    pub(super) extra_bins: u32,
    pub(super) exit: Exit,
    pub(super) look_back: LookBack,
    pub(super) skipped_bins: SkippedBins,
    pub(super) app_limited: AppLimited,
}

impl Variant {
    /// The rows of the table with options of their own.
    const fn answers(self) -> Answers {
        let slides = Answers {
            thresh: 0.35,
            extra_bins: 15,
            exit: Exit::Reduce,
            look_back: LookBack::Round,
            skipped_bins: SkippedBins::Fill,
            app_limited: AppLimited::Count,
        };
        let interpolated = Answers { look_back: LookBack::InterpolateOlder, ..slides };
        match self {
            Self::Slides => slides,
            Self::Firefox => {
                let skipped_bins = SkippedBins::Reset;
                let app_limited = AppLimited::Wait;
                Answers { thresh: 0.26, exit: Exit::ExitOnly, skipped_bins, app_limited, ..interpolated }
            }
            Self::Freebsd => Answers {
                thresh: 0.26,
                extra_bins: 40,
                exit: Exit::Drain,
                skipped_bins: SkippedBins::Restart,
                ..interpolated
            },
            Self::Linux => {
                Answers { extra_bins: 40, exit: Exit::Drain, app_limited: AppLimited::Restart, ..interpolated }
            }
        }
    }
}

impl Config {
    /// Refuses parameters out of range, and readings of Algorithm 1 that the other revisions do not have.
    pub fn validate(&self) -> Result<(), ConfigError> {
        validate_initial_window(self.iw)?;
        ConfigError::unless_in("window_factor", self.window_factor, 2.0..=20.0)?;
        ConfigError::unless_in("w", self.w, 2..=1000)?;
        self.extra_bins.map_or(Ok(()), |bins| ConfigError::unless_in("extra_bins", bins, 1..=1000))?;
        self.thresh.map_or(Ok(()), |thresh| ConfigError::unless_in("thresh", thresh, 0.01..=1.0))?;
        self.validate_reach()?;
        if self.variant == Variant::Slides {
            return Ok(());
        }
        if self.sum != Sum::W {
            return Err(ConfigError::new("sum", "W+1", "W unless variant=slides"));
        }
        if self.count_current {
            return Err(ConfigError::new("count_current", "true", "false unless variant=slides"));
        }
        if self.wrap != Wrap::Extend {
            let written = if self.wrap == Wrap::Literal { "literal" } else { "refuse" };
            return Err(ConfigError::new("wrap", written, "extend unless variant=slides"));
        }
        Ok(())
    }

    /// Refuses parameters with which a full path is never seen.
    fn validate_reach(&self) -> Result<(), ConfigError> {
        let Answers { thresh, extra_bins, look_back, skipped_bins, .. } = self.answers();
        let (w, window_factor) = (f64::from(self.w), self.window_factor);
        if skipped_bins == SkippedBins::Restart && window_factor > w {
            let allowed = format!(
                "2 to w, {w}, with skipped_bins=restart: no whole bin fits into an initial RTT, and each begins anew"
            );
            return Err(ConfigError::new("window_factor", window_factor, allowed));
        }
        let in_rtt = w / window_factor;
        let whole = if look_back == LookBack::Round { libm::round(in_rtt) } else { libm::floor(in_rtt) };
        let (bins, why) = match (self.variant, self.look_back_rtt) {
            (Variant::Slides, LookBackRtt::Initial) if whole < 1.0 => {
                let allowed = format!("less, so that an initial RTT is a bin: w is {w}");
                return Err(ConfigError::new("window_factor", window_factor, allowed));
            }
            (Variant::Slides, _) => (whole.max(1.0), "an RTT is w / window_factor bins"),
            (_, LookBackRtt::Initial) => (whole, "an RTT is w / window_factor bins"),
            // The missing part of a window was sent in the time by which the RTT has grown. At a rate that does not
            // fall, a share of THRESH takes at least that share of a window.
            (_, LookBackRtt::Current) => (
                libm::floor(in_rtt + thresh * w),
                "by w / window_factor + thresh * w bins the RTT shows a full path first",
            ),
        };
        let least = bins as u32 + self.beyond_reach();
        if extra_bins < least {
            return Err(ConfigError::new("extra_bins", extra_bins, format!("at least {least}: {why}")));
        }
        Ok(())
    }

    /// By how many bins the longest look-back is shorter than `EXTRA_BINS`.
    const fn beyond_reach(&self) -> u32 {
        match self.variant {
            Variant::Slides => 0,
            Variant::Firefox => 1,
            Variant::Freebsd | Variant::Linux => 2,
        }
    }

    /// The revision's answers, with the configured ones in their place.
    pub(super) fn answers(&self) -> Answers {
        let revision = self.variant.answers();
        Answers {
            thresh: self.thresh.unwrap_or(revision.thresh),
            extra_bins: self.extra_bins.unwrap_or(revision.extra_bins),
            exit: self.exit.unwrap_or(revision.exit),
            look_back: self.look_back.unwrap_or(revision.look_back),
            skipped_bins: self.skipped_bins.unwrap_or(revision.skipped_bins),
            app_limited: self.app_limited.unwrap_or(revision.app_limited),
        }
    }

    /// Whether the oldest bin of a look-back of `bins` is kept, and whether a window lies before bin `prev`.
    pub(super) fn in_reach(&self, extra_bins: u64, bins: u64, prev: u64) -> bool {
        let w = u64::from(self.w);
        let kept = bins + u64::from(self.beyond_reach()) <= extra_bins;
        kept && match self.variant {
            // An RTT of less than a bin leaves nothing to compare with.
            Variant::Slides => bins > 0 && prev >= w,
            Variant::Firefox => prev > w,
            Variant::Freebsd | Variant::Linux => prev >= w,
        }
    }

    /// Places for bins.
    pub(super) fn num_bins(&self) -> usize {
        let literal = self.w as usize + self.answers().extra_bins as usize;
        // One for W + 1 bins, one for the bin that just began and does not count, one for the interpolation.
        if self.wrap == Wrap::Extend { literal + 3 } else { literal }
    }
}
