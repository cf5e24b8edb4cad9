//! A server's counters, for Prometheus.
//!
//! `flowstart analyze` reads a part of them: [`PerConnection`], with the [`names`] and [classes of sizes](size_class)
//! declared here.

mod paths;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use flowstart_quic::{quick_start, scone};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use self::paths::Paths;
pub(crate) use self::paths::{BY_LINK, names as path_names};

/// Names of what [`PerConnection`] counts, as they stand in the text.
pub(crate) mod names {
    /// Histogram of seconds, with its `_bucket`, `_sum` and `_count`.
    pub(crate) const FCT: &str = "flowstart_connection_fct_seconds";
    /// Sum of the squared seconds.
    pub(crate) const FCT_SQUARED: &str = "flowstart_connection_fct_squared_total";
    /// Sum of the lost shares.
    pub(crate) const LOST: &str = "flowstart_connection_lost_share_total";
    /// Sum of the squared lost shares.
    pub(crate) const LOST_SQUARED: &str = "flowstart_connection_lost_share_squared_total";
    /// Answers.
    pub(crate) const ANSWERS: &str = "flowstart_connection_answers_total";
    /// Ends of startup.
    pub(crate) const EXITS: &str = "flowstart_connection_exits_total";
    /// Connections with an answer.
    pub(crate) const ANSWERED: &str = "flowstart_connections_answered_total";
    /// Connections without one.
    pub(crate) const UNANSWERED: &str = "flowstart_connections_unanswered_total";
    /// Whose metrics they are.
    pub(crate) const SERVER: &str = "flowstart_server_info";
}

/// Upper ends of the classes in bytes, with their names.
const CLASSES: [(u64, &str); 5] = [
    (10_000, "up to 10 KB"),
    (100_000, "10 to 100 KB"),
    (1_000_000, "100 KB to 1 MB"),
    (10_000_000, "1 to 10 MB"),
    (u64::MAX, "over 10 MB"),
];

/// Classes of sizes, the smallest first.
pub(crate) const SIZE_CLASSES: usize = CLASSES.len();

/// The index of the class for answers of this size, if sizes are grouped into classes.
pub(crate) fn size_class(bytes: u64) -> usize {
    CLASSES.partition_point(|(end, _)| *end < bytes)
}

/// The name of a class of sizes.
pub(crate) fn size_class_name(place: usize) -> &'static str {
    CLASSES.get(place).map_or("", |(_, name)| name)
}

/// The result of a connection attempt.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Attempt {
    /// `accepted`, `retry`, `full`, `memory`, `prefix`, `rate` or `failed`.
    pub(crate) result: &'static str,
}

/// The startup scheme of a connection.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct OfScheme {
    /// As the operator wrote it.
    pub(crate) scheme: String,
}

/// Why startup ended.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Exit {
    /// As the operator wrote it.
    pub(crate) scheme: String,
    /// The reason's name in results.
    pub(crate) reason: &'static str,
}

/// The decision on a client's hint.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Hinted {
    /// Whether it was used, and why.
    pub(crate) verdict: String,
}

/// What became of a connection's qlog file that is not whole.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct QlogEnd {
    /// `left-out`, `cut-off` or `failed`.
    pub(crate) result: &'static str,
}

/// A client's report of what its path advises.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Reported {
    /// `taken`, `no-advice`, `malformed` or `unasked`.
    pub(crate) result: &'static str,
}

/// A client's response to the request to its path's routers.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Responded {
    /// `approved`, `denied`, `ttl-diff`, `nonce`, `too-high`, `none`, `malformed`, `repeated`, `late` or `unasked`.
    pub(crate) result: &'static str,
}

/// What a source stated of the path of a connection that launched, and what became of it.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct OfSource {
    /// The source.
    pub(crate) source: &'static str,
    /// What became of its statement.
    pub(crate) verdict: &'static str,
}

/// What a path store failed to do.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct OfStore {
    /// `open`, `look-up`, `save`, `expire`, or `record` for one that was forgotten because it is damaged.
    pub(crate) failure: &'static str,
}

/// Connections that are compared with each other.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Arm {
    /// As the operator wrote it.
    pub(crate) scheme: String,
    /// The class of the answers' sizes.
    pub(crate) size: &'static str,
}

/// Why startup ended on connections that are compared with each other.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct ArmExit {
    /// As the operator wrote it.
    pub(crate) scheme: String,
    /// The class of the answers' sizes.
    pub(crate) size: &'static str,
    /// The reason's name in results.
    pub(crate) reason: &'static str,
}

/// What schemes are compared by. Each connection counts once per class of sizes, because schemes are drawn for
/// connections. Sums of squares make intervals possible.
#[derive(Debug)]
pub(crate) struct PerConnection {
    fct: Family<Arm, Histogram, fn() -> Histogram>,
    fct_squared: Family<Arm, Counter<f64, AtomicU64>>,
    lost: Family<Arm, Counter<f64, AtomicU64>>,
    lost_squared: Family<Arm, Counter<f64, AtomicU64>>,
    answers: Family<Arm, Counter<u64, AtomicU64>>,
    exits: Family<ArmExit, Counter<u64, AtomicU64>>,
    answered: Counter<u64, AtomicU64>,
    unanswered: Counter<u64, AtomicU64>,
    /// The lock keeps readers out while a connection is half counted.
    whole: Mutex<()>,
}

/// The answers of a connection, by class of sizes: how many, and the sum of their seconds.
pub(crate) type Answers = [(u64, f64); SIZE_CLASSES];

impl PerConnection {
    fn new(registry: &mut Registry) -> Self {
        // From 1 ms to 92 s by the square root of 2: a quantile is known to within 41 %.
        let fct: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, std::f64::consts::SQRT_2, 34));
        let own = Self {
            fct: Family::new_with_constructor(fct),
            fct_squared: Family::default(),
            lost: Family::default(),
            lost_squared: Family::default(),
            answers: Family::default(),
            exits: Family::default(),
            answered: Counter::default(),
            unanswered: Counter::default(),
            whole: Mutex::default(),
        };
        let instance = format!("{:016x}", rand::random::<u64>());
        registry.register("server", "Which run of the server this is", Info::new([("instance", instance)]));
        registry.register_with_unit(
            "connection_fct",
            "Mean time of a connection's answers, from a request until its answer is acknowledged",
            Unit::Seconds,
            own.fct.clone(),
        );
        registry.register("connection_fct_squared", "Squares of these seconds", own.fct_squared.clone());
        registry.register("connection_lost_share", "Shares of packets lost, one per connection", own.lost.clone());
        registry.register("connection_lost_share_squared", "Squares of these shares", own.lost_squared.clone());
        registry.register("connection_answers", "Answers on these connections", own.answers.clone());
        registry.register("connection_exits", "Why startup ended on these connections", own.exits.clone());
        registry.register("connections_answered", "Connections that ended with an answer", own.answered.clone());
        registry.register("connections_unanswered", "Connections that ended without one", own.unanswered.clone());
        own
    }

    /// A connection has ended.
    pub(crate) fn count(&self, scheme: &str, answers: &Answers, lost_share: f64, reason: &'static str) {
        let _whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let mut any = false;
        for (size, (number, seconds)) in answers.iter().enumerate().filter(|(_, (number, _))| *number > 0) {
            any = true;
            let (mean, size) = (seconds / *number as f64, size_class_name(size));
            let arm = Arm { scheme: scheme.to_owned(), size };
            self.fct.get_or_create(&arm).observe(mean);
            self.fct_squared.get_or_create(&arm).inc_by(mean * mean);
            self.lost.get_or_create(&arm).inc_by(lost_share);
            self.lost_squared.get_or_create(&arm).inc_by(lost_share * lost_share);
            self.answers.get_or_create(&arm).inc_by(*number);
            self.exits.get_or_create(&ArmExit { scheme: scheme.to_owned(), size, reason }).inc();
        }
        if any { &self.answered } else { &self.unanswered }.inc();
    }
}

/// How a request was answered.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Answered {
    /// The HTTP status.
    pub(crate) status: u16,
}

/// Bounds of the completion times' buckets: 5 ms, and twice as much each time up to 82 s.
fn fct() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 2.0, 15))
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    /// Connections now.
    pub(crate) active: Gauge<i64, AtomicI64>,
    /// Connection attempts.
    pub(crate) attempts: Family<Attempt, Counter<u64, AtomicU64>>,
    /// Launches.
    pub(crate) launches: Family<OfScheme, Counter<u64, AtomicU64>>,
    /// Bytes sent during startup.
    pub(crate) startup_sent: Family<OfScheme, Counter<u64, AtomicU64>>,
    /// Of those, bytes declared lost.
    pub(crate) startup_lost: Family<OfScheme, Counter<u64, AtomicU64>>,
    /// Ends of startup.
    pub(crate) exits: Family<Exit, Counter<u64, AtomicU64>>,
    /// Hints.
    pub(crate) hints: Family<Hinted, Counter<u64, AtomicU64>>,
    /// Connections whose qlog file is not whole.
    pub(crate) qlog_ends: Family<QlogEnd, Counter<u64, AtomicU64>>,
    /// SCONE packets that were sent.
    pub(crate) scone_sent: Counter<u64, AtomicU64>,
    /// SCONE packets of clients, whole or damaged, for which nobody asked.
    pub(crate) scone_unexpected: Counter<u64, AtomicU64>,
    /// Clients' reports of the advice of their path.
    pub(crate) scone_reports: Family<Reported, Counter<u64, AtomicU64>>,
    /// Requests to routers that were sent.
    pub(crate) quick_start_requests: Counter<u64, AtomicU64>,
    /// Reports to routers that were sent.
    pub(crate) quick_start_reports: Counter<u64, AtomicU64>,
    /// Options for routers that the system did not take.
    pub(crate) quick_start_unsent: Counter<u64, AtomicU64>,
    /// Clients' responses to requests to routers.
    pub(crate) quick_start_responses: Family<Responded, Counter<u64, AtomicU64>>,
    /// Launches that advice of the path capped.
    pub(crate) advice_capped: Family<OfScheme, Counter<u64, AtomicU64>>,
    /// What sources of path knowledge stated. Those of connections that had no launch stay believed.
    pub(crate) sources: Family<OfSource, Counter<u64, AtomicU64>>,
    /// What the path store failed to do.
    pub(crate) path_store_failures: Family<OfStore, Counter<u64, AtomicU64>>,
    /// From the arrival of a request until the acknowledgement of its answer's last byte.
    pub(crate) fct: Family<OfScheme, Histogram>,
    /// What schemes are compared by.
    pub(crate) connections: PerConnection,
    /// What connections show of their paths.
    pub(crate) paths: Paths,
    /// Requests.
    pub(crate) requests: Family<Answered, Counter<u64, AtomicU64>>,
    /// Requests before their connection's handshake was complete.
    pub(crate) early: Counter<u64, AtomicU64>,
    /// Bytes of answers, without their headers.
    pub(crate) payload: Counter<u64, AtomicU64>,
    /// 1 while the kill switch is on.
    pub(crate) killed: Gauge<i64, AtomicI64>,
    /// 1 while launches are given up because of their losses.
    pub(crate) fallen_back: Gauge<i64, AtomicI64>,
    /// Prefixes to which launches are given up because of their own losses.
    pub(crate) fallen_back_prefixes: Gauge<i64, AtomicI64>,
}

impl Metrics {
    /// All of them, at zero.
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("flowstart");
        let metrics = Self {
            connections: PerConnection::new(&mut registry),
            paths: Paths::new(&mut registry),
            active: Gauge::default(),
            attempts: Family::default(),
            launches: Family::default(),
            startup_sent: Family::default(),
            startup_lost: Family::default(),
            exits: Family::default(),
            hints: Family::default(),
            qlog_ends: Family::default(),
            scone_sent: Counter::default(),
            scone_unexpected: Counter::default(),
            scone_reports: Family::default(),
            quick_start_requests: Counter::default(),
            quick_start_reports: Counter::default(),
            quick_start_unsent: Counter::default(),
            quick_start_responses: Family::default(),
            advice_capped: Family::default(),
            sources: Family::default(),
            path_store_failures: Family::default(),
            fct: Family::new_with_constructor(fct),
            requests: Family::default(),
            early: Counter::default(),
            payload: Counter::default(),
            killed: Gauge::default(),
            fallen_back: Gauge::default(),
            fallen_back_prefixes: Gauge::default(),
            registry: Registry::default(),
        };
        registry.register("connections_active", "Connections now", metrics.active.clone());
        registry.register(
            "connection_attempts",
            "Connection attempts by what became of them",
            metrics.attempts.clone(),
        );
        registry.register("launches", "Launches by startup scheme", metrics.launches.clone());
        registry.register_with_unit(
            "startup_sent",
            "Sent while the startup scheme was in charge, and in its first flight",
            Unit::Bytes,
            metrics.startup_sent.clone(),
        );
        registry.register_with_unit(
            "startup_lost",
            "Of what was sent during startup, declared lost",
            Unit::Bytes,
            metrics.startup_lost.clone(),
        );
        registry.register("startup_exits", "Ends of startup by scheme and reason", metrics.exits.clone());
        registry.register("hints", "Hints of clients by what became of them", metrics.hints.clone());
        registry.register(
            "qlog_incomplete",
            "Connections whose qlog file is left out, cut off or could not be written",
            metrics.qlog_ends.clone(),
        );
        registry.register("scone_packets_sent", "SCONE packets sent", metrics.scone_sent.clone());
        registry.register(
            "scone_packets_unexpected",
            "SCONE packets of clients, whole or damaged, for which nobody asked",
            metrics.scone_unexpected.clone(),
        );
        registry.register(
            "scone_reports",
            "Requests by what they report of the advice of their path",
            metrics.scone_reports.clone(),
        );
        registry.register(
            "quick_start_requests_sent",
            "Requests to routers sent",
            metrics.quick_start_requests.clone(),
        );
        registry.register(
            "quick_start_reports_sent",
            "Reports to routers of an approved rate sent",
            metrics.quick_start_reports.clone(),
        );
        registry.register(
            "quick_start_unsent",
            "Options for routers that the system did not take",
            metrics.quick_start_unsent.clone(),
        );
        registry.register(
            "quick_start_responses",
            "Responses to requests to routers by what became of them",
            metrics.quick_start_responses.clone(),
        );
        registry.register("advice_capped", "Launches that advice of the path capped", metrics.advice_capped.clone());
        registry.register(
            "sources",
            "Sources of path knowledge by what became of their statements; without a launch they stay believed",
            metrics.sources.clone(),
        );
        registry.register(
            "path_store_failures",
            "What the path store could not do, and its records that were damaged",
            metrics.path_store_failures.clone(),
        );
        registry.register_with_unit(
            "fct",
            "From the arrival of a request until its answer is acknowledged",
            Unit::Seconds,
            metrics.fct.clone(),
        );
        registry.register("requests", "Requests by status", metrics.requests.clone());
        registry.register("early_requests", "Requests before the handshake was complete", metrics.early.clone());
        registry.register_with_unit("payload", "Payload of answers", Unit::Bytes, metrics.payload.clone());
        registry.register("kill_switch", "1 while the kill switch is on", metrics.killed.clone());
        registry.register("fallen_back", "1 while launches are given up for losses", metrics.fallen_back.clone());
        registry.register(
            "fallen_back_prefixes",
            "Prefixes to which launches are given up for their own losses",
            metrics.fallen_back_prefixes.clone(),
        );
        Self { registry, ..metrics }
    }

    /// What the socket has counted of SCONE packets.
    pub(crate) fn count_scone(&self, clients: &scone::Clients) {
        self.scone_sent.inner().store(clients.sent(), Ordering::Relaxed);
        self.scone_unexpected.inner().store(clients.unexpected(), Ordering::Relaxed);
    }

    /// What the socket has counted of options for routers.
    pub(crate) fn count_quick_start(&self, clients: &quick_start::Clients) {
        self.quick_start_requests.inner().store(clients.requests(), Ordering::Relaxed);
        self.quick_start_reports.inner().store(clients.reports(), Ordering::Relaxed);
        self.quick_start_unsent.inner().store(clients.unsent(), Ordering::Relaxed);
    }

    /// As text, in the `OpenMetrics` format.
    pub(crate) fn text(&self) -> String {
        let _whole = self.connections.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_their_labels() {
        let metrics = Metrics::new();
        metrics.launches.get_or_create(&OfScheme { scheme: "blitzstart:estimate=1.5".into() }).inc();
        metrics.exits.get_or_create(&Exit { scheme: "x".into(), reason: "loss" }).inc();
        metrics.fct.get_or_create(&OfScheme { scheme: "x".into() }).observe(0.006);
        let text = metrics.text();
        for line in [
            "flowstart_launches_total{scheme=\"blitzstart:estimate=1.5\"} 1",
            "flowstart_startup_exits_total{scheme=\"x\",reason=\"loss\"} 1",
            "flowstart_fct_seconds_bucket{le=\"0.01\",scheme=\"x\"} 1",
            "flowstart_connections_active 0",
            "# EOF",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }

    #[test]
    fn what_is_read_again_has_its_name() {
        let metrics = Metrics::new();
        let mut answers = Answers::default();
        answers[0] = (1, 0.02);
        metrics.connections.count("x", &answers, 0.0, "loss");
        metrics.connections.count("x", &Answers::default(), 0.0, "loss");
        let text = metrics.text();
        for name in [
            names::FCT,
            names::FCT_SQUARED,
            names::LOST,
            names::LOST_SQUARED,
            names::ANSWERS,
            names::EXITS,
            names::ANSWERED,
            names::UNANSWERED,
            names::SERVER,
        ] {
            assert!(text.lines().any(|line| line.starts_with(name)), "{name} in\n{text}");
        }
    }
}
