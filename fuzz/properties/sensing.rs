//! What is read of paths: stores, oracles, gateways and interfaces.

use std::net::{IpAddr, Ipv4Addr};

use flowstart_core::units::{Bytes, Rate};
use flowstart_sensing::estimator::gateway::message as gateway;
use flowstart_sensing::estimator::wifi::netlink::{Message, Messages};
use flowstart_sensing::estimator::wifi::{self, Modulation};
use flowstart_sensing::interface;
use flowstart_sensing::oracle::message as oracle;
use flowstart_sensing::path_store::{Merge, PathRecord, UnixTime};

use super::{EXACT, text};

/// A record of a path store.
pub fn path_record(data: &[u8]) -> bool {
    let Ok(record) = PathRecord::from_bytes(data) else { return false };
    assert!(record.observations().is_sorted_by_key(|seen| seen.at));
    assert_eq!(PathRecord::from_bytes(&record.to_bytes()).as_ref(), Ok(&record));
    let some = !record.observations().is_empty();
    for merge in [Merge::MostRecent, Merge::Ewma { weight: 0.25 }] {
        assert_eq!(record.rate(merge).is_some(), some);
        assert_eq!(record.saved_path(merge, UnixTime::from_secs(1 << 40)).is_some(), some);
    }
    true
}

/// The query of a question to an oracle, as in `GET /capacity?address=192.0.2.7`.
pub fn oracle_query(data: &[u8]) -> bool {
    oracle::asked_address(data).inspect_err(|error| assert!(!error.to_string().is_empty())).is_ok()
}

/// The body of a question to an oracle, as ALTO asks.
pub fn oracle_question(data: &[u8]) -> bool {
    let Ok((endpoints, addresses)) = oracle::asked_endpoints(data) else { return false };
    assert!(endpoints.len() == addresses.len() && endpoints.len() <= 256);
    for (endpoint, address) in endpoints.iter().zip(addresses) {
        let family = if address.is_ipv4() { "ipv4:" } else { "ipv6:" };
        let written = endpoint.strip_prefix(family).map(str::parse);
        assert_eq!(written, Some(Ok(address)));
    }
    true
}

/// An oracle's answer to a question for 192.0.2.7.
pub fn oracle_answer(data: &[u8]) -> bool {
    let asked: IpAddr = Ipv4Addr::new(192, 0, 2, 7).into();
    let told = oracle::told_capacity(data, asked);
    let Ok(capacity) = told.inspect_err(|error| assert!(!error.to_string().is_empty())) else { return false };
    assert!(capacity.prefix.contains(&asked));
    let written = serde_json::to_vec(&capacity).expect("an answer can be written");
    let again = oracle::told_capacity(&written, asked).expect("a written answer can be read");
    let exact = [capacity.rate.bits_per_sec(), capacity.min_rtt.as_nanos(), capacity.cwnd.get()];
    assert!(again == capacity || exact.into_iter().any(|value| value > EXACT), "{capacity:?} is not {again:?}");
    true
}

/// A datagram that answers a search for gateways.
pub fn gateway_search(data: &[u8]) -> bool {
    let Some(location) = gateway::location(data) else { return false };
    assert!(location.len() <= data.len() && !location.contains("\r\n") && location.trim() == location);
    true
}

/// A gateway's description, with which an address is resolved.
pub fn gateway_description(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    gateway::resolved(&text, None, "/ctl");
    let Ok(service) = gateway::service(&text) else { return false };
    gateway::resolved("http://192.0.2.1:5000/igd/desc.xml", service.base.as_deref(), &service.control);
    true
}

/// A gateway's answer: its link, or why it refuses.
pub fn gateway_answer(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    gateway::error_code(&text);
    let Ok(properties) = gateway::properties(&text) else { return false };
    assert!(properties.up || properties.hint().is_none());
    let unknown = |rate: Option<Rate>| rate.is_none_or(|rate| rate > Rate::ZERO);
    assert!(unknown(properties.downstream) && unknown(properties.upstream));
    true
}

/// A datagram of netlink, in the byte order of little-endian hosts: the rates of a station.
pub fn netlink(data: &[u8]) -> bool {
    let mut told = false;
    let mut left = data.len();
    for message in Messages(data) {
        let Ok(message) = message else { return told };
        assert!(left >= 16, "each message has a head, so there is an end");
        left -= 16;
        let Message::Answer(attributes) = message else { continue };
        let Ok(rates) = wifi::station_rates(attributes) else { continue };
        for modulation in [rates.receive, rates.transmit].into_iter().flatten() {
            told = true;
            // Whatever was told, what is calculated is a rate of the standards: at most 8 streams of 320 MHz.
            let calculated = Modulation { told: None, ..modulation }.phy_rate().unwrap_or_default();
            assert!(calculated <= Rate::from_mbit(23_100), "{calculated}");
            if let Some(phy) = modulation.phy_rate() {
                assert!(wifi::ip_rate(phy, modulation.generation, Bytes::new(1500)) < phy);
            }
        }
    }
    told
}

/// `speed` and `uevent` of an interface in sysfs.
pub fn interface_speed(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    interface::told_stacked(text);
    match interface::told_speed(text) {
        Ok(Some(rate)) => assert!(rate >= Rate::from_mbit(1) && rate.bits_per_sec() % 1_000_000 == 0),
        Ok(None) => {}
        Err(_) => return false,
    }
    true
}
