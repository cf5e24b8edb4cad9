//! A row per measured flow and repetition: `flows.csv` and `flows.parquet`.

use std::io::{Read, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use flowstart_core::time::{Duration, Timestamp};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};

use crate::run::outcome::{Failure, FlowOutcome};
use crate::study::plan::{Cell, Plan};
use flowstart_statistics::mean;

/// What a row's status can be.
pub const STATUS: [&str; 3] = ["ok", "time-limit", "stalled"];

/// One measured flow of one repetition. Undefined is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Cell.
    pub cell: String,
    /// Link as written.
    pub link: String,
    /// AQM as written.
    pub aqm: String,
    /// Transfer size.
    pub size_bytes: u64,
    /// Scheme as written.
    pub scheme: String,
    /// Competitor as written.
    pub competitor: String,
    /// Repetition, from 0.
    pub rep: u64,
    /// Measured flow, from 0.
    pub flow: u64,
    /// Seed of the repetition.
    pub seed: u64,
    /// When the flow started, in seconds from the start of the run.
    pub start_s: f64,
    /// `ok`, `time-limit` or `stalled`.
    pub status: String,
    /// First handshake packet sent to last payload byte received.
    pub fct_ms: Option<f64>,
    /// Request sent to last payload byte received.
    pub fct_request_ms: Option<f64>,
    /// The physical limit.
    pub ideal_fct_ms: f64,
    /// RTT that the handshake measured.
    pub handshake_rtt_ms: Option<f64>,
    /// Packets lost by queues, policers and wires.
    pub dropped_packets: u64,
    /// Packets that the sender declared lost.
    pub declared_lost_packets: u64,
    /// Of these, packets that arrived after all.
    pub spurious_packets: u64,
    /// Payload bytes sent again.
    pub retransmitted_bytes: u64,
    /// Payload bytes sent again over payload bytes.
    pub inflation: f64,
    /// Payload rate from the first handshake packet to the last byte.
    pub goodput_mbps: Option<f64>,
    /// Part of the wire bytes at the bottleneck.
    pub share: Option<f64>,
    /// Longest time in the bottleneck's queue, anybody's packet.
    pub max_queue_delay_ms: Option<f64>,
    /// 99th percentile of the time in the queue.
    pub p99_queue_delay_ms: Option<f64>,
    /// Use of the bottleneck.
    pub utilization: Option<f64>,
    /// When startup ended, from the flow's start.
    pub exit_ms: Option<f64>,
    /// Why startup ended.
    pub exit_reason: Option<String>,
    /// cwnd at startup's end over the bandwidth-delay product.
    pub exit_cwnd_over_bdp: Option<f64>,
    /// Most bytes in flight during startup beyond the bandwidth-delay product.
    pub overshoot_bytes: u64,
    /// Reductions of the window.
    pub window_cuts: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// When the first packet of the flow was dropped, from its start.
    pub first_drop_ms: Option<f64>,
    /// Payload that others lost because of the newcomers.
    pub others_goodput_lost_mbit: Option<f64>,
    /// Packets that others lost because of the newcomers.
    pub others_dropped_packets: Option<f64>,
    /// Mean extra time in the queue of others' packets.
    pub others_extra_delay_ms: Option<f64>,
    /// Mean extra completion time of others' transfers. A column of its own only where there is any.
    #[serde(default, skip_serializing)]
    pub others_extra_fct_ms: Option<f64>,
    /// Completion time of the first object, from when it was written (a chunk) or requested (of a page). These columns exist
    /// only where flows carry objects.
    #[serde(default, skip_serializing)]
    pub first_object_fct_ms: Option<f64>,
    /// Mean completion time of the objects that follow the first, or of the first if there is no other.
    #[serde(default, skip_serializing)]
    pub later_objects_fct_ms: Option<f64>,
    /// Mean completion time of all objects.
    #[serde(default, skip_serializing)]
    pub mean_object_fct_ms: Option<f64>,
    /// The longest completion time of an object.
    #[serde(default, skip_serializing)]
    pub worst_object_fct_ms: Option<f64>,
    /// Round-trip propagation delay between the flow's hosts. A column only where flows differ in it.
    #[serde(default, skip_serializing)]
    pub rtt_ms: Option<f64>,
    /// Whether Quick-Start's request was approved, 1 or 0; of web sessions, the share that was; absent where nothing was asked
    /// for. These columns exist only where a scheme is `quick-start`.
    #[serde(default, skip_serializing)]
    pub quick_start_approved: Option<f64>,
    /// Whether a packet of the approved window was lost, 1 or 0; of web sessions, the share of the approved requests.
    #[serde(default, skip_serializing)]
    pub quick_start_failures: Option<f64>,
    /// Of web sessions, the same in all rows of a repetition: connections that were completed. These columns exist only where
    /// there are sessions; [`crate::run::outcome::WebOutcome`] says what they mean.
    #[serde(default, skip_serializing)]
    pub connections: Option<f64>,
    /// Connections that the end cut off.
    #[serde(default, skip_serializing)]
    pub unfinished: Option<f64>,
    /// Offered load.
    #[serde(default, skip_serializing)]
    pub offered_mbps: Option<f64>,
    /// Share of the data packets that were dropped.
    #[serde(default, skip_serializing)]
    pub drop_rate: Option<f64>,
    /// The same of connections that use the scheme.
    #[serde(default, skip_serializing)]
    pub drop_rate_with_scheme: Option<f64>,
    /// The same of the other connections.
    #[serde(default, skip_serializing)]
    pub drop_rate_without: Option<f64>,
    /// Rate requests.
    #[serde(default, skip_serializing)]
    pub quick_start_requests: Option<f64>,
    /// Share of the data sent that left at an approved rate.
    #[serde(default, skip_serializing)]
    pub quick_start_bytes: Option<f64>,
    /// The same as a rate.
    #[serde(default, skip_serializing)]
    pub quick_start_kbytes_per_s: Option<f64>,
    /// Of interactive media beside the newcomers, the same in all rows of a repetition: median one-way delay. These columns
    /// exist only where there is media; [`crate::run::media::MediaOutcome`] says what they mean.
    #[serde(default, skip_serializing)]
    pub media_delay_p50_ms: Option<f64>,
    /// One-way delay that 95 % of the packets do not exceed.
    #[serde(default, skip_serializing)]
    pub media_delay_p95_ms: Option<f64>,
    /// One-way delay that 99 % do not exceed.
    #[serde(default, skip_serializing)]
    pub media_delay_p99_ms: Option<f64>,
    /// Longest one-way delay.
    #[serde(default, skip_serializing)]
    pub media_delay_max_ms: Option<f64>,
    /// Part of the packets that did not arrive.
    #[serde(default, skip_serializing)]
    pub media_loss: Option<f64>,
    /// Part of the packets that arrived after their playout time.
    #[serde(default, skip_serializing)]
    pub media_late: Option<f64>,
    /// Rating R over the run.
    #[serde(default, skip_serializing)]
    pub media_rating: Option<f64>,
    /// MOS over the run.
    #[serde(default, skip_serializing)]
    pub media_mos: Option<f64>,
    /// From the newcomers' start until the first harmed packet.
    #[serde(default, skip_serializing)]
    pub media_harm_onset_ms: Option<f64>,
    /// From the newcomers' start until no packet is harmed any more.
    #[serde(default, skip_serializing)]
    pub media_harm_ms: Option<f64>,
    /// MOS while packets were harmed.
    #[serde(default, skip_serializing)]
    pub media_harm_mos: Option<f64>,
    /// MOS of the worst second.
    #[serde(default, skip_serializing)]
    pub media_worst_1s_mos: Option<f64>,
    /// MOS of the worst 5 s.
    #[serde(default, skip_serializing)]
    pub media_worst_5s_mos: Option<f64>,
}

/// Whether a cell's flows differ in their RTT.
fn has_rtts(plan: &Plan, cell: &Cell) -> bool {
    !plan.arrivals[cell.arrival].value.rtts.is_empty() || plan.sizes[cell.size].value.web().is_some()
}

fn millis(span: Duration) -> f64 {
    span.as_millis_f64()
}

impl Row {
    /// The row of a flow.
    pub fn new(plan: &Plan, cell: &Cell, rep: u32, outcome: &FlowOutcome) -> Self {
        let link = &plan.links[cell.link];
        let size = outcome.size.get();
        let record = &outcome.record;
        let since_start = |time: Timestamp| millis(time.since(outcome.start));
        let between = |from: Option<Timestamp>| Some(record.completed?.since(from?));
        let fct = between(record.started);
        let bdp = link.bdp().get();
        let exit = record.exit;
        let web = outcome.web;
        let media = outcome.media.unwrap_or_default();
        // Undefined unless all have arrived.
        let objects: Option<Vec<f64>> = record.objects.iter().map(|object| object.fct().map(millis)).collect();
        let objects = objects.filter(|_| outcome.failure.is_none()).unwrap_or_default();
        Self {
            cell: plan.id(cell),
            link: link.text.clone(),
            aqm: plan.aqms[cell.aqm].text.clone(),
            size_bytes: size,
            scheme: plan.schemes[cell.scheme].text.clone(),
            competitor: plan.competitors[cell.competitor].text.clone(),
            rep: u64::from(rep),
            flow: outcome.flow,
            seed: plan.run_seed(rep),
            start_s: outcome.start.as_secs(),
            status: match outcome.failure {
                None => STATUS[0],
                Some(Failure::TimeLimit) => STATUS[1],
                Some(Failure::Stalled) => STATUS[2],
            }
            .to_owned(),
            fct_ms: fct.map(millis),
            fct_request_ms: between(record.request_sent).map(millis),
            ideal_fct_ms: millis(outcome.ideal_fct),
            handshake_rtt_ms: record.handshake_rtt.map(millis),
            dropped_packets: record.dropped,
            declared_lost_packets: record.declared_lost,
            spurious_packets: record.spurious,
            retransmitted_bytes: record.retransmitted,
            inflation: record.retransmitted as f64 / size as f64,
            goodput_mbps: fct.map(|fct| size as f64 * 8.0 / 1e6 / fct.as_secs()),
            share: outcome.share,
            max_queue_delay_ms: outcome.max_queue_delay.map(millis),
            p99_queue_delay_ms: outcome.p99_queue_delay.map(millis),
            utilization: outcome.utilization,
            exit_ms: exit.map(|exit| since_start(exit.time)),
            exit_reason: exit.map(|exit| exit.reason.to_string()),
            exit_cwnd_over_bdp: exit.filter(|_| bdp > 0).map(|exit| exit.cwnd.get() as f64 / bdp as f64),
            overshoot_bytes: record.startup_in_flight.get().saturating_sub(bdp),
            window_cuts: record.window_cuts,
            timeouts: record.timeouts,
            first_drop_ms: record.first_drop.map(since_start),
            others_goodput_lost_mbit: outcome.others.map(|harm| harm.goodput_lost_mbit),
            others_dropped_packets: outcome.others.map(|harm| harm.dropped_packets),
            others_extra_delay_ms: outcome.others.and_then(|harm| harm.extra_delay_ms),
            others_extra_fct_ms: outcome.others.and_then(|harm| harm.extra_fct_ms),
            first_object_fct_ms: objects.first().copied(),
            later_objects_fct_ms: mean(objects.get(1..).filter(|later| !later.is_empty()).unwrap_or(&objects)),
            mean_object_fct_ms: mean(&objects),
            worst_object_fct_ms: objects.iter().copied().reduce(f64::max),
            rtt_ms: has_rtts(plan, cell).then(|| millis(outcome.rtt)),
            connections: web.map(|web| web.connections),
            unfinished: web.map(|web| web.unfinished),
            offered_mbps: web.map(|web| web.offered_mbps),
            drop_rate: web.and_then(|web| web.drop_rate),
            drop_rate_with_scheme: web.and_then(|web| web.drop_rate_with_scheme),
            drop_rate_without: web.and_then(|web| web.drop_rate_without),
            quick_start_requests: web.map(|web| web.quick_start_requests),
            quick_start_bytes: web.and_then(|web| web.quick_start_bytes),
            quick_start_kbytes_per_s: web.map(|web| web.quick_start_kbytes_per_s),
            quick_start_approved: match web {
                Some(web) => web.quick_start_approved,
                None => record.requested_rate.map(|_| f64::from(record.approved_rate.is_some())),
            },
            quick_start_failures: match web {
                Some(web) => web.quick_start_failures,
                None => record.approved_rate.map(|_| f64::from(record.quick_start_dropped > 0)),
            },
            media_delay_p50_ms: media.delay_p50_ms,
            media_delay_p95_ms: media.delay_p95_ms,
            media_delay_p99_ms: media.delay_p99_ms,
            media_delay_max_ms: media.delay_max_ms,
            media_loss: media.loss,
            media_late: media.late,
            media_rating: media.rating,
            media_mos: media.mos,
            media_harm_onset_ms: media.harm_onset_ms,
            media_harm_ms: media.harm_ms,
            media_harm_mos: media.harm_mos,
            media_worst_1s_mos: media.worst_1s_mos,
            media_worst_5s_mos: media.worst_5s_mos,
        }
    }

    /// One row for all flows of a repetition: means of what each of them has, sums of what is counted. `None` without flows.
    pub fn of_repetition(rows: &[Self]) -> Option<Self> {
        let first = rows.first()?.clone();
        let sum = |count: fn(&Self) -> u64| rows.iter().map(count).sum::<u64>();
        let average = |value: fn(&Self) -> Option<f64>| mean(&rows.iter().filter_map(value).collect::<Vec<_>>());
        let bytes = sum(|row| row.size_bytes);
        let retransmitted = sum(|row| row.retransmitted_bytes);
        Some(Self {
            flow: 0,
            size_bytes: bytes / rows.len() as u64,
            start_s: rows.iter().map(|row| row.start_s).fold(f64::INFINITY, f64::min),
            fct_ms: average(|row| row.fct_ms),
            fct_request_ms: average(|row| row.fct_request_ms),
            ideal_fct_ms: average(|row| Some(row.ideal_fct_ms))?,
            handshake_rtt_ms: average(|row| row.handshake_rtt_ms),
            dropped_packets: sum(|row| row.dropped_packets),
            declared_lost_packets: sum(|row| row.declared_lost_packets),
            spurious_packets: sum(|row| row.spurious_packets),
            retransmitted_bytes: retransmitted,
            inflation: retransmitted as f64 / bytes as f64,
            goodput_mbps: average(|row| row.goodput_mbps),
            exit_ms: average(|row| row.exit_ms),
            exit_reason: None,
            exit_cwnd_over_bdp: average(|row| row.exit_cwnd_over_bdp),
            overshoot_bytes: sum(|row| row.overshoot_bytes),
            window_cuts: sum(|row| row.window_cuts),
            timeouts: sum(|row| row.timeouts),
            first_drop_ms: None,
            rtt_ms: average(|row| row.rtt_ms),
            ..first
        })
    }

    /// Whether the run failed.
    pub fn failed(&self) -> bool {
        self.status != STATUS[0]
    }
}

/// A column that only some experiments have, behind all others.
type ExtraColumn = (&'static str, fn(&Row) -> Option<f64>);

/// Of experiments whose others have transfers that end.
const EXTRA_FCT: [ExtraColumn; 1] = [("others_extra_fct_ms", |row| row.others_extra_fct_ms)];

/// Of experiments whose measured flows carry objects.
pub const OBJECT_COLUMNS: [ExtraColumn; 4] = [
    ("first_object_fct_ms", |row| row.first_object_fct_ms),
    ("later_objects_fct_ms", |row| row.later_objects_fct_ms),
    ("mean_object_fct_ms", |row| row.mean_object_fct_ms),
    ("worst_object_fct_ms", |row| row.worst_object_fct_ms),
];

/// Of experiments whose measured flows differ in their RTT.
const RTT: [ExtraColumn; 1] = [("rtt_ms", |row| row.rtt_ms)];

/// Of experiments with Quick-Start.
pub const QUICK_START_COLUMNS: [ExtraColumn; 2] = [
    ("quick_start_approved", |row| row.quick_start_approved),
    ("quick_start_failures", |row| row.quick_start_failures),
];

/// Of experiments with web sessions.
pub const WEB_COLUMNS: [ExtraColumn; 9] = [
    ("connections", |row| row.connections),
    ("unfinished", |row| row.unfinished),
    ("offered_mbps", |row| row.offered_mbps),
    ("drop_rate", |row| row.drop_rate),
    ("drop_rate_with_scheme", |row| row.drop_rate_with_scheme),
    ("drop_rate_without", |row| row.drop_rate_without),
    ("quick_start_requests", |row| row.quick_start_requests),
    ("quick_start_bytes", |row| row.quick_start_bytes),
    ("quick_start_kbytes_per_s", |row| row.quick_start_kbytes_per_s),
];

/// Of experiments with interactive media beside the measured flows.
pub const MEDIA_COLUMNS: [ExtraColumn; 13] = [
    ("media_delay_p50_ms", |row| row.media_delay_p50_ms),
    ("media_delay_p95_ms", |row| row.media_delay_p95_ms),
    ("media_delay_p99_ms", |row| row.media_delay_p99_ms),
    ("media_delay_max_ms", |row| row.media_delay_max_ms),
    ("media_loss", |row| row.media_loss),
    ("media_late", |row| row.media_late),
    ("media_rating", |row| row.media_rating),
    ("media_mos", |row| row.media_mos),
    ("media_harm_onset_ms", |row| row.media_harm_onset_ms),
    ("media_harm_ms", |row| row.media_harm_ms),
    ("media_harm_mos", |row| row.media_harm_mos),
    ("media_worst_1s_mos", |row| row.media_worst_1s_mos),
    ("media_worst_5s_mos", |row| row.media_worst_5s_mos),
];

/// The columns that an experiment has beyond those of all experiments.
#[derive(Clone, Debug, Default)]
pub struct ExtraColumns(Vec<ExtraColumn>);

impl ExtraColumns {
    /// Those of a plan.
    pub fn of(plan: &Plan) -> Self {
        let others_end = plan.competitors.iter().any(|competitor| competitor.value.has_transfers());
        let objects = plan.sizes.iter().any(|size| size.value.application().is_some());
        let web = plan.sizes.iter().any(|size| size.value.web().is_some());
        let rtts = web || plan.arrivals.iter().any(|arrival| !arrival.value.rtts.is_empty());
        let asks = plan.schemes.iter().any(|scheme| scheme.value.request().is_some());
        let media = plan.competitors.iter().any(|competitor| competitor.value.media().is_some());
        Self::with([others_end, objects, rtts, web, asks, media])
    }

    /// Those that have a value in any of these rows.
    fn in_rows(rows: &[Row]) -> Self {
        let any = |columns: &[ExtraColumn]| rows.iter().any(|row| columns.iter().any(|column| column.1(row).is_some()));
        Self::with([
            any(&EXTRA_FCT),
            any(&OBJECT_COLUMNS),
            any(&RTT),
            any(&WEB_COLUMNS),
            any(&QUICK_START_COLUMNS),
            any(&MEDIA_COLUMNS),
        ])
    }

    /// Those of these kinds: others' completion times, objects, RTTs, web sessions, Quick-Start, media.
    fn with(wanted: [bool; 6]) -> Self {
        let kinds: [&[ExtraColumn]; 6] =
            [&EXTRA_FCT, &OBJECT_COLUMNS, &RTT, &WEB_COLUMNS, &QUICK_START_COLUMNS, &MEDIA_COLUMNS];
        Self(kinds.into_iter().zip(wanted).filter(|(_, wanted)| *wanted).flat_map(|(kind, _)| kind).copied().collect())
    }
}

/// The columns of all experiments.
fn base_header() -> Vec<String> {
    let mut text = Vec::new();
    // A row has a header; there is nothing that could fail.
    let _ = write_csv_with(&[Row::default()], &mut text, &ExtraColumns::default());
    let mut reader = csv::Reader::from_reader(text.as_slice());
    reader.headers().map_or_else(|_| Vec::new(), |header| header.iter().map(str::to_owned).collect())
}

/// The columns of rows with these in addition.
pub fn header(extra: &ExtraColumns) -> Vec<String> {
    let mut header = base_header();
    header.extend(extra.0.iter().map(|column| column.0.to_owned()));
    header
}

/// Whether these are the columns of all experiments and some of `extra`, each once.
pub fn is_header_of(columns: &[String], extra: &ExtraColumns) -> bool {
    let base = base_header();
    let Some(more) = columns.strip_prefix(base.as_slice()) else { return false };
    let place = |name: &String| extra.0.iter().position(|column| column.0 == name);
    let places: Option<Vec<usize>> = more.iter().map(place).collect();
    places.is_some_and(|places| places.windows(2).all(|pair| pair[0] < pair[1]))
}

/// Writes rows as CSV.
pub fn write_csv(rows: &[Row], out: impl Write) -> csv::Result<()> {
    write_csv_with(rows, out, &ExtraColumns::in_rows(rows))
}

/// Writes rows as CSV with these columns in addition.
pub fn write_csv_with(rows: &[Row], out: impl Write, extra: &ExtraColumns) -> csv::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    if extra.0.is_empty() {
        for row in rows {
            writer.serialize(row)?;
        }
        writer.flush()?;
        return Ok(());
    }
    let mut plain = Vec::new();
    write_csv_with(rows, &mut plain, &ExtraColumns::default())?;
    let mut reader = csv::Reader::from_reader(plain.as_slice());
    let mut header = reader.headers()?.clone();
    extra.0.iter().for_each(|column| header.push_field(column.0));
    writer.write_record(&header)?;
    for (row, record) in rows.iter().zip(reader.records()) {
        let mut record = record?;
        for column in &extra.0 {
            record.push_field(&column.1(row).map_or(String::new(), |value| value.to_string()));
        }
        writer.write_record(&record)?;
    }
    writer.flush()?;
    Ok(())
}

/// Reads rows that [`write_csv`] wrote.
///
/// # Errors
///
/// The line that is no row, and why.
pub fn read_csv(input: impl Read) -> Result<Vec<Row>, String> {
    let mut reader = csv::Reader::from_reader(input);
    let rows = reader.deserialize().enumerate();
    rows.map(|(index, row)| row.map_err(|error| format!("line {}: {error}", index + 2))).collect()
}

/// Writes rows as Parquet.
pub fn write_parquet(rows: &[Row], out: impl Write + Send) -> Result<(), parquet::errors::ParquetError> {
    let mut table = Table { fields: Vec::new(), columns: Vec::new(), rows };
    table.text("cell", |row| Some(&row.cell));
    table.text("link", |row| Some(&row.link));
    table.text("aqm", |row| Some(&row.aqm));
    table.count("size_bytes", |row| row.size_bytes);
    table.text("scheme", |row| Some(&row.scheme));
    table.text("competitor", |row| Some(&row.competitor));
    table.count("rep", |row| row.rep);
    table.count("flow", |row| row.flow);
    table.count("seed", |row| row.seed);
    table.number("start_s", |row| Some(row.start_s));
    table.text("status", |row| Some(&row.status));
    table.number("fct_ms", |row| row.fct_ms);
    table.number("fct_request_ms", |row| row.fct_request_ms);
    table.number("ideal_fct_ms", |row| Some(row.ideal_fct_ms));
    table.number("handshake_rtt_ms", |row| row.handshake_rtt_ms);
    table.count("dropped_packets", |row| row.dropped_packets);
    table.count("declared_lost_packets", |row| row.declared_lost_packets);
    table.count("spurious_packets", |row| row.spurious_packets);
    table.count("retransmitted_bytes", |row| row.retransmitted_bytes);
    table.number("inflation", |row| Some(row.inflation));
    table.number("goodput_mbps", |row| row.goodput_mbps);
    table.number("share", |row| row.share);
    table.number("max_queue_delay_ms", |row| row.max_queue_delay_ms);
    table.number("p99_queue_delay_ms", |row| row.p99_queue_delay_ms);
    table.number("utilization", |row| row.utilization);
    table.number("exit_ms", |row| row.exit_ms);
    table.text("exit_reason", |row| row.exit_reason.as_ref());
    table.number("exit_cwnd_over_bdp", |row| row.exit_cwnd_over_bdp);
    table.count("overshoot_bytes", |row| row.overshoot_bytes);
    table.count("window_cuts", |row| row.window_cuts);
    table.count("timeouts", |row| row.timeouts);
    table.number("first_drop_ms", |row| row.first_drop_ms);
    table.number("others_goodput_lost_mbit", |row| row.others_goodput_lost_mbit);
    table.number("others_dropped_packets", |row| row.others_dropped_packets);
    table.number("others_extra_delay_ms", |row| row.others_extra_delay_ms);
    for (name, value) in ExtraColumns::in_rows(rows).0 {
        table.number(name, value);
    }
    let schema = Arc::new(Schema::new(table.fields));
    let batch = RecordBatch::try_new(schema.clone(), table.columns)?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(out, schema, Some(properties))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

/// Columns under construction.
struct Table<'a> {
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
    rows: &'a [Row],
}

impl Table<'_> {
    fn column(&mut self, name: &str, kind: DataType, column: ArrayRef) {
        self.fields.push(Field::new(name, kind, true));
        self.columns.push(column);
    }

    fn text(&mut self, name: &str, value: impl Fn(&Row) -> Option<&String>) {
        let column: StringArray = self.rows.iter().map(value).collect();
        self.column(name, DataType::Utf8, Arc::new(column));
    }

    fn count(&mut self, name: &str, value: impl Fn(&Row) -> u64) {
        let column: UInt64Array = self.rows.iter().map(|row| Some(value(row))).collect();
        self.column(name, DataType::UInt64, Arc::new(column));
    }

    fn number(&mut self, name: &str, value: impl Fn(&Row) -> Option<f64>) {
        let column: Float64Array = self.rows.iter().map(value).collect();
        self.column(name, DataType::Float64, Arc::new(column));
    }
}
