//! Experiments in which several connections may carry a transfer.

use flowstart_core::units::Bytes;

use crate::spec::InputError;
use crate::spec::arrival::MAX_FLOWS;
use crate::study::plan::Plan;

/// Each connection carries a part of a transfer, at least a byte. Applications have connections of their own.
pub(in crate::study) fn check(plan: &Plan) -> Result<(), InputError> {
    let counts = plan.schemes.iter().zip(&plan.scheme_connections);
    let Some((scheme, &most)) = counts.max_by_key(|(_, count)| **count).filter(|(_, count)| **count > 1) else {
        return Ok(());
    };
    let beside = |field: &str, text: &str, allowed: &str| {
        Err(InputError::new(field, text, format!("with scheme {} allowed is {allowed}", scheme.text)))
    };
    for size in &plan.sizes {
        match size.value.smallest() {
            None => return beside("application", &size.text, "transfer, which has a size"),
            Some(smallest) if smallest < Bytes::new(u64::from(most)) => {
                return beside("size", &size.text, &format!("{most} bytes or more, a byte for each connection"));
            }
            Some(_) => {}
        }
    }
    let flows = plan.arrivals.iter().map(|arrival| arrival.value.flows.unwrap_or(plan.flows)).max();
    let flows = flows.unwrap_or(plan.flows);
    if flows.saturating_mul(most) > MAX_FLOWS {
        return beside("flows", &flows.to_string(), &format!("1 to {}", MAX_FLOWS / most));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::study::scenario::Scenario;

    fn refusal(scheme: &str, more: &str) -> String {
        let text = format!("link = [\"lte\"]\nscheme = [\"slow-start\", \"{scheme}\"]\n{more}");
        let plan = Scenario::from_text(&text).unwrap().plan(Path::new("."));
        plan.map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn connections_are_for_transfers_that_have_a_byte_for_each() {
        let size = "size = [\"70KB\"]\n";
        for scheme in ["slow-start:connections=6", "jump-start:connections=100"] {
            assert_eq!(refusal(scheme, size), "", "{scheme}");
        }
        let fine = "quick-start:connections=6,parallel=6,request=fixed";
        assert_eq!(refusal(fine, size), "");
        let six = "slow-start:connections=6";
        for (scheme, more, expected) in [
            (six, "application = [\"page:objects=2,size=1KB,waves=2\"]\n", "allowed is transfer"),
            (six, "application = [\"web:sessions=2\"]\ntransport = \"model-tcp\"\n", "allowed is transfer"),
            (six, "size = [\"5B\"]\n", "6 bytes or more"),
            (six, "size = [\"pareto:smallest=5B,largest=1MB\"]\n", "6 bytes or more"),
            (six, "size = [\"70KB\"]\nflows = 1667\n", "1 to 1666"),
            (six, "size = [\"70KB\"]\narrival = [\"together:flows=2000\"]\n", "1 to 1666"),
            ("slow-start:connections=0", size, "1 to 100"),
            ("slow-start:connections=101", size, "1 to 100"),
            ("slow-start:connections=six", size, "connections"),
            ("quick-start:connections=6,parallel=3", size, "allowed is 6, or 1"),
            ("stack:connections=2", size, "`connections` is not for stack"),
        ] {
            let refusal = refusal(scheme, more);
            assert!(refusal.contains(expected), "{scheme} {more}: {refusal}");
        }
    }
}
