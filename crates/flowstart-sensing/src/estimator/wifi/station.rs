//! nl80211's attributes of a station.
//!
//! Reference: Linux, include/uapi/linux/nl80211.h, `NL80211_CMD_NEW_STATION` and `enum nl80211_rate_info`.

use flowstart_core::units::Rate;

use super::netlink::{AttributeError, Attributes, number};
use super::{Generation, GuardInterval, Modulation, Width};

/// `NL80211_ATTR_STA_INFO` of nl80211.h.
pub(super) const ATTRIBUTE_STATION: u16 = 21;
/// `NL80211_STA_INFO_TX_BITRATE` and `NL80211_STA_INFO_RX_BITRATE`.
pub(super) const STATION_TX: u16 = 8;
pub(super) const STATION_RX: u16 = 14;

/// Attributes of `enum nl80211_rate_info`.
pub(super) mod rate_info {
    pub(in super::super) const BITRATE: u16 = 1;
    pub(in super::super) const MCS: u16 = 2;
    pub(in super::super) const WIDTH_40: u16 = 3;
    pub(in super::super) const SHORT_GI: u16 = 4;
    pub(in super::super) const BITRATE32: u16 = 5;
    pub(in super::super) const VHT_MCS: u16 = 6;
    pub(in super::super) const VHT_NSS: u16 = 7;
    pub(in super::super) const WIDTH_80: u16 = 8;
    pub(in super::super) const WIDTH_80P80: u16 = 9;
    pub(in super::super) const WIDTH_160: u16 = 10;
    pub(in super::super) const HE_MCS: u16 = 13;
    pub(in super::super) const HE_NSS: u16 = 14;
    pub(in super::super) const HE_GI: u16 = 15;
    pub(in super::super) const WIDTH_320: u16 = 18;
    pub(in super::super) const EHT_MCS: u16 = 19;
    pub(in super::super) const EHT_NSS: u16 = 20;
    pub(in super::super) const EHT_GI: u16 = 21;
}

/// What a station's answer says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationRates {
    /// From the access point to this station.
    pub receive: Option<Modulation>,
    /// From this station to the access point.
    pub transmit: Option<Modulation>,
}

/// Reads the attributes of `NL80211_CMD_NEW_STATION`. Skips everything except rates.
pub fn station_rates(attributes: &[u8]) -> Result<StationRates, AttributeError> {
    let mut rates = StationRates::default();
    for attribute in Attributes(attributes) {
        let (ATTRIBUTE_STATION, station) = attribute? else { continue };
        for attribute in Attributes(station) {
            match attribute? {
                (STATION_RX, info) => rates.receive = Some(modulation(info)?),
                (STATION_TX, info) => rates.transmit = Some(modulation(info)?),
                _ => {}
            }
        }
    }
    Ok(rates)
}

/// Reads `enum nl80211_rate_info`.
pub(super) fn modulation(info: &[u8]) -> Result<Modulation, AttributeError> {
    let mut found = Modulation { streams: 1, ..Modulation::default() };
    let mut short = None;
    for attribute in Attributes(info) {
        let attribute = attribute?;
        let rate = |hundreds_of_kilobits: u32| Rate::from_bits_per_sec(u64::from(hundreds_of_kilobits) * 100_000);
        let he_guard = |value| match value {
            0 => GuardInterval::Ns800,
            1 => GuardInterval::Ns1600,
            _ => GuardInterval::Ns3200,
        };
        match attribute.0 {
            // The 16-bit number is only for rates below 6.5 Gbit/s; the other comes with it and counts.
            rate_info::BITRATE if found.told.is_none() => {
                found.told = Some(rate(u32::from(u16::from_ne_bytes(number(attribute)?))));
            }
            rate_info::BITRATE32 => found.told = Some(rate(u32::from_ne_bytes(number(attribute)?))),
            rate_info::MCS => {
                // HT counts streams in its MCS: 8 to 15 are two streams, and so on (IEEE 802.11-2020, section 19.5).
                let [mcs] = number(attribute)?;
                found.generation = Generation::Ht;
                found.mcs = mcs % 8;
                found.streams = mcs / 8 + 1;
            }
            rate_info::VHT_MCS => {
                found.generation = Generation::Vht;
                [found.mcs] = number(attribute)?;
            }
            rate_info::HE_MCS => {
                found.generation = Generation::He;
                [found.mcs] = number(attribute)?;
            }
            rate_info::EHT_MCS => {
                found.generation = Generation::Eht;
                [found.mcs] = number(attribute)?;
            }
            rate_info::VHT_NSS | rate_info::HE_NSS | rate_info::EHT_NSS => [found.streams] = number(attribute)?,
            rate_info::HE_GI | rate_info::EHT_GI => {
                let [guard] = number(attribute)?;
                found.guard = he_guard(guard);
            }
            rate_info::SHORT_GI => short = Some(GuardInterval::Ns400),
            rate_info::WIDTH_40 => found.width = Width::Mhz40,
            rate_info::WIDTH_80 => found.width = Width::Mhz80,
            rate_info::WIDTH_80P80 | rate_info::WIDTH_160 => found.width = Width::Mhz160,
            rate_info::WIDTH_320 => found.width = Width::Mhz320,
            _ => {}
        }
    }
    found.guard = short.unwrap_or(found.guard);
    found.told = found.told.filter(|rate| *rate > Rate::ZERO);
    Ok(found)
}
