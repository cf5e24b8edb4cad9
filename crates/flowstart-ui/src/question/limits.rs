//! What a question may cost: a page is open to who can reach it, and its answer shall come while its reader waits.

use flowstart_core::time::Timestamp;
use flowstart_lab::spec::competitor::Competitor;
use flowstart_lab::spec::size::TransferSize;
use flowstart_lab::spec::transport::{BOTH, OF_BOTH};
use flowstart_lab::spec::workload::Workload;
use flowstart_lab::study::ideal::limit_of;
use flowstart_lab::study::plan::{AXES, Cell, Plan};
use flowstart_lab::study::scenario::Scenario;
use flowstart_lab::study::shipped::named_recordings;
use flowstart_lab::study::world::SIMULATOR;

use super::Refusal;

/// Most repetitions.
pub const MOST_REPS: u32 = 1000;
/// Most measured flows of a run, and most flows of others that are counted.
pub(super) const MOST_FLOWS: u32 = 100;
/// Most cells.
const MOST_CELLS: usize = 48;
/// Most bytes of a measured flow.
const LARGEST: f64 = 100e6;
/// Most simulated bytes of all runs: a minute or two of a core.
const MOST_BYTES: f64 = 40e9;
/// Seconds that others have the link before newcomers come and after they are gone, about.
const OTHERS_S: f64 = 20.0;
/// Seconds after which a run ends that does not get its transfers through, and the same over their physical limit.
const PATIENCE_S: f64 = 300.0;
const PATIENCE: f64 = 50.0;
/// How much longer than its physical limit a transfer beside others takes, about.
const SHARED: f64 = 4.0;
/// Part of the link from which on others leave too little of it.
const FULL: f64 = 0.8;
/// How much longer a packet of a real stack takes.
const REAL: f64 = 20.0;
/// Bytes of a full packet.
const PACKET: f64 = 1500.0;
/// Most packets that may wait in a queue.
const MOST_WAITING: f64 = 1e6;
/// Most rows of results.
const MOST_ROWS: u64 = 100_000;

/// Refuses what may not even be read: files, and numbers without bound.
pub(super) fn before(scenario: &Scenario) -> Result<(), Refusal> {
    if let Some(file) = named_recordings(scenario).first() {
        let how = "allowed are links without files here; `flowstart compare` and `flowstart run` read recordings";
        return Err(Refusal::of("link", file, format!("a file; {how}")));
    }
    if let Some(world) = scenario.world.iter().find(|world| !world.trim().eq_ignore_ascii_case(SIMULATOR)) {
        return Err(Refusal::of("world", world, format!("allowed is {SIMULATOR} here")));
    }
    for (name, value, most) in [("reps", scenario.reps, MOST_REPS), ("flows", scenario.flows, MOST_FLOWS)] {
        if !(1..=most).contains(&value) {
            return Err(Refusal::of(name, value, format!("allowed is 1 to {most} here")));
        }
    }
    // Before a plan has them.
    let mut lists = scenario.clone();
    let mut cells = 1_usize;
    for key in AXES.iter().flat_map(|axis| axis.keys) {
        let list = lists.list(key.name).map(|list| &**list).unwrap_or_default();
        let several = list.iter().filter(|text| text.trim().eq_ignore_ascii_case(BOTH)).count() * (OF_BOTH.len() - 1);
        cells = cells.saturating_mul((list.len() + several).max(1));
    }
    if cells > MOST_CELLS {
        return Err(Refusal(format!("the question has {cells} cells; allowed are {MOST_CELLS} here")));
    }
    Ok(())
}

/// Refuses runs that take too long.
pub(crate) fn after(plan: &Plan) -> Result<(), Refusal> {
    let cells = plan.cells();
    for size in &plan.sizes {
        if size.value.sessions().is_some() {
            let allowed = "allowed are transfers, chunks, pages and videos here; `flowstart compare` has sessions";
            return Err(Refusal::of("application", &size.text, allowed));
        }
        let largest = match size.value {
            Workload::Transfer(TransferSize::Pareto(sizes)) => sizes.largest.get() as f64,
            other => other.mean(),
        };
        if largest > LARGEST {
            let name = if size.value.objects().is_some() { "application" } else { "size" };
            return Err(Refusal::of(name, &size.text, "allowed is up to 100 MB here"));
        }
    }
    for cell in &cells {
        if plan.flow_count(cell) > MOST_FLOWS {
            let arrival = &plan.arrivals[cell.arrival].text;
            return Err(Refusal::of("arrival", arrival, format!("allowed are 1 to {MOST_FLOWS} flows here")));
        }
        let competitor = &plan.competitors[cell.competitor];
        let refused = |allowed: String| Err(Refusal::of("competitor", &competitor.text, allowed));
        let link = &plan.links[cell.link];
        match competitor.on(cell.transport) {
            Competitor::Bulk { count, .. } | Competitor::Pattern { count, .. } | Competitor::Short { count, .. }
                if *count > MOST_FLOWS =>
            {
                return refused(format!("allowed are 1 to {MOST_FLOWS} flows here"));
            }
            // Transfers that come faster than they can go have no end.
            Competitor::Web { load, .. } if *load > link.rate => {
                return refused(format!("allowed is a load up to {} on {} here", link.rate, link.text));
            }
            _ => {}
        }
        let waiting = waiting(plan, cell);
        if waiting > MOST_WAITING {
            return refused(format!(
                "{waiting:.0} packets would wait in the buffer of {}; allowed are {MOST_WAITING:.0} here",
                link.text
            ));
        }
    }
    let rows: u64 = cells.iter().map(|cell| u64::from(plan.flow_count(cell)) * u64::from(plan.reps)).sum();
    if rows > MOST_ROWS {
        return Err(Refusal::of("reps", plan.reps, format!("{rows} rows of results; allowed are {MOST_ROWS} here")));
    }
    let bytes = f64::from(plan.reps) * cells.iter().map(|cell| bytes(plan, cell)).sum::<f64>();
    if bytes > MOST_BYTES {
        let problem = format!(
            "all runs together would be some {:.0} GB of simulated traffic; allowed are {:.0} GB here, with fewer \
             repetitions, cells, bytes or others",
            bytes / 1e9,
            MOST_BYTES / 1e9
        );
        return Err(Refusal::of("reps", plan.reps, problem));
    }
    Ok(())
}

/// What a run of a cell costs, about, in bytes of model flows.
fn bytes(plan: &Plan, cell: &Cell) -> f64 {
    let (link, size) = (&plan.links[cell.link], &plan.sizes[cell.size].value);
    let weight = if plan.transport_of(cell).stack.is_some() { REAL } else { 1.0 };
    let own = size.mean() * f64::from(plan.flow_count(cell)) * weight;
    if *plan.competitors[cell.competitor].on(cell.transport) == Competitor::None {
        return own;
    }
    own + (link.rate.bits_per_sec() as f64 / 8.0).max(offered(plan, cell)) * (OTHERS_S + lasts(plan, cell))
}

/// What others send whatever the link does with it, in bytes of full packets a second.
fn offered(plan: &Plan, cell: &Cell) -> f64 {
    plan.competitors[cell.competitor].on(cell.transport).packets_per_s() * PACKET
}

/// How long a cell's transfers take beside others, in seconds, about.
fn lasts(plan: &Plan, cell: &Cell) -> f64 {
    let (link, size) = (&plan.links[cell.link], &plan.sizes[cell.size].value);
    let flows = plan.flow_count(cell);
    let limit = limit_of(plan, cell, link, size.mean_bytes(), Timestamp::ZERO).as_secs() * f64::from(flows);
    let is_full = offered(plan, cell) > FULL * link.rate.bits_per_sec() as f64 / 8.0;
    let alone = if is_full { (limit * PATIENCE).max(PATIENCE_S) } else { limit * SHARED };
    alone + plan.arrivals[cell.arrival].value.span(flows, size.mean()).as_secs()
}

/// The packets that may wait in a cell's queue: what its buffer holds, and no more than comes while it lasts.
fn waiting(plan: &Plan, cell: &Cell) -> f64 {
    let link = &plan.links[cell.link];
    let packets = plan.competitors[cell.competitor].on(cell.transport).packets_per_s();
    let came = packets * (OTHERS_S + lasts(plan, cell));
    // The smallest packets of others have some 100 bytes.
    link.holds().map_or(came, |bytes| came.min(bytes.get() as f64 / 100.0))
}

#[cfg(test)]
mod tests {
    use super::super::Question;

    /// What an address of this question is refused for.
    fn refused(query: &str) -> String {
        Question::of_query(query)
            .map_or_else(|refusal| refusal.to_string(), |asked| panic!("{} may be asked", asked.query))
    }

    #[test]
    fn runs_that_last_while_flows_arrive_are_counted() {
        let long = "link=rate%3D1gbit%2Crtt%3D20ms%2Cbuffer%3D1bdp&size=5KB&scheme=slow-start&competitor=cubic&reps=1";
        for arrival in ["every%3D1000s%2Cflows%3D100", "within%3D1000s%2Cflows%3D100"] {
            let told = refused(&format!("{long}&arrival={arrival}"));
            assert!(told.contains("GB of simulated traffic"), "{told}");
        }
        assert!(Question::of_query(&format!("{long}&arrival=every%3D10ms%2Cflows%3D100")).is_ok());
    }

    #[test]
    fn a_queue_without_bound_is_refused_beside_who_does_not_yield() {
        let slow =
            "link=rate%3D1kbit%2Crtt%3D50ms%2Cbuffer%3D1000GB&scheme=slow-start&reps=1&application=video%3Acount%3D2";
        for competitor in ["media", "media%3Acount%3D20", "cbr%3Arate%3D5mbit", "call%3Arate%3D1mbit"] {
            let told = refused(&format!("{slow}&competitor={competitor}"));
            assert!(told.contains("packets would wait"), "{told}");
        }
    }

    #[test]
    fn many_rows_are_refused() {
        let told = refused("link=lte&size=5KB+6KB&scheme=slow-start&flows=100&reps=1000&arrival=every%3D1ms");
        assert!(told.contains("rows"), "{told}");
    }
}
