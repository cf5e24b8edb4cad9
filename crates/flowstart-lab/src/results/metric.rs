//! The attributes of metrics: unit, group of experiments that have them, kind of value.

use crate::study::plan::{Cell, Plan};

/// A metric's value in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A name.
    Text(Option<&'a str>),
    /// A count.
    Count(Option<u64>),
    /// A number.
    Number(Option<f64>),
}

/// The files that show a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Only the rows.
    Rows,
    /// The rows, and `summary.json` with its mean.
    Summary,
}

/// Unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A name, not a number.
    Name,
    /// A number without unit.
    Count,
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Megabits.
    Megabits,
    /// Megabits per second.
    MegabitsPerSecond,
    /// Kilobytes per second.
    KilobytesPerSecond,
    /// A part of a whole, 0 to 1.
    Share,
    /// One quantity over another.
    Ratio,
    /// Rating R of a conversation.
    Rating,
    /// Mean opinion score.
    Score,
}

impl Unit {
    /// The unit's text beside numbers.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Count => "count",
            Self::Packets => "packets",
            Self::Bytes => "B",
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Megabits => "Mbit",
            Self::MegabitsPerSecond => "Mbit/s",
            Self::KilobytesPerSecond => "KB/s",
            Self::Share => "share",
            Self::Ratio => "ratio",
            Self::Rating => "R",
            Self::Score => "MOS",
        }
    }
}

/// The experiments that have a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// All; the metric identifies the flow of a row, or its end.
    Identity,
    /// All.
    Every,
    /// Those whose competitors have finite transfers.
    OthersEnd,
    /// Those whose measured flows carry objects.
    Objects,
    /// Those whose measured flows differ in their RTT.
    Rtts,
    /// Those with web sessions; the same in all rows of a repetition. [`crate::run::outcome::WebOutcome`] defines them.
    Web,
    /// Those with a scheme that sends requests to routers.
    QuickStart,
    /// Those with interactive media beside the newcomers; the same in all rows of a repetition.
    Media,
    /// Those with video calls beside the newcomers; the same in all rows of a repetition.
    Call,
    /// Those whose measured flows are pages over a version of HTTP.
    Pages,
    /// Those whose measured flows are adaptive videos.
    Video,
    /// Those between sockets; the same in all rows of a repetition.
    Sockets,
}

impl Group {
    /// Whether all experiments have it.
    pub fn is_of_all(self) -> bool {
        matches!(self, Self::Identity | Self::Every)
    }

    /// Whether a cell has it.
    pub fn is_of(self, plan: &Plan, cell: &Cell) -> bool {
        let (size, competitor) = (&plan.sizes[cell.size].value, plan.competitors[cell.competitor].on(cell.transport));
        match self {
            Self::Identity | Self::Every => true,
            Self::OthersEnd => competitor.has_transfers(),
            Self::Objects => size.objects().is_some(),
            Self::Rtts => size.sessions().is_some() || !plan.arrivals[cell.arrival].value.rtts.is_empty(),
            Self::Web => size.sessions().is_some(),
            Self::QuickStart => plan.schemes[cell.scheme].on(cell.transport).request().is_some(),
            Self::Media => competitor.media().is_some(),
            Self::Call => competitor.call().is_some(),
            Self::Video => size.objects().is_some_and(|application| application.video().is_some()),
            Self::Sockets => !plan.is_simulated(cell),
            Self::Pages => size.objects().is_some_and(|application| application.http().is_some()),
        }
    }
}

/// A type of a metric.
pub(super) trait Field {
    fn value(&self) -> Value<'_>;
}

impl Field for String {
    fn value(&self) -> Value<'_> {
        Value::Text(Some(self))
    }
}

impl Field for Option<String> {
    fn value(&self) -> Value<'_> {
        Value::Text(self.as_deref())
    }
}

impl Field for u64 {
    fn value(&self) -> Value<'_> {
        Value::Count(Some(*self))
    }
}

impl Field for Option<u64> {
    fn value(&self) -> Value<'_> {
        Value::Count(*self)
    }
}

impl Field for f64 {
    fn value(&self) -> Value<'_> {
        Value::Number(Some(*self))
    }
}

impl Field for Option<f64> {
    fn value(&self) -> Value<'_> {
        Value::Number(*self)
    }
}
