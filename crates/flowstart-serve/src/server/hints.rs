//! Clients' hints of the rate of their path, and how much of them is used.
//!
//! A hint comes in a transport parameter of the first message. A browser's comes as client hints in a request's header.
//! The first hint counts.

use std::net::IpAddr;
use std::sync::Arc;

use flowstart_quic::hint::policy::{Evidence, Grant, PrefixTotals, Verdict};
use flowstart_quic::hint::{BandwidthHint, ClientHints, HintPolicy};
use flowstart_sensing::path_store::Prefixes;
use http::HeaderMap;

/// Judges hints.
#[derive(Debug)]
pub(crate) struct Hints {
    policy: HintPolicy,
    totals: Arc<PrefixTotals>,
    prefixes: Prefixes,
}

impl Hints {
    /// By this policy. Its totals are those of /24 and /48 prefixes.
    pub(crate) fn new(policy: HintPolicy) -> Self {
        let (totals, prefixes) = (Arc::default(), Prefixes::default());
        Self { policy, totals, prefixes }
    }

    /// The decision on what `client` states, with this evidence. What it is given of the total of its prefix lasts
    /// until `held` is dropped.
    pub(crate) fn admit(
        &self,
        client: IpAddr,
        hint: &BandwidthHint,
        evidence: &Evidence,
        held: &mut Option<Grant>,
    ) -> Verdict {
        let prefix = self.prefixes.prefix_of(client).network();
        self.totals.admit(&self.policy, prefix, hint, evidence, held)
    }
}

/// The floor that a browser's client hints put under the rate, and the errors of those that could not be read.
pub(crate) fn of_browser(fields: &HeaderMap) -> (Option<BandwidthHint>, Vec<String>) {
    let (mut hints, mut errors) = (ClientHints::default(), Vec::new());
    for (name, value) in fields {
        if let Err(error) = hints.take(name.as_str(), value.as_bytes()) {
            errors.push(error.to_string());
        }
    }
    (hints.floor(), errors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_core::path::AccessTechnology;
    use flowstart_core::time::Duration;
    use flowstart_core::units::Rate;

    #[test]
    fn clients_share_the_total_of_their_prefix() {
        let hints = Hints::new("cap:prefix=60mbit".parse().unwrap());
        let rate_of = |client: &str, mbit| {
            let rate = Rate::from_mbit(mbit);
            let hint = BandwidthHint { rate, technology: AccessTechnology::Wifi, age: Duration::ZERO };
            let mut grant = None;
            let verdict = hints.admit(client.parse().unwrap(), &hint, &Evidence::default(), &mut grant);
            (verdict.rate, grant)
        };
        let rate = |client| rate_of(client, 50);
        let (first, kept) = rate("192.0.2.1");
        assert_eq!(first, Some(Rate::from_mbit(50)));
        // 60 - 50 are left for the others of the prefix: too little of 50, and half of 20.
        assert_eq!(rate("192.0.2.2").0, None);
        assert_eq!(rate_of("192.0.2.2", 20).0, Some(Rate::from_mbit(10)));
        assert_eq!(rate("198.51.100.1").0, Some(Rate::from_mbit(50)));
        drop(kept);
        assert_eq!(rate("192.0.2.3").0, Some(Rate::from_mbit(50)));
    }

    #[test]
    fn a_connection_has_the_largest_of_what_it_states_and_what_is_refused_frees_nothing() {
        let hints = Hints::new("cap:prefix=60mbit,age=1s".parse().unwrap());
        let word = |mbit, millis| BandwidthHint {
            rate: Rate::from_mbit(mbit),
            technology: AccessTechnology::Wifi,
            age: Duration::from_millis(millis),
        };
        let admit = |client: &str, word: BandwidthHint, held: &mut Option<Grant>| {
            hints.admit(client.parse().unwrap(), &word, &Evidence::default(), held).rate
        };
        let [mut one, mut other] = [None, None];
        assert_eq!(admit("192.0.2.1", word(40, 0), &mut one), Some(Rate::from_mbit(40)));
        // Its own share is no reason against what it states next, be it less, more or refused.
        assert_eq!(admit("192.0.2.1", word(50, 0), &mut one), Some(Rate::from_mbit(50)));
        assert_eq!(admit("192.0.2.1", word(30, 0), &mut one), Some(Rate::from_mbit(30)));
        assert_eq!(admit("192.0.2.1", word(60, 2000), &mut one), None);
        assert_eq!(admit("192.0.2.2", word(20, 0), &mut other), Some(Rate::from_mbit(10)));
        assert_eq!(admit("192.0.2.1", word(60, 0), &mut one), Some(Rate::from_mbit(50)));
        drop((one, other));
        assert_eq!(hints.totals.prefixes(), 0);
    }

    #[test]
    fn a_browsers_fields_become_a_floor() {
        let mut fields = HeaderMap::new();
        fields.insert("downlink", "5".parse().unwrap());
        let (hint, errors) = of_browser(&fields);
        assert!(errors.is_empty());
        assert!(hint.unwrap().rate < Rate::from_mbit(5) && hint.unwrap().rate > Rate::from_mbit(4));
        fields.insert("downlink", "fast".parse().unwrap());
        let (hint, errors) = of_browser(&fields);
        assert_eq!((hint, errors.len()), (None, 1));
    }
}
