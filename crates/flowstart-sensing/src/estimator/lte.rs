//! The rate of an LTE downlink from the configuration of its radio: bandwidth, modulation and coding, MIMO layers.
//!
//! Reference: 3GPP TS 36.213 (Release 8 and later), tables 7.1.7.1-1 (MCS to modulation and TBS index) and 7.1.7.2.1-1
//! (transport block sizes), which Rüth et al., "Blitz-starting QUIC Connections" (2019), section 3.1, propose. A client
//! that gets the whole carrier receives one transport block per codeword in each subframe of 1 ms; its size follows
//! from the MCS and the number of resource blocks. The rate of IP packets is what headers and retransmissions leave.
//!
//! Differences from the reference: only the columns of table 7.1.7.2.1-1 for a whole carrier are here (6, 15, 25, 50,
//! 75 and 100 resource blocks), since an estimate is for a client alone. With four layers a codeword spans two, and has
//! the size for twice as many blocks (section 7.1.7.2.2). Where that is no column, it is approximated by twice the size
//! for one layer: table 7.1.7.2.2-1, which maps larger sizes, has at most 1 % less (for MCS 28 and 100 blocks 149,776
//! bits instead of 150,752), and with 6 and 15 blocks and low modulations up to 7 % more is right. 256-QAM (table
//! 7.1.7.1-1A) is left out: a modem that uses it is refused, and so is MCS 29 to 31, which only repeats.
//! `downlink_share` accounts for TDD subframes in the uplink. Smartphones do not tell applications all of this, as the
//! paper notes; modems of routers do.
//!
//! Status: worked examples, among them the peak rates of UE categories 3 to 5 (TS 36.306).

use std::str::FromStr;

use flowstart_core::units::Rate;
use serde::{Deserialize, Serialize};

/// Bandwidth of a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bandwidth {
    /// 1.4 MHz, 6 resource blocks.
    #[serde(rename = "1.4MHz")]
    Mhz1_4,
    /// 3 MHz, 15 resource blocks.
    #[serde(rename = "3MHz")]
    Mhz3,
    /// 5 MHz, 25 resource blocks.
    #[serde(rename = "5MHz")]
    Mhz5,
    /// 10 MHz, 50 resource blocks.
    #[serde(rename = "10MHz")]
    Mhz10,
    /// 15 MHz, 75 resource blocks.
    #[serde(rename = "15MHz")]
    Mhz15,
    /// 20 MHz, 100 resource blocks.
    #[serde(rename = "20MHz")]
    Mhz20,
}

/// Subframes in a second.
const SUBFRAMES: u64 = 1000;

/// Columns of TS 36.213, table 7.1.7.2.1-1, in bits, by TBS index 0 to 26.
const BLOCKS_6: [u32; 27] = [
    152, 208, 256, 328, 408, 504, 600, 712, 808, 936, 1032, 1192, 1352, 1544, 1736, 1800, 1928, 2152, 2344, 2600, 2792,
    2984, 3240, 3496, 3624, 3752, 4392,
];
const BLOCKS_15: [u32; 27] = [
    392, 520, 648, 872, 1064, 1320, 1544, 1800, 2088, 2344, 2664, 2984, 3368, 3880, 4264, 4584, 4968, 5352, 5992, 6456,
    6968, 7480, 7992, 8504, 9144, 9528, 11_064,
];
const BLOCKS_25: [u32; 27] = [
    680, 904, 1096, 1416, 1800, 2216, 2600, 3112, 3496, 4008, 4392, 4968, 5736, 6456, 7224, 7736, 7992, 9144, 9912,
    10_680, 11_448, 12_576, 13_536, 14_112, 15_264, 15_840, 18_336,
];
const BLOCKS_50: [u32; 27] = [
    1384, 1800, 2216, 2856, 3624, 4392, 5160, 6200, 6968, 7992, 8760, 9912, 11_448, 12_960, 14_112, 15_264, 16_416,
    18_336, 19_848, 21_384, 22_920, 25_456, 27_376, 28_336, 30_576, 31_704, 36_696,
];
const BLOCKS_75: [u32; 27] = [
    2088, 2728, 3368, 4392, 5352, 6712, 7736, 9144, 10_680, 11_832, 12_960, 15_264, 16_992, 19_080, 21_384, 22_920,
    24_496, 27_376, 29_296, 32_856, 35_160, 37_888, 40_576, 43_816, 45_352, 46_888, 55_056,
];
const BLOCKS_100: [u32; 27] = [
    2792, 3624, 4584, 5736, 7224, 8760, 10_296, 12_216, 14_112, 15_840, 17_568, 19_848, 22_920, 25_456, 28_336, 30_576,
    32_856, 36_696, 39_232, 43_816, 46_888, 51_024, 55_056, 57_336, 61_664, 63_776, 75_376,
];

/// Bandwidths by their names.
const BANDWIDTHS: [(&str, Bandwidth); 6] = [
    ("1.4MHz", Bandwidth::Mhz1_4),
    ("3MHz", Bandwidth::Mhz3),
    ("5MHz", Bandwidth::Mhz5),
    ("10MHz", Bandwidth::Mhz10),
    ("15MHz", Bandwidth::Mhz15),
    ("20MHz", Bandwidth::Mhz20),
];

impl FromStr for Bandwidth {
    type Err = LteError;
    fn from_str(text: &str) -> Result<Self, LteError> {
        let found = BANDWIDTHS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, bandwidth)| *bandwidth).ok_or_else(|| LteError::Bandwidth(text.into()))
    }
}

impl Bandwidth {
    /// Transport block sizes for all of its resource blocks.
    const fn sizes(self) -> &'static [u32; 27] {
        match self {
            Self::Mhz1_4 => &BLOCKS_6,
            Self::Mhz3 => &BLOCKS_15,
            Self::Mhz5 => &BLOCKS_25,
            Self::Mhz10 => &BLOCKS_50,
            Self::Mhz15 => &BLOCKS_75,
            Self::Mhz20 => &BLOCKS_100,
        }
    }

    /// Those for twice as many, which a codeword on two layers has with up to 55 resource blocks.
    const fn sizes_of_twice(self) -> Option<&'static [u32; 27]> {
        match self {
            Self::Mhz5 => Some(&BLOCKS_50),
            Self::Mhz10 => Some(&BLOCKS_100),
            Self::Mhz1_4 | Self::Mhz3 | Self::Mhz15 | Self::Mhz20 => None,
        }
    }
}

/// The modem's statement about one carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carrier {
    /// Its bandwidth.
    pub bandwidth: Bandwidth,
    /// Modulation and coding scheme of a codeword, 0 to 28.
    pub mcs: u8,
    /// MIMO layers: 1, 2 or 4. One layer is one codeword, two and four are two.
    pub layers: u8,
}

/// The overhead between the radio and IP packets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Overheads {
    /// Share of subframes that carry downlink data: 1 for FDD (the default); for TDD by its configuration (TS 36.211,
    /// table 4.2-2), for instance 0.6 with configuration 1 and its special subframes taken as downlink.
    pub downlink_share: f64,
    /// Share of blocks that have to be repeated. Default 0.1: the target of link adaptation (TS 36.213, section 7.2.3).
    pub block_errors: f64,
    /// Share of a block that is headers and padding of MAC, RLC and PDCP. Default 0.005: 2, 2 and 2 bytes per packet of
    /// 1500 bytes, rounded up (TS 36.321, 36.322, 36.323).
    pub headers: f64,
}

impl Default for Overheads {
    fn default() -> Self {
        Self { downlink_share: 1.0, block_errors: 0.1, headers: 0.005 }
    }
}

/// A configuration that the tables do not have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LteError {
    /// No carrier has this bandwidth.
    #[error("`{0}` is no bandwidth of LTE: use 1.4MHz, 3MHz, 5MHz, 10MHz, 15MHz or 20MHz")]
    Bandwidth(String),
    /// Above 28 there are no sizes.
    #[error("`mcs` is {0}: use 0 to 28")]
    Mcs(u8),
    /// No such multiplexing.
    #[error("`layers` is {0}: use 1, 2 or 4")]
    Layers(u8),
    /// No share.
    #[error("`{field}` is {value}: use 0 to 1")]
    Share {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
}

/// TBS index of an MCS (table 7.1.7.1-1): QPSK up to 9, 16-QAM up to 16, 64-QAM up to 28. The first of a modulation has
/// the size of the last of the one before.
fn tbs_index(mcs: u8) -> Result<usize, LteError> {
    match mcs {
        0..=9 => Ok(usize::from(mcs)),
        10..=16 => Ok(usize::from(mcs) - 1),
        17..=28 => Ok(usize::from(mcs) - 2),
        _ => Err(LteError::Mcs(mcs)),
    }
}

impl Carrier {
    /// Bits per second of the physical layer, if every subframe is this client's.
    pub fn phy_rate(&self) -> Result<Rate, LteError> {
        if !matches!(self.layers, 1 | 2 | 4) {
            return Err(LteError::Layers(self.layers));
        }
        let index = tbs_index(self.mcs)?;
        let bits = match (self.layers, self.bandwidth.sizes_of_twice()) {
            (4, Some(sizes)) => 2 * u64::from(sizes[index]),
            (layers, _) => u64::from(layers) * u64::from(self.bandwidth.sizes()[index]),
        };
        Ok(Rate::from_bits_per_sec(bits * SUBFRAMES))
    }
}

/// The rate of IP packets over all carriers that are aggregated.
pub fn ip_rate(carriers: &[Carrier], overheads: &Overheads) -> Result<Rate, LteError> {
    let shares = [
        ("downlink_share", overheads.downlink_share),
        ("block_errors", overheads.block_errors),
        ("headers", overheads.headers),
    ];
    if let Some(&(field, value)) = shares.iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
        return Err(LteError::Share { field, value });
    }
    let mut phy: u64 = 0;
    for carrier in carriers {
        phy = phy.saturating_add(carrier.phy_rate()?.bits_per_sec());
    }
    let left = overheads.downlink_share * (1.0 - overheads.block_errors) * (1.0 - overheads.headers);
    Ok(Rate::from_bits_per_sec(phy).scale(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phy(bandwidth: Bandwidth, mcs: u8, layers: u8) -> u64 {
        Carrier { bandwidth, mcs, layers }.phy_rate().unwrap().bits_per_sec()
    }

    #[test]
    fn the_best_configurations_reach_the_peak_rates_of_ue_categories() {
        // TS 36.306, table 4.1-1, bits per TTI of 1 ms: category 4 150,752, category 5 299,552 (here 301,504, 0.7 %
        // more).
        assert_eq!(phy(Bandwidth::Mhz20, 28, 2), 150_752_000);
        assert_eq!(phy(Bandwidth::Mhz20, 28, 4), 301_504_000);
        // Of 10 MHz, two codewords on two layers each have the blocks of 20 MHz.
        assert_eq!(phy(Bandwidth::Mhz10, 28, 4), phy(Bandwidth::Mhz20, 28, 2));
        // Category 3 has 102,048 bits per TTI: two blocks of 51,024, MCS 23.
        assert_eq!(phy(Bandwidth::Mhz20, 23, 2), 102_048_000);
    }

    #[test]
    fn neighbouring_modulations_share_a_block_size() {
        assert_eq!(phy(Bandwidth::Mhz10, 9, 1), phy(Bandwidth::Mhz10, 10, 1));
        assert_eq!(phy(Bandwidth::Mhz10, 16, 1), phy(Bandwidth::Mhz10, 17, 1));
        assert_eq!(phy(Bandwidth::Mhz1_4, 0, 1), 152_000);
    }

    #[test]
    fn more_bandwidth_and_a_higher_index_never_mean_less() {
        let all = [&BLOCKS_6, &BLOCKS_15, &BLOCKS_25, &BLOCKS_50, &BLOCKS_75, &BLOCKS_100];
        assert!(all.iter().all(|sizes| sizes.is_sorted() && sizes.iter().all(|size| size % 8 == 0)));
        assert!(all.windows(2).all(|pair| pair[0].iter().zip(pair[1]).all(|(narrow, wide)| narrow < wide)));
    }

    #[test]
    fn ip_packets_get_what_the_overheads_leave() {
        // 10 MHz, MCS 20, two layers: 2 x 19,848 bits per ms (TBS index 18). Of 39.696 Mbit/s, 0.9 x 0.995 are left.
        let carrier = Carrier { bandwidth: Bandwidth::Mhz10, mcs: 20, layers: 2 };
        assert_eq!(carrier.phy_rate(), Ok(Rate::from_bits_per_sec(39_696_000)));
        assert_eq!(ip_rate(&[carrier], &Overheads::default()), Ok(Rate::from_bits_per_sec(35_547_768)));
        assert_eq!(ip_rate(&[], &Overheads::default()), Ok(Rate::ZERO));
    }

    #[test]
    fn what_the_tables_do_not_have_is_refused() {
        assert_eq!("10mhz".parse(), Ok(Bandwidth::Mhz10));
        assert_eq!("40MHz".parse::<Bandwidth>(), Err(LteError::Bandwidth("40MHz".into())));
        let carrier = Carrier { bandwidth: Bandwidth::Mhz10, mcs: 29, layers: 2 };
        assert_eq!(carrier.phy_rate(), Err(LteError::Mcs(29)));
        assert_eq!(Carrier { layers: 3, ..carrier }.phy_rate(), Err(LteError::Layers(3)));
        let overheads = Overheads { headers: f64::NAN, ..Overheads::default() };
        assert!(matches!(ip_rate(&[], &overheads), Err(LteError::Share { field: "headers", .. })));
    }
}
