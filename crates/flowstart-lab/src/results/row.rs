//! The rows of results: the metrics of a measured flow, each declared once.
//!
//! A declaration is `name: type, unit, join, where = value`, with its meaning above it:
//!
//! - `u64` is a count. What may be undefined or unknown is an `Option`.
//! - The join combines the rows of a repetition's flows, if a repetition has one row.
//! - `Summary` metrics have means and intervals in `summary.json`; `Rows` metrics are only in the rows.
//! - The value comes from `flow`, a measured flow with values that are computed once for several metrics.
//!
//! The declaration generates the field of [`Row`], the columns of `flows.csv`, `flows.parquet` and the journal, the
//! code that reads them again, the metric in `summary.json` and the line of `flowstart list metrics`. To add a metric,
//! add its declaration at the end of a group, so that the columns before it keep their places.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_sim::observe::record::{FlowRecord, ObjectTimes};
use flowstart_sim::traffic::video::Playback;
use serde::Deserialize;

use super::metric::{Field, Group, Shown, Unit, Value};
use crate::run::call::CallOutcome;
use crate::run::harm::Harm;
use crate::run::media::MediaOutcome;
use crate::run::outcome::{Failure, FlowOutcome, Known, WebOutcome};
use crate::study::plan::{Cell, Plan};

/// The exit reason of transfers that ended in startup.
pub(crate) const NO_EXIT: &str = "transfer-ended";
/// The possible values of a row's status.
pub const STATUS: [&str; 3] = ["ok", "time-limit", "stalled"];

/// A column of results: a metric, or a part of the flow's identity.
#[derive(Debug)]
pub struct Metric {
    /// Name in every file.
    pub name: &'static str,
    /// Unit of its numbers.
    pub unit: Unit,
    /// The experiments that have it.
    pub group: Group,
    /// The files that show it.
    pub shown: Shown,
    meaning: &'static str,
    value: fn(&Row) -> Value<'_>,
}

impl Metric {
    /// Its meaning, in a sentence.
    pub fn meaning(&self) -> &'static str {
        self.meaning.trim()
    }

    /// Its value in a row.
    pub fn value<'a>(&self, row: &'a Row) -> Value<'a> {
        (self.value)(row)
    }

    /// Its value as a number.
    pub fn number(&self, row: &Row) -> Option<f64> {
        match self.value(row) {
            Value::Text(_) => None,
            Value::Count(count) => count.map(|count| count as f64),
            Value::Number(number) => number,
        }
    }

    /// The metric with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.name == name)
    }
}

/// The source of metrics: a flow, and values that are computed once for several metrics.
struct Measured<'a> {
    plan: &'a Plan,
    cell: &'a Cell,
    rep: u32,
    outcome: &'a FlowOutcome,
    record: &'a FlowRecord,
    known: Known,
    size: f64,
    bdp: u64,
    others: Option<Harm>,
    /// Completion times of the objects; none unless all have arrived.
    objects: Vec<f64>,
    web: Option<WebOutcome>,
    media: MediaOutcome,
    call: CallOutcome,
}

impl<'a> Measured<'a> {
    fn new(plan: &'a Plan, cell: &'a Cell, rep: u32, outcome: &'a FlowOutcome) -> Self {
        let record = &outcome.record;
        let objects: Option<Vec<f64>> = record.objects.iter().map(|object| object.fct().map(millis)).collect();
        Self {
            plan,
            cell,
            rep,
            outcome,
            record,
            known: outcome.known,
            size: outcome.size.get() as f64,
            bdp: plan.links[cell.link].bdp().get(),
            others: outcome.others,
            objects: objects.filter(|_| outcome.failure.is_none()).unwrap_or_default(),
            web: outcome.web,
            media: outcome.media.unwrap_or_default(),
            call: outcome.call.unwrap_or_default(),
        }
    }

    /// The time from this instant until the last payload byte was received.
    fn completion(&self, from: Option<Timestamp>) -> Option<Duration> {
        Some(self.record.completed?.since(from?))
    }

    fn fct(&self) -> Option<Duration> {
        self.completion(self.record.started)
    }

    fn since_start(&self, time: Timestamp) -> f64 {
        millis(time.since(self.outcome.start))
    }

    /// The mean of a time of the objects of a page over a version of HTTP, in milliseconds.
    fn mean_of_objects(&self, time: fn(&ObjectTimes) -> Option<Duration>) -> Option<f64> {
        let is_known = self.has(Group::Pages) && !self.objects.is_empty();
        let times: Option<Vec<f64>> = self.record.objects.iter().map(|one| time(one).map(millis)).collect();
        flowstart_statistics::mean(&times.filter(|_| is_known)?)
    }

    /// The part of these objects that waited for data of others.
    fn part_of_objects_blocked(&self) -> Option<f64> {
        let is_blocked = |one: &ObjectTimes| one.blocked().is_some_and(|time| time > Duration::ZERO);
        let is_known = self.has(Group::Pages) && !self.objects.is_empty();
        let count = self.record.objects.iter().filter(|one| is_blocked(one)).count();
        is_known.then(|| count as f64 / self.record.objects.len() as f64)
    }

    /// What the viewer of an adaptive video saw.
    fn playback(&self) -> Option<&Playback> {
        self.record.playback.as_deref()
    }

    /// The mean rate of its chunks, in Mbit/s.
    fn video_rate(&self) -> Option<f64> {
        let application = self.plan.sizes[self.cell.size].value.objects()?;
        Some(self.playback()?.mean_rate(&application.video()?.ladder)?.as_mbit())
    }

    fn has(&self, group: Group) -> bool {
        group.is_of(self.plan, self.cell)
    }
}

fn millis(span: Duration) -> f64 {
    span.as_millis_f64()
}

/// A value that is the same for all flows of a repetition.
fn same<T: Clone>(rows: &[Row], of: impl Fn(&Row) -> &T) -> T {
    of(&rows[0]).clone()
}

/// A value that several flows together do not have.
fn absent<T: Default>(_: &[Row], _: impl Fn(&Row) -> &T) -> T {
    T::default()
}

fn sum(rows: &[Row], of: impl Fn(&Row) -> &u64) -> u64 {
    rows.iter().map(of).sum()
}

/// The sum, if all flows have it.
fn known_sum(rows: &[Row], of: impl Fn(&Row) -> &Option<u64>) -> Option<u64> {
    rows.iter().map(|row| *of(row)).sum()
}

/// The mean over the flows that have it.
fn mean(rows: &[Row], of: impl Fn(&Row) -> &Option<f64>) -> Option<f64> {
    flowstart_statistics::mean(&rows.iter().filter_map(|row| *of(row)).collect::<Vec<_>>())
}

fn mean_limit(rows: &[Row], of: impl Fn(&Row) -> &f64) -> f64 {
    flowstart_statistics::mean(&rows.iter().map(|row| *of(row)).collect::<Vec<_>>()).unwrap_or_default()
}

fn mean_size(rows: &[Row], of: impl Fn(&Row) -> &u64) -> u64 {
    sum(rows, of) / rows.len() as u64
}

fn first_start(rows: &[Row], of: impl Fn(&Row) -> &f64) -> f64 {
    rows.iter().map(of).copied().fold(f64::INFINITY, f64::min)
}

/// The ratio over all bytes, not the mean over flows.
fn inflation_of_all(rows: &[Row], _: impl Fn(&Row) -> &f64) -> f64 {
    sum(rows, |row| &row.retransmitted_bytes) as f64 / sum(rows, |row| &row.size_bytes) as f64
}

macro_rules! metrics {
    ($flow:ident: $($group:ident {
        $($(#[doc = $meaning:literal])+ $name:ident: $type:ty, $unit:ident, $join:ident, $shown:ident = $value:expr;)+
    })+) => {
        /// One measured flow of one repetition. Undefined values are absent.
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        pub struct Row {
            $($($(#[doc = $meaning])+ pub $name: $type,)+)+
        }

        /// Every metric, in the order of columns.
        pub static METRICS: &[Metric] = &[$($(Metric {
            name: stringify!($name),
            unit: Unit::$unit,
            group: Group::$group,
            shown: Shown::$shown,
            meaning: concat!($($meaning),+),
            value: |row| row.$name.value(),
        },)+)+];

        impl Row {
            /// The row of a flow.
            pub fn new(plan: &Plan, cell: &Cell, rep: u32, outcome: &FlowOutcome) -> Self {
                let $flow = Measured::new(plan, cell, rep, outcome);
                Self { $($($name: $value,)+)+ }
            }

            /// One row for all flows of a repetition. `None` without flows.
            pub fn of_repetition(rows: &[Self]) -> Option<Self> {
                (!rows.is_empty()).then(|| Self { $($($name: $join(rows, |row| &row.$name),)+)+ })
            }
        }
    };
}

metrics! { flow:
    Identity {
        /// Cell.
        cell: String, Name, same, Rows = flow.plan.id(flow.cell);
        /// Link as written.
        link: String, Name, same, Rows = flow.plan.links[flow.cell.link].text.clone();
        /// Queue discipline as written.
        aqm: String, Name, same, Rows = flow.plan.aqms[flow.cell.aqm].text.clone();
        /// Payload of the flow.
        size_bytes: u64, Bytes, mean_size, Rows = flow.outcome.size.get();
        /// Scheme as written.
        scheme: String, Name, same, Rows = flow.plan.schemes[flow.cell.scheme].text.clone();
        /// Competitor as written.
        competitor: String, Name, same, Rows = flow.plan.competitors[flow.cell.competitor].text.clone();
        /// Repetition, from 0.
        rep: u64, Count, same, Rows = u64::from(flow.rep);
        /// Measured flow, from 0.
        flow: u64, Count, absent, Rows = flow.outcome.flow;
        /// Seed of the repetition.
        seed: u64, Count, same, Rows = flow.plan.run_seed(flow.rep);
        /// When the flow started, from the start of the run.
        start_s: f64, Seconds, first_start, Rows = flow.outcome.start.as_secs();
        /// How the run ended: `ok`, `time-limit` or `stalled`.
        status: String, Name, same, Rows = match flow.outcome.failure {
            None => STATUS[0],
            Some(Failure::TimeLimit) => STATUS[1],
            Some(Failure::Stalled) => STATUS[2],
        }
        .to_owned();
    }
    Every {
        /// From the first handshake packet sent to the last payload byte received.
        fct_ms: Option<f64>, Milliseconds, mean, Summary = flow.fct().map(millis);
        /// From the request sent to the last payload byte received.
        fct_request_ms: Option<f64>, Milliseconds, mean, Summary =
            flow.completion(flow.record.request_sent).map(millis);
        /// The physical limit of the completion time: nobody has to learn anything, and there are no other flows.
        ideal_fct_ms: f64, Milliseconds, mean_limit, Rows = millis(flow.outcome.ideal_fct);
        /// Round-trip time that the handshake measured.
        handshake_rtt_ms: Option<f64>, Milliseconds, mean, Rows = flow.record.handshake_rtt.map(millis);
        /// Packets of the flow that queues, policers and wires lost.
        dropped_packets: u64, Packets, sum, Summary = flow.record.dropped;
        /// Packets that the sender declared lost because of acknowledgements, each as often as it did; a timeout
        /// declares nothing here.
        declared_lost_packets: u64, Packets, sum, Summary = flow.record.declared_lost;
        /// Packets that were declared lost, also by a timeout, but arrived; each as often as that was noticed.
        spurious_packets: Option<u64>, Packets, known_sum, Summary =
            flow.known.spurious.then_some(flow.record.spurious);
        /// Payload bytes sent again.
        retransmitted_bytes: u64, Bytes, sum, Summary = flow.record.retransmitted;
        /// Payload bytes sent again over payload bytes.
        inflation: f64, Ratio, inflation_of_all, Summary = flow.record.retransmitted as f64 / flow.size;
        /// Payload rate from the first handshake packet to the last byte.
        goodput_mbps: Option<f64>, MegabitsPerSecond, mean, Summary =
            flow.fct().map(|fct| flow.size * 8.0 / 1e6 / fct.as_secs());
        /// Share of the wire bytes at the bottleneck while the flow was active.
        share: Option<f64>, Share, same, Summary = flow.outcome.share;
        /// Longest time of any flow's packet in the bottleneck's queue.
        max_queue_delay_ms: Option<f64>, Milliseconds, same, Summary = flow.outcome.max_queue_delay.map(millis);
        /// 99th percentile of the time in the bottleneck's queue.
        p99_queue_delay_ms: Option<f64>, Milliseconds, same, Summary = flow.outcome.p99_queue_delay.map(millis);
        /// Wire bytes at the bottleneck over its capacity while the flow was active.
        utilization: Option<f64>, Ratio, same, Summary = flow.outcome.utilization;
        /// When startup ended, from the flow's start.
        exit_ms: Option<f64>, Milliseconds, mean, Summary = flow.record.exit.map(|exit| flow.since_start(exit.time));
        /// Why startup ended.
        exit_reason: Option<String>, Name, absent, Rows = flow.record.exit.map(|exit| exit.reason.to_string());
        /// Congestion window at the end of startup over the bandwidth-delay product.
        exit_cwnd_over_bdp: Option<f64>, Ratio, mean, Summary = {
            let exit = flow.record.exit.filter(|_| flow.bdp > 0);
            exit.map(|exit| exit.cwnd.get() as f64 / flow.bdp as f64)
        };
        /// Most bytes in flight during startup beyond the bandwidth-delay product.
        overshoot_bytes: Option<u64>, Bytes, known_sum, Summary =
            flow.known.startup.then(|| flow.record.startup_in_flight.get().saturating_sub(flow.bdp));
        /// Reductions of the congestion window.
        window_cuts: Option<u64>, Count, known_sum, Rows =
            flow.known.window_cuts.then_some(flow.record.window_cuts);
        /// Retransmission timeouts.
        timeouts: Option<u64>, Count, known_sum, Rows = flow.known.timeouts.then_some(flow.record.timeouts);
        /// When the first packet of the flow was dropped, from its start.
        first_drop_ms: Option<f64>, Milliseconds, absent, Rows =
            flow.record.first_drop.map(|time| flow.since_start(time));
        /// Payload that others did not receive because of the newcomers.
        others_goodput_lost_mbit: Option<f64>, Megabits, same, Rows = flow.others.map(|harm| harm.goodput_lost_mbit);
        /// Packets that others lost because of the newcomers.
        others_dropped_packets: Option<f64>, Packets, same, Rows = flow.others.map(|harm| harm.dropped_packets);
        /// Mean extra time of others' packets in the queue.
        others_extra_delay_ms: Option<f64>, Milliseconds, same, Rows =
            flow.others.and_then(|harm| harm.extra_delay_ms);
    }
    OthersEnd {
        /// Mean extra completion time of others' transfers.
        others_extra_fct_ms: Option<f64>, Milliseconds, same, Rows = flow.others.and_then(|harm| harm.extra_fct_ms);
    }
    Objects {
        /// Completion time of the first object, from its writing (a chunk) or its request (on a page).
        first_object_fct_ms: Option<f64>, Milliseconds, same, Summary = flow.objects.first().copied();
        /// Mean completion time of the objects that follow the first, or of the first if there is no other.
        later_objects_fct_ms: Option<f64>, Milliseconds, same, Summary = {
            let later = flow.objects.get(1..).filter(|later| !later.is_empty());
            flowstart_statistics::mean(later.unwrap_or(&flow.objects))
        };
        /// Mean completion time of all objects.
        mean_object_fct_ms: Option<f64>, Milliseconds, same, Summary = flowstart_statistics::mean(&flow.objects);
        /// The longest completion time of an object.
        worst_object_fct_ms: Option<f64>, Milliseconds, same, Summary =
            flow.objects.iter().copied().reduce(f64::max);
    }
    Rtts {
        /// Round-trip propagation delay between the flow's hosts.
        rtt_ms: Option<f64>, Milliseconds, mean, Rows = flow.has(Group::Rtts).then(|| millis(flow.outcome.rtt));
    }
    Web {
        /// Connections that were completed.
        connections: Option<f64>, Count, same, Summary = flow.web.map(|web| web.connections);
        /// Connections that the end of the run cut off.
        unfinished: Option<f64>, Count, same, Summary = flow.web.map(|web| web.unfinished);
        /// Offered load: wire bytes of the objects whose connections were opened, over the run.
        offered_mbps: Option<f64>, MegabitsPerSecond, same, Summary = flow.web.map(|web| web.offered_mbps);
        /// Share of the data packets that were dropped.
        drop_rate: Option<f64>, Share, same, Summary = flow.web.and_then(|web| web.drop_rate);
        /// Share of the data packets that were dropped, of connections that use the scheme.
        drop_rate_with_scheme: Option<f64>, Share, same, Summary = flow.web.and_then(|web| web.drop_rate_with_scheme);
        /// Share of the data packets that were dropped, of the other connections.
        drop_rate_without: Option<f64>, Share, same, Summary = flow.web.and_then(|web| web.drop_rate_without);
        /// Rate requests that were answered, or whose answer never arrived.
        quick_start_requests: Option<f64>, Count, same, Summary = flow.web.map(|web| web.quick_start_requests);
        /// Share of the data sent that left at an approved rate.
        quick_start_bytes: Option<f64>, Share, same, Summary = flow.web.and_then(|web| web.quick_start_bytes);
        /// Data that left at an approved rate, over the run.
        quick_start_kbytes_per_s: Option<f64>, KilobytesPerSecond, same, Summary =
            flow.web.map(|web| web.quick_start_kbytes_per_s);
    }
    QuickStart {
        /// Whether the rate request was approved, 1 or 0; for web sessions the approved share. Absent without requests.
        quick_start_approved: Option<f64>, Share, same, Summary = match flow.web {
            Some(web) => web.quick_start_approved,
            None => flow.record.requested_rate.map(|_| f64::from(flow.record.approved_rate.is_some())),
        };
        /// Whether a packet of the approved window was lost, 1 or 0; for web sessions the share of the approved
        /// requests.
        quick_start_failures: Option<f64>, Share, same, Summary = match flow.web {
            Some(web) => web.quick_start_failures,
            None => flow.record.approved_rate.map(|_| f64::from(flow.record.quick_start_dropped > 0)),
        };
    }
    Media {
        /// Median one-way delay of the media packets.
        media_delay_p50_ms: Option<f64>, Milliseconds, same, Summary = flow.media.delay_p50_ms;
        /// One-way delay that 95 % of the media packets do not exceed.
        media_delay_p95_ms: Option<f64>, Milliseconds, same, Summary = flow.media.delay_p95_ms;
        /// One-way delay that 99 % of the media packets do not exceed.
        media_delay_p99_ms: Option<f64>, Milliseconds, same, Summary = flow.media.delay_p99_ms;
        /// Longest one-way delay of a media packet.
        media_delay_max_ms: Option<f64>, Milliseconds, same, Summary = flow.media.delay_max_ms;
        /// Part of the media packets that did not arrive.
        media_loss: Option<f64>, Share, same, Summary = flow.media.loss;
        /// Part of the media packets that arrived after their playout time.
        media_late: Option<f64>, Share, same, Summary = flow.media.late;
        /// Rating R of the conversation over the run.
        media_rating: Option<f64>, Rating, same, Summary = flow.media.rating;
        /// Mean opinion score over the run.
        media_mos: Option<f64>, Score, same, Summary = flow.media.mos;
        /// From the newcomers' start until the first harmed media packet.
        media_harm_onset_ms: Option<f64>, Milliseconds, same, Summary = flow.media.harm_onset_ms;
        /// From the newcomers' start until the end of the harm to media packets.
        media_harm_ms: Option<f64>, Milliseconds, same, Summary = flow.media.harm_ms;
        /// Mean opinion score while media packets were harmed.
        media_harm_mos: Option<f64>, Score, same, Summary = flow.media.harm_mos;
        /// Mean opinion score of the worst second.
        media_worst_1s_mos: Option<f64>, Score, same, Summary = flow.media.worst_1s_mos;
        /// Mean opinion score of the worst 5 s.
        media_worst_5s_mos: Option<f64>, Score, same, Summary = flow.media.worst_5s_mos;
    }
    Call {
        /// Median time from the encoding of a video frame until all of it had arrived.
        call_delay_p50_ms: Option<f64>, Milliseconds, same, Summary = flow.call.delay_p50_ms;
        /// Time that 95 % of the video frames that arrived did not exceed.
        call_delay_p95_ms: Option<f64>, Milliseconds, same, Summary = flow.call.delay_p95_ms;
        /// Time that 99 % of the video frames that arrived did not exceed.
        call_delay_p99_ms: Option<f64>, Milliseconds, same, Summary = flow.call.delay_p99_ms;
        /// Longest such time.
        call_delay_max_ms: Option<f64>, Milliseconds, same, Summary = flow.call.delay_max_ms;
        /// Part of the video frames that lacked a packet.
        call_lost: Option<f64>, Share, same, Summary = flow.call.lost;
        /// Part of the video frames that could be shown only after their deadline.
        call_late: Option<f64>, Share, same, Summary = flow.call.late;
        /// Part of the video frames that were not shown: lost, late, or in need of a lost one.
        call_not_shown: Option<f64>, Share, same, Summary = flow.call.not_shown;
        /// Part of the time in which the picture was frozen.
        call_frozen: Option<f64>, Share, same, Summary = flow.call.frozen;
        /// Longest time for which the picture was frozen; 0 without.
        call_longest_freeze_ms: Option<f64>, Milliseconds, same, Summary = flow.call.longest_freeze_ms;
        /// From the newcomers' start until the end of the last video frame that was not shown; 0 if all were.
        call_harm_ms: Option<f64>, Milliseconds, same, Summary = flow.call.harm_ms;
    }
    Pages {
        /// Connections that the page opened.
        page_connections: Option<f64>, Count, mean, Summary =
            flow.has(Group::Pages).then(|| f64::from(flow.outcome.connections));
        /// Mean time for which an object waited because all connections to its host were busy.
        object_queued_ms: Option<f64>, Milliseconds, mean, Summary = flow.mean_of_objects(|one| Some(one.queued));
        /// Mean time for which an object had arrived but waited for data of others before it: head-of-line blocking.
        object_blocked_ms: Option<f64>, Milliseconds, mean, Summary = flow.mean_of_objects(ObjectTimes::blocked);
        /// Part of the objects that waited for data of others.
        objects_blocked: Option<f64>, Share, mean, Summary = flow.part_of_objects_blocked();
    }
    Video {
        /// From the first handshake packet sent to the first picture shown.
        startup_delay_ms: Option<f64>, Milliseconds, mean, Summary = {
            let began = flow.playback().and_then(|playback| playback.began);
            began.zip(flow.record.started).map(|(began, started)| millis(began.since(started)))
        };
        /// Number of times that the player ran out of video.
        stalls: Option<f64>, Count, mean, Summary = flow.playback().map(|playback| f64::from(playback.stalls));
        /// Time for which the player waited because it had run out of video.
        stalled_ms: Option<f64>, Milliseconds, mean, Summary = flow.playback().map(|playback| millis(playback.stalled));
        /// Mean rate of the chunks, as encoded.
        video_mbps: Option<f64>, MegabitsPerSecond, mean, Summary = flow.video_rate();
        /// Number of times that the rate changed from one chunk to the next.
        rate_switches: Option<f64>, Count, mean, Summary =
            flow.playback().map(|playback| f64::from(playback.switches()));
    }
    Sockets {
        /// Time by which this host sent 99 % of the flow's packets at most later than the link says.
        p99_late_ms: Option<f64>, Milliseconds, same, Summary = flow.outcome.host.map(|host| millis(host.p99_late));
        /// Longest such time.
        max_late_ms: Option<f64>, Milliseconds, same, Summary = flow.outcome.host.map(|host| millis(host.max_late));
        /// Packets of all flows that this host lost while the link was there, because it was too slow for them.
        host_lost_packets: Option<u64>, Packets, same, Summary = flow.outcome.host.map(|host| host.lost);
    }
}

impl Row {
    /// Whether the run failed.
    pub fn failed(&self) -> bool {
        self.status != STATUS[0]
    }

    /// Why startup ended; `None` where nobody told whether it did.
    pub fn exit(&self) -> Option<&str> {
        // What nobody saw of startup has no overshoot.
        self.exit_reason.as_deref().or_else(|| self.overshoot_bytes.map(|_| NO_EXIT))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::study::scenario::LARGEST_ROW;

    #[test]
    fn a_metric_has_a_name_of_its_own_and_a_meaning_in_a_sentence() {
        let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len());
        for metric in METRICS {
            let meaning = metric.meaning();
            assert!(meaning.ends_with('.') && meaning.len() > 4, "{}: {meaning}", metric.name);
            let is_text = matches!(metric.value(&Row::default()), Value::Text(_));
            assert_eq!(is_text, metric.unit == Unit::Name, "{}", metric.name);
        }
        // A column keeps its place in all experiments.
        assert!(METRICS.is_sorted_by_key(|metric| metric.group));
    }

    #[test]
    fn a_row_takes_no_more_memory_than_is_said_where_their_number_is_limited() {
        // The cell's name repeats what the others say: 100 bytes for each of the seven texts, and 100 more for it.
        let (row, texts) = (size_of::<Row>() as u64, 800);
        assert!(row + texts <= LARGEST_ROW, "{row}");
    }

    #[test]
    fn the_row_of_a_repetition_has_means_and_sums_of_its_flows() {
        let flow = |flow: u64, fct_ms: Option<f64>, size_bytes: u64, retransmitted_bytes: u64| Row {
            cell: "cell".into(),
            flow,
            fct_ms,
            size_bytes,
            retransmitted_bytes,
            dropped_packets: 2,
            timeouts: Some(1),
            window_cuts: (flow == 3).then_some(1),
            share: Some(0.5),
            exit_reason: Some("loss".into()),
            ideal_fct_ms: 10.0,
            start_s: 5.0 - flow as f64,
            ..Row::default()
        };
        let rows = [flow(3, Some(10.0), 1000, 500), flow(4, None, 3000, 0), flow(5, Some(30.0), 2000, 100)];
        let together = Row::of_repetition(&rows).unwrap();
        let expected = Row {
            cell: "cell".into(),
            fct_ms: Some(20.0),
            size_bytes: 2000,
            retransmitted_bytes: 600,
            inflation: 0.1,
            dropped_packets: 6,
            // Where that of one flow is unknown, so is the sum.
            timeouts: Some(3),
            window_cuts: None,
            share: Some(0.5),
            ideal_fct_ms: 10.0,
            ..Row::default()
        };
        assert_eq!(together, expected);
        assert_eq!(Row::of_repetition(&[]), None);
    }
}
