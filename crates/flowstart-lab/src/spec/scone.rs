//! The elements of a path that advise a rate (SCONE), as keys of its link.
//!
//! | Key | Meaning | Default |
//! |---|---|---|
//! | `scone` | the rate that the bottleneck's element advises, or a share of the link's rate | none |
//! | `scone_refresh` | how long a marked flow is left alone | every SCONE packet is marked |
//!
//! Whether a flow's ends support SCONE is the transport's: `scone=handshake` or `scone=data`.

use flowstart_core::scone::element::Config;
use flowstart_core::units::Rate;

/// Reads the element at a link of this rate from its keys; what is wrong with which key.
pub(super) fn parse<'a>(
    rate: Rate,
    raw: impl Fn(&str) -> Option<&'a str>,
) -> Result<Option<Config>, (&'static str, String)> {
    let Some(text) = raw("scone") else {
        return match raw("scone_refresh") {
            Some(_) => Err(("scone_refresh", "is for an element with scone=RATE".into())),
            None => Ok(None),
        };
    };
    let advised = match text.parse::<f64>() {
        Ok(share) if (0.001..=1000.0).contains(&share) => rate.scale(share),
        Ok(_) => return Err(("scone", format!("`{text}`: allowed is a share of 0.001 to 1000, or a rate"))),
        Err(_) => text.parse().map_err(|error| ("scone", format!("{error}, and no share such as 0.9")))?,
    };
    let mut config = Config::new(advised);
    if let Some(text) = raw("scone_refresh") {
        config.refresh = Some(text.parse().map_err(|error| ("scone_refresh", format!("`{text}`: {error}")))?);
    }
    let key = |field: &str| if field == "refresh" { "scone_refresh" } else { "scone" };
    config.validate().map_err(|error| (key(error.field), error.to_string()))?;
    Ok(Some(config))
}

/// The element in a line, for results.
pub(super) fn describe(config: &Config) -> String {
    match config.refresh {
        Some(refresh) => format!("{} every {refresh}", config.rate),
        None => config.rate.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::time::Duration;

    use super::*;

    fn read(keys: &[(&'static str, &'static str)]) -> Result<Option<Config>, (&'static str, String)> {
        parse(Rate::from_mbit(50), |key| keys.iter().find(|(name, _)| *name == key).map(|(_, value)| *value))
    }

    #[test]
    fn a_rate_or_a_share_of_the_link_is_advised() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("scone", "10mbit")]), Ok(Some(Config::new(Rate::from_mbit(10)))));
        assert_eq!(read(&[("scone", "0.5")]), Ok(Some(Config::new(Rate::from_mbit(25)))));
        let config = read(&[("scone", "1"), ("scone_refresh", "20s")]).unwrap().unwrap();
        assert_eq!(config.refresh, Some(Duration::from_millis(20_000)));
        assert_eq!(describe(&config), "50mbit every 20s");
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_what_is_allowed() {
        let error = |keys: &[(&'static str, &'static str)]| read(keys).unwrap_err();
        assert!(error(&[("scone", "fast")]).1.contains("no share such as 0.9"));
        assert!(error(&[("scone", "-1")]).1.contains("0.001 to 1000"));
        assert!(error(&[("scone", "50kbit")]).1.contains("allowed is 100kbit to"));
        assert!(error(&[("scone", "1"), ("scone_refresh", "70s")]).1.contains("67s"));
        assert_eq!(error(&[("scone_refresh", "20s")]).0, "scone_refresh");
    }
}
