//! Memory for the observations of a run does not depend on its transfer.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;

use flowstart_lab::report;
use flowstart_lab::run::outcome::FlowOutcome;
use flowstart_lab::study::plan::Plan;
use flowstart_lab::study::scenario::Scenario;
use flowstart_lab::trace::export::{Outputs, PAGE, Sink, export};
use flowstart_lab::trace::observe::{self, Shown, Wanted, Watched};
use flowstart_report::{Cause, Method};

/// Counts the memory of the current thread, so that tests do not affect each other.
struct Counting;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static MOST: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    let live = LIVE.get() + bytes;
    LIVE.set(live);
    MOST.set(MOST.get().max(live));
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both exist while the bytes are copied.
        count(size as i64);
        count(-(layout.size() as i64));
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Most bytes that `work` has allocated at a time.
fn most_bytes(work: impl FnOnce()) -> i64 {
    let before = LIVE.get();
    MOST.set(before);
    work();
    MOST.get() - before
}

/// A transfer beside another flow, of which one packet in ten thousand is lost.
fn plan(size: &str, transport: &str) -> Plan {
    let scenario = Scenario {
        link: vec!["rate=100mbit,rtt=10ms,buffer=1bdp,loss=0.01%".into()],
        size: vec![size.into()],
        scheme: vec!["slow-start".into()],
        aqm: vec!["taildrop".into()],
        competitor: vec!["cubic".into()],
        avoidance: vec!["cubic".into()],
        transport: vec![transport.into()],
        flows: 1,
        reps: 1,
        ..Scenario::default()
    };
    scenario.plan(Path::new(".")).unwrap()
}

fn assert_complete(outcomes: &[FlowOutcome], plan: &Plan) {
    assert!(outcomes[0].failure.is_none() && outcomes[0].record.completed.is_some());
    assert_eq!(outcomes[0].size.get() as f64, plan.sizes[0].value.mean());
}

/// Additional memory for ten times the transfer, in KB.
fn growth(transport: &str, show: impl Fn(&Plan)) -> i64 {
    let [once, ten_times] = ["4MB", "40MB"].map(|size| {
        let plan = plan(size, transport);
        most_bytes(|| show(&plan))
    });
    eprintln!("{transport}: {} KB, ten times the transfer {} KB", once / 1000, ten_times / 1000);
    (ten_times - once) / 1000
}

fn nowhere() -> Option<Sink> {
    Some(Box::new(std::io::sink()))
}

const TRANSPORTS: [&str; 2] = ["model-tcp", "model-quic"];

#[test]
fn files_of_a_trace_need_the_same_memory_for_every_transfer() {
    for transport in TRANSPORTS {
        let growth = growth(transport, |plan| {
            let outputs = Outputs { csv: nowhere(), qlog: nowhere(), pcapng: nowhere(), ..Outputs::default() };
            assert_complete(&export(plan, &plan.cells()[0], 0, outputs).unwrap().outcomes, plan);
        });
        assert!(growth < 100, "{transport}: {growth} KB");
    }
}

#[test]
fn the_page_of_a_trace_is_bounded() {
    for transport in TRANSPORTS {
        let growth = growth(transport, |plan| {
            let cell = plan.cells()[0];
            let shown = export(plan, &cell, 0, Outputs { page: true, ..Outputs::default() }).unwrap();
            assert_complete(&shown.outcomes, plan);
            report::trace(plan, &cell, 0, &shown.outcomes, &shown.seen, Method::default());
        });
        assert!(growth < 12_000, "{transport}: {growth} KB");
    }
}

#[test]
fn an_account_of_causes_needs_the_same_memory_for_every_transfer() {
    for transport in TRANSPORTS {
        let growth = growth(transport, |plan| {
            let causes = Shown { watched: Watched { causes: true, series: None }, media_delays: false };
            let (outcomes, seen) = observe::again(plan, &plan.cells()[0], 0, causes);
            assert_complete(&outcomes, plan);
            assert!(seen.explanations[0].unwrap().ms(Cause::OthersQueue) > 0.0);
        });
        assert!(growth < 100, "{transport}: {growth} KB");
    }
}

#[test]
fn what_a_report_shows_is_bounded() {
    for transport in TRANSPORTS {
        let growth = growth(transport, |plan| {
            let cell = plan.cells()[0];
            let mut wanted = Wanted::default();
            wanted.causes.insert(cell.index);
            wanted.series.extend(PAGE.series.map(|resolution| (cell.index, resolution)));
            let results = observe::repetition(plan, plan.settings()[0], 0, &wanted);
            assert_complete(&results[0].outcomes, plan);
            assert!(results[0].seen.explanations[0].is_some() && results[0].seen.series.is_some());
        });
        assert!(growth < 12_000, "{transport}: {growth} KB");
    }
}
