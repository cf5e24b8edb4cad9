//! The rate of a Wi-Fi link, from the current modulation of its radio.
//!
//! Reference: Linux, include/uapi/linux/nl80211.h (`NL80211_CMD_GET_STATION` and its rate attributes), netlink.h and
//! genetlink.h; IEEE 802.11-2020, sections 19.5 (HT), 21.5 (VHT) and 10.23 (EDCA), IEEE 802.11ax-2021, section 27.5
//! (HE). Rüth et al., "Blitz-starting QUIC Connections" (2019), section 3.1, propose the MCS index as a client's
//! source. The kernel reports the rate at which the access point last sent to this station. Without this rate, it
//! follows from MCS, streams, width and guard interval. Framing, contention and acknowledgements take their share of
//! the air, and what is left is the rate of IP packets ([`ip_rate`]).
//!
//! Differences from the references: the share is calculated for one station that sends full aggregates alone, without
//! collisions or retransmissions and without the airtime of the transport's acknowledgements, so it is an upper bound.
//! Resource units of parts of a channel, 60 GHz and S1G are supported only if the kernel reports their rate.
//!
//! Status: worked examples from the standards' tables, recorded attributes, arbitrary bytes, and the family lookup
//! against the kernel. The whole question needs a radio and is not tested.

use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};

#[cfg(target_os = "linux")]
mod kernel;
pub mod netlink;
mod station;

#[cfg(target_os = "linux")]
pub use kernel::{WifiError, station};
pub use station::{StationRates, station_rates};

/// The generation of a physical layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generation {
    /// 802.11a, b or g, which do not aggregate.
    #[default]
    Legacy,
    /// 802.11n, Wi-Fi 4.
    Ht,
    /// 802.11ac, Wi-Fi 5.
    Vht,
    /// 802.11ax, Wi-Fi 6.
    He,
    /// 802.11be, Wi-Fi 7.
    Eht,
}

/// Width of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// 20 MHz.
    #[default]
    Mhz20,
    /// 40 MHz.
    Mhz40,
    /// 80 MHz.
    Mhz80,
    /// 160 MHz, or twice 80 MHz.
    Mhz160,
    /// 320 MHz.
    Mhz320,
}

/// Time between symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GuardInterval {
    /// 0.4 us, HT and VHT only.
    Ns400,
    /// 0.8 us.
    #[default]
    Ns800,
    /// 1.6 us, HE and EHT only.
    Ns1600,
    /// 3.2 us, HE and EHT only.
    Ns3200,
}

/// How one direction of a link is modulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modulation {
    /// Its generation.
    pub generation: Generation,
    /// Modulation and coding scheme. For HT without the streams: 0 to 7.
    pub mcs: u8,
    /// Spatial streams.
    pub streams: u8,
    /// Width of the channel.
    pub width: Width,
    /// Guard interval.
    pub guard: GuardInterval,
    /// The rate as the kernel calculated it.
    pub told: Option<Rate>,
}

impl Modulation {
    /// Bits per second of the physical layer: the kernel's value, otherwise `N_SD x N_BPSCS x R x N_SS / T_SYM`; `None`
    /// for a combination that the standards do not have.
    pub fn phy_rate(&self) -> Option<Rate> {
        self.told.or_else(|| self.calculated())
    }

    fn calculated(&self) -> Option<Rate> {
        use Generation::{Eht, He, Ht, Legacy, Vht};
        // Data subcarriers N_SD, and the duration of a symbol without its guard interval in nanoseconds.
        let (subcarriers, symbol, guard) = match self.generation {
            Legacy => return None,
            Ht | Vht => {
                let guard = match self.guard {
                    GuardInterval::Ns400 => 400,
                    GuardInterval::Ns800 => 800,
                    _ => return None,
                };
                let subcarriers = match (self.width, self.generation) {
                    (Width::Mhz20, _) => 52,
                    (Width::Mhz40, _) => 108,
                    (Width::Mhz80, Vht) => 234,
                    (Width::Mhz160, Vht) => 468,
                    _ => return None,
                };
                (subcarriers, 3200, guard)
            }
            He | Eht => {
                let guard = match self.guard {
                    GuardInterval::Ns800 => 800,
                    GuardInterval::Ns1600 => 1600,
                    GuardInterval::Ns3200 => 3200,
                    GuardInterval::Ns400 => return None,
                };
                let subcarriers = match (self.width, self.generation) {
                    (Width::Mhz20, _) => 234,
                    (Width::Mhz40, _) => 468,
                    (Width::Mhz80, _) => 980,
                    (Width::Mhz160, _) => 1960,
                    (Width::Mhz320, Eht) => 3920,
                    _ => return None,
                };
                (subcarriers, 12_800, guard)
            }
        };
        let highest = match self.generation {
            Legacy | Ht => 7,
            Vht => 9,
            He => 11,
            Eht => 13,
        };
        let (most_streams, streams) = (if self.generation == Ht { 4 } else { 8 }, self.streams);
        if self.mcs > highest || !(1..=most_streams).contains(&streams) {
            return None;
        }
        // Twelve times the bits per subcarrier and symbol, N_BPSCS x R.
        let bits = match self.mcs {
            0 => 6,
            1 => 12,
            2 => 18,
            3 => 24,
            4 => 36,
            5 => 48,
            6 => 54,
            7 => 60,
            8 => 72,
            9 => 80,
            10 => 90,
            11 => 100,
            12 => 108,
            _ => 120,
        };
        let bits_per_symbol = subcarriers * bits * u64::from(streams);
        Some(Rate::from_bits_per_sec(bits_per_symbol * 1_000_000_000 / (12 * (symbol + guard))))
    }
}

/// The share of IP packets in a physical rate: an exchange of one aggregate and its acknowledgement takes AIFS +
/// backoff + preamble + data + SIFS + acknowledgement, and carries the packets in the aggregate.
pub fn ip_rate(phy: Rate, generation: Generation, packet: Bytes) -> Rate {
    // IEEE 802.11-2020: table 9-155 (AIFSN 3 and CWmin 15 of best effort), section 17.4.4 (SIFS 16 us, slots of 9 us).
    const SIFS_NS: u64 = 16_000;
    const SLOT_NS: u64 = 9_000;
    const AIFS_NS: u64 = SIFS_NS + 3 * SLOT_NS;
    const BACKOFF_NS: u64 = 15 * SLOT_NS / 2;
    // Acknowledgement of 14 bytes and block acknowledgement of 32 at 24 Mbit/s: preamble of 20 us, symbols of 4 us with
    // 96 bits, 22 bits of service and tail (section 17.4.3).
    const ACK_NS: u64 = 20_000 + 4_000 * (14u64 * 8 + 22).div_ceil(96);
    const BLOCK_ACK_NS: u64 = 20_000 + 4_000 * (32u64 * 8 + 22).div_ceil(96);
    // QoS data header 26, LLC and SNAP 8, CCMP 16, FCS 4 bytes.
    const FRAME: u64 = 26 + 8 + 16 + 4;
    // A delimiter of 4 bytes before each frame of an aggregate, and padding to 4 (section 9.7.1).
    const DELIMITER: u64 = 4;
    // Longest PPDU, table 9-34 and section 19.4.3.
    const PPDU_MAX_NS: u64 = 5_484_000;
    if phy == Rate::ZERO || packet == Bytes::ZERO {
        return Rate::ZERO;
    }
    // Preambles for one stream: sections 17.4.3, 19.4.3, 21.4.3; 27.4.3 with one HE-LTF.
    let (preamble, window, acknowledgement) = match generation {
        Generation::Legacy => (20_000, 1, ACK_NS),
        Generation::Ht => (36_000, 64, BLOCK_ACK_NS),
        Generation::Vht => (40_000, 64, BLOCK_ACK_NS),
        Generation::He => (44_000, 256, BLOCK_ACK_NS),
        Generation::Eht => (48_000, 1024, BLOCK_ACK_NS),
    };
    let frame = match generation {
        Generation::Legacy => packet + Bytes::new(FRAME),
        _ => Bytes::new((packet + Bytes::new(FRAME + DELIMITER)).get().next_multiple_of(4)),
    };
    // The longest aggregate of HT has 65,535 bytes (IEEE 802.11-2020, section 9.4.2.55.3).
    let longest = if generation == Generation::Ht { 65_535 / frame.get() } else { u64::MAX };
    let fits = phy.amount_in(Duration::from_nanos(PPDU_MAX_NS - preamble)).get() / frame.get();
    let packets = fits.min(longest).clamp(1, window);
    let data = phy.time_for(frame * packets);
    let taken = Duration::from_nanos(AIFS_NS + BACKOFF_NS + preamble + SIFS_NS + acknowledgement) + data;
    // A preamble alone takes time.
    Rate::from_transfer(packet * packets, taken).unwrap_or(Rate::ZERO)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::netlink::{AttributeError, Message, MessageError, Messages};
    use super::station::{ATTRIBUTE_STATION, STATION_RX, STATION_TX, modulation, rate_info};
    use super::*;

    fn mbit(generation: Generation, mcs: u8, streams: u8, width: Width, guard: GuardInterval) -> f64 {
        let modulation = Modulation { generation, mcs, streams, width, guard, told: None };
        modulation.phy_rate().map_or(0.0, Rate::as_mbit)
    }

    #[test]
    fn rates_are_those_of_the_standards_tables() {
        use Generation::{Eht, He, Ht, Vht};
        use GuardInterval::{Ns400, Ns800, Ns1600};
        let close = |left: f64, right: f64| assert!((left - right).abs() < 0.06, "{left} {right}");
        close(mbit(Ht, 7, 1, Width::Mhz20, Ns800), 65.0);
        close(mbit(Ht, 7, 4, Width::Mhz40, Ns400), 600.0);
        close(mbit(Vht, 9, 2, Width::Mhz80, Ns400), 866.7);
        close(mbit(Vht, 0, 1, Width::Mhz20, Ns800), 6.5);
        close(mbit(He, 11, 2, Width::Mhz80, Ns800), 1201.0);
        close(mbit(He, 11, 1, Width::Mhz20, Ns1600), 135.4);
        close(mbit(Eht, 13, 2, Width::Mhz320, Ns800), 5764.7);
        // Combinations that do not exist.
        close(mbit(Ht, 7, 1, Width::Mhz80, Ns800), 0.0);
        close(mbit(Vht, 10, 1, Width::Mhz20, Ns800), 0.0);
        close(mbit(He, 5, 0, Width::Mhz20, Ns800), 0.0);
    }

    #[test]
    fn ip_packets_get_what_contention_and_frames_leave() {
        // VHT, 866.7 Mbit/s: 64 frames of 1560 bytes (1500 + 54 + 4, padded) take 921.6 us; 43 + 67.5 + 40 + 16 + 32 us
        // are overhead. 64 x 12,000 bits in 1120.1 us are 685.7 Mbit/s.
        let vht = ip_rate(Rate::from_bits_per_sec(866_700_000), Generation::Vht, Bytes::new(1500));
        assert!((vht.as_mbit() - 685.7).abs() < 0.2, "{}", vht.as_mbit());
        // 54 Mbit/s without aggregation: 1554 bytes take 230.2 us; 43 + 67.5 + 20 + 16 + 28 us. 12,000 bits in 404.7
        // us.
        let legacy = ip_rate(Rate::from_mbit(54), Generation::Legacy, Bytes::new(1500));
        assert!((legacy.as_mbit() - 29.65).abs() < 0.05, "{}", legacy.as_mbit());
        // 6.5 Mbit/s: only two frames fit into 5.484 ms.
        let slow = ip_rate(Rate::from_bits_per_sec(6_500_000), Generation::Ht, Bytes::new(1500));
        assert!((slow.as_mbit() - 5.96).abs() < 0.05, "{}", slow.as_mbit());
        // HT, 300 Mbit/s: 42 frames fit into 65,535 bytes and take 1747.2 us; 43 + 67.5 + 36 + 16 + 32 us are overhead.
        // 42 x 12,000 bits in 1941.7 us.
        let ht = ip_rate(Rate::from_mbit(300), Generation::Ht, Bytes::new(1500));
        assert!((ht.as_mbit() - 259.57).abs() < 0.1, "{}", ht.as_mbit());
        assert_eq!(ip_rate(Rate::ZERO, Generation::Ht, Bytes::new(1500)), Rate::ZERO);
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// An answer as kernels send it: index, address, generation, and the station's rates among other values.
    fn answer(receive: &[Vec<u8>]) -> Vec<u8> {
        let station = [
            attribute(1, &0u32.to_ne_bytes()),
            attribute(7, &[0xc8]),
            attribute(STATION_TX, &attribute(rate_info::BITRATE, &540u16.to_ne_bytes())),
            attribute(STATION_RX, &receive.concat()),
        ];
        [
            attribute(3, &3u32.to_ne_bytes()),
            attribute(6, &[2, 0, 0, 0, 0, 1]),
            attribute(ATTRIBUTE_STATION | 0x8000, &station.concat()),
        ]
        .concat()
    }

    #[test]
    fn an_answer_tells_both_directions() {
        let receive = [
            attribute(rate_info::BITRATE32, &8667u32.to_ne_bytes()),
            attribute(rate_info::BITRATE, &8667u16.to_ne_bytes()),
            attribute(rate_info::VHT_MCS, &[9]),
            attribute(rate_info::WIDTH_80, &[]),
            attribute(rate_info::VHT_NSS, &[2]),
            attribute(rate_info::SHORT_GI, &[]),
        ];
        let rates = station_rates(&answer(&receive)).unwrap();
        let receive = rates.receive.unwrap();
        assert_eq!((receive.generation, receive.mcs, receive.streams), (Generation::Vht, 9, 2));
        assert_eq!((receive.width, receive.guard), (Width::Mhz80, GuardInterval::Ns400));
        assert_eq!(receive.phy_rate(), Some(Rate::from_bits_per_sec(866_700_000)));
        assert_eq!(rates.transmit.unwrap().phy_rate(), Some(Rate::from_mbit(54)));
        // The kernel's rate and the calculated one agree.
        let calculated = Modulation { told: None, ..receive }.phy_rate().unwrap();
        assert!((calculated.as_mbit() - 866.7).abs() < 0.06);
    }

    #[test]
    fn streams_of_ht_are_in_its_index() {
        let receive = [attribute(rate_info::MCS, &[15]), attribute(rate_info::WIDTH_40, &[])];
        let receive = station_rates(&answer(&receive)).unwrap().receive.unwrap();
        assert_eq!((receive.mcs, receive.streams), (7, 2));
        // MCS 15 at 40 MHz with the long guard interval: 270 Mbit/s.
        assert_eq!(receive.phy_rate(), Some(Rate::from_mbit(270)));
    }

    #[test]
    fn what_is_wrong_with_attributes_is_told() {
        let size = AttributeError::Size { kind: rate_info::MCS, expected: 1, found: 2 };
        assert_eq!(station_rates(&answer(&[attribute(rate_info::MCS, &[1, 2])])), Err(size));
        assert_eq!(station_rates(&[1, 2, 3]), Err(AttributeError::Rest(3)));
        let claims = [200u16.to_ne_bytes(), 21u16.to_ne_bytes()].concat();
        assert_eq!(station_rates(&claims), Err(AttributeError::Length { kind: 21, claimed: 200, left: 4 }));
        let nothing = [0u16.to_ne_bytes(), 21u16.to_ne_bytes()].concat();
        assert_eq!(station_rates(&nothing), Err(AttributeError::Length { kind: 21, claimed: 0, left: 4 }));
    }

    /// A message of this type.
    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = (16 + body.len() as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn a_datagram_is_taken_apart_into_its_messages() {
        // Answers have four bytes of generic netlink before their attributes; 19 is ENODEV.
        let answer = [&[34, 1, 0, 0][..], &answer(&[])].concat();
        let datagram = [message(28, &answer), message(28, &answer[..5]), message(3, &[0; 4])].concat();
        let messages: Vec<_> = Messages(&datagram).collect();
        assert_eq!(
            messages,
            [Ok(Message::Answer(&answer[4..])), Ok(Message::Answer(&answer[4..5])), Ok(Message::Done)]
        );
        assert_eq!(Messages(&message(2, &(-19i32).to_ne_bytes())).next(), Some(Ok(Message::Error(-19))));
        let wrong = |bytes: &[u8]| Messages(bytes).collect::<Vec<_>>() == [Err(MessageError::new(bytes))];
        assert!(wrong(&[1, 2, 3]) && wrong(&message(28, &[1])) && wrong(&message(2, &[1])));
        let mut endless = message(28, &answer);
        endless[..4].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert!(wrong(&endless));
        endless[..4].copy_from_slice(&0u32.to_ne_bytes());
        assert!(wrong(&endless));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_answers_questions_of_generic_netlink() {
        let bound = Duration::from_millis(2000);
        let socket = match kernel::Socket::open(bound) {
            Ok(socket) => socket,
            Err(error) => return crate::skip(&error.to_string()),
        };
        // The controller has told its own number, 16, since it exists.
        assert_eq!(socket.family("nlctrl").unwrap(), 16);
        assert!(matches!(socket.family("flowstart"), Err(WifiError::NoFamily("flowstart"))));
        // The loopback is no radio, whatever this kernel knows of Wi-Fi.
        match station("lo", bound) {
            Ok(None) | Err(WifiError::NoFamily(_) | WifiError::Refused(_)) => {}
            other => panic!("{other:?}"),
        }
        assert!(matches!(station("no-such-radio", bound), Err(WifiError::Missing(_))));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            place in any::<prop::sample::Index>(), value in any::<u8>(),
        ) {
            let _ = station_rates(&bytes);
            let _ = modulation(&bytes);
            let receive = [attribute(rate_info::HE_MCS, &[11]), attribute(rate_info::HE_NSS, &[2])];
            let mut damaged = answer(&receive);
            let place = place.index(damaged.len());
            damaged[place] = value;
            if let Ok(rates) = station_rates(&damaged) {
                for modulation in [rates.receive, rates.transmit].into_iter().flatten() {
                    let phy = modulation.phy_rate().unwrap_or_default();
                    let _ = ip_rate(phy, modulation.generation, Bytes::new(1500));
                }
            }
            let mut message = (16 + bytes.len() as u32).to_ne_bytes().to_vec();
            message.extend([0; 12]);
            message.extend(&bytes);
            for datagram in [&bytes, &message] {
                for message in Messages(datagram) {
                    if let Ok(Message::Answer(attributes)) = message {
                        let _ = station_rates(attributes);
                    }
                }
            }
        }

        #[test]
        fn ip_packets_never_get_more_than_the_radio_has(bits in 1_000_000u64..50_000_000_000, packet in 40u64..9000) {
            for generation in [Generation::Legacy, Generation::Ht, Generation::Vht, Generation::He, Generation::Eht] {
                let phy = Rate::from_bits_per_sec(bits);
                let ip = ip_rate(phy, generation, Bytes::new(packet));
                prop_assert!(ip < phy && ip > Rate::ZERO);
            }
        }
    }
}
