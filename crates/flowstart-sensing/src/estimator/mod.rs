//! Estimates of a client's own access link, for the hint that it sends to the server.
//!
//! Reference: Rüth et al., "Blitz-starting QUIC Connections" (2019), section 3.1.
//!
//! | Client | Estimator |
//! |---|---|
//! | any, after a few transfers | [`highest_rate`] |
//! | behind a gateway that speaks UPnP IGD or TR-064 | [`gateway`] |
//! | with Wi-Fi on Linux | [`wifi`] |
//! | with LTE, if the modem reports its configuration | [`lte`] |
//!
//! [`flowstart_core::quantize`] turns an estimate into a hint that does not identify its sender.

pub mod gateway;
pub mod highest_rate;
pub mod lte;
pub mod wifi;
