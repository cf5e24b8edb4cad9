//! The parameters of each scheme, in the order of `struct NAME_config`.

use flowstart_core::path::AccessTechnology;
use flowstart_core::quick_start::rate::{RateCode, RateEncoding};
use flowstart_core::startup::{
    StartupConfig, blitzstart, careful_resume, hystart_plus_plus, initial_start, jump_start, more_start, quick_start,
    search, suss,
};
use flowstart_core::time::Duration;
use flowstart_core::units::Rate;

use super::layout::Layout;
use super::{HintUse, PortError};

/// Writes the parameters of a scheme that has a port; returns which hints the scheme can use with them.
pub(super) fn write(config: &StartupConfig, to: &mut Layout) -> Result<HintUse, PortError> {
    match config {
        StartupConfig::Blitzstart(config) => blitzstart(config, to),
        StartupConfig::CarefulResume(config) => careful_resume(config, to),
        StartupConfig::HystartPlusPlus(config) => hystart_plus_plus(config, to),
        StartupConfig::InitialStart(config) => initial_start(config, to),
        StartupConfig::JumpStart(config) => jump_start(config, to),
        StartupConfig::MoreStart(config) => more_start(config, to),
        StartupConfig::QuickStart(config) => quick_start(config, to),
        StartupConfig::Search(config) => search(config, to),
        StartupConfig::Suss(config) => suss(config, to),
        other => Err(PortError::Scheme { scheme: other.name().to_owned() }),
    }
}

fn blitzstart(config: &blitzstart::Config, to: &mut Layout) -> Result<HintUse, PortError> {
    for (parameter, factor) in [
        ("dsl_factor", config.dsl_factor),
        ("docsis_factor", config.docsis_factor),
        ("wifi_factor", config.wifi_factor),
        ("3g_factor", config.third_generation_factor),
        ("lte_factor", config.lte_factor),
        ("fibre_factor", config.fibre_factor),
    ] {
        to.only(parameter, factor.is_none(), "buffer_factor, for a hint says nothing of the access technology")?;
    }
    to.only("gathered_burst", !config.gathered_burst, "false, for a hint says nothing of the access technology")?;
    to.factor(config.estimate);
    // A hint to the kernel has no access technology.
    to.factor(config.factor(AccessTechnology::Unknown));
    to.factor(if config.header_correction { config.payload_fraction } else { 1.0 });
    to.factor(config.pacing_fraction);
    to.time(config.ack_delay);
    to.rate(config.min_hint);
    to.rate(config.max_hint);
    to.number(match config.rtt {
        blitzstart::RttSource::Min => 0,
        blitzstart::RttSource::Handshake => 1,
        blitzstart::RttSource::Cached => 2,
    });
    to.switch(config.pacing);
    to.switch(config.pacing_rtt == blitzstart::PacingRtt::Launch);
    Ok(HintUse::Any)
}

fn careful_resume(config: &careful_resume::Config, to: &mut Layout) -> Result<HintUse, PortError> {
    let careful_resume::Config { iw, factor, jump, max_jump, lifetime, min_saved, pacing, beta } = config;
    to.limit(*max_jump);
    to.time(*lifetime);
    to.factor(*factor);
    to.factor(*jump);
    to.factor(*min_saved);
    to.factor(*beta);
    to.number(iw.unwrap_or(0));
    to.switch(*pacing);
    // What an earlier connection delivered in a round trip.
    Ok(HintUse::WithRtt)
}

/// L on a host that does not pace (RFC 9406, section 4.3), as the kernel.
const UNPACED_L: u32 = 8;

fn hystart_plus_plus(config: &hystart_plus_plus::Config, to: &mut Layout) -> Result<HintUse, PortError> {
    to.time(config.min_rtt_thresh);
    to.time(config.max_rtt_thresh);
    to.number(config.min_rtt_divisor);
    to.number(config.n_rtt_sample);
    to.number(config.css_growth_divisor);
    to.number(config.css_rounds);
    to.number(config.iw.unwrap_or(0));
    to.number(config.l.unwrap_or(UNPACED_L));
    to.switch(config.css_baseline == hystart_plus_plus::CssBaseline::EntryThreshold);
    Ok(HintUse::None)
}

fn initial_start(config: &initial_start::Config, to: &mut Layout) -> Result<HintUse, PortError> {
    use initial_start::WindowSource;
    to.factor(config.factor);
    to.number(config.iw);
    to.number(config.max_window);
    to.only("window", config.window != WindowSource::Oracle, "static, saved and hint")?;
    to.number(match config.window {
        WindowSource::Static | WindowSource::Oracle => 0,
        WindowSource::Saved => 1,
        WindowSource::Hint => 2,
    });
    to.switch(config.pacing);
    Ok(match config.window {
        WindowSource::Static | WindowSource::Oracle => HintUse::None,
        WindowSource::Saved => HintUse::WithRtt,
        WindowSource::Hint => HintUse::Any,
    })
}

fn more_start(config: &more_start::Config, to: &mut Layout) -> Result<HintUse, PortError> {
    use more_start::RateSource;
    to.rate(config.rate.unwrap_or(Rate::ZERO));
    to.factor(config.factor);
    let source = match config.source {
        RateSource::Any => Some(0),
        RateSource::Application => Some(1),
        RateSource::Hint => Some(2),
        RateSource::Saved => Some(3),
        RateSource::Oracle | RateSource::Interface => None,
    };
    to.only("source", source.is_some(), "any, application, hint and saved")?;
    to.number(source.unwrap_or_default());
    to.switch(config.pacing);
    Ok(match config.source {
        RateSource::Any if config.rate.is_none() => HintUse::Any,
        RateSource::Hint => HintUse::Any,
        RateSource::Saved => HintUse::WithRtt,
        _ => HintUse::None,
    })
}

fn jump_start(config: &jump_start::Config, to: &mut Layout) -> Result<HintUse, PortError> {
    let jump_start::Config { threshold, pacing, retreat, beta } = config;
    let default = jump_start::Config::default();
    to.only("retreat", *retreat == default.retreat, "half-delivered")?;
    to.only("beta", *beta == default.beta, "retreat=half-delivered, which has none")?;
    to.limit(*threshold);
    to.switch(*pacing);
    Ok(HintUse::None)
}

/// What is compared of each step of a nonce.
const COMPARED: [u32; 3] = [0, 0x2aaa_aaaa, 0x3fff_ffff];

fn quick_start(config: &quick_start::Config, to: &mut Layout) -> Result<HintUse, PortError> {
    use quick_start::{Reports, RequestKind, SsthreshAfterFailure, Verified};
    to.only("request", config.request != RequestKind::Buffers, "rate=, for the data is not known yet")?;
    to.only("encoding", config.encoding == RateEncoding::Exponential, "exponential")?;
    to.only("passes", config.passes == 1, "1")?;
    to.only("reports", config.reports != Reports::Always, "never, for segments have no room for them")?;
    to.only("after_idle", config.after_idle.is_none(), "the request of the handshake")?;
    to.only("after_move", !config.after_move, "the request of the handshake")?;
    to.only("granularity", config.granularity == Duration::ZERO, "the kernel's")?;
    let asked = Rate::from_bits_per_sec(config.rate.bits_per_sec() / u64::from(config.parallel));
    let rounded = config.encoding.round(asked, config.rounding);
    let code = RateCode::at_most(rounded).bits();
    to.only("rate", code != 0, "what is 80 kbit/s and more when it is divided and rounded")?;
    to.wide(config.header.get());
    to.number(config.iw.unwrap_or(0));
    to.number(code.into());
    to.number(COMPARED.get(config.nonce_bits as usize).copied().unwrap_or(COMPARED[2]));
    to.switch(config.ssthresh_after_failure == SsthreshAfterFailure::Reduced);
    to.switch(config.verified == Verified::CongestionAvoidance);
    Ok(HintUse::None)
}

fn search(config: &search::Config, to: &mut Layout) -> Result<HintUse, PortError> {
    use search::{AppLimited, Exit, LookBack, SkippedBins};
    let search::Config { iw, variant, window_factor, w, extra_bins, thresh, .. } = config;
    let default = search::Config::default();
    to.only("variant", *variant == search::Variant::Firefox, "firefox")?;
    to.only("w", *w == default.w, "10")?;
    to.only("extra_bins", extra_bins.is_none_or(|bins| bins == 15), "15")?;
    to.only("exit", config.exit.is_none_or(|exit| exit == Exit::ExitOnly), "exit-only")?;
    let older = config.look_back.is_none_or(|look_back| look_back == LookBack::InterpolateOlder);
    to.only("look_back", older, "interpolate-older")?;
    to.only("look_back_rtt", config.look_back_rtt == default.look_back_rtt, "current")?;
    to.only("skipped_bins", config.skipped_bins.is_none_or(|bins| bins == SkippedBins::Reset), "reset")?;
    to.only("app_limited", config.app_limited.is_none_or(|limited| limited == AppLimited::Wait), "wait")?;
    to.number((window_factor / f64::from(*w) * 1e9).round() as u32);
    to.number((thresh.unwrap_or(0.26) * 1e6).round() as u32);
    to.number(iw.unwrap_or(0));
    Ok(HintUse::None)
}

fn suss(config: &suss::Config, to: &mut Layout) -> Result<HintUse, PortError> {
    let suss::Config { iw, rounds, smallest_rtt, pacing, hystart } = config;
    to.time(*smallest_rtt);
    to.time(hystart.min_threshold);
    to.time(hystart.max_threshold);
    to.time(hystart.ack_gap);
    to.number(hystart.samples);
    to.number(hystart.low_window);
    to.number(iw.unwrap_or(0));
    to.number(*rounds);
    to.switch(*pacing);
    Ok(HintUse::None)
}
