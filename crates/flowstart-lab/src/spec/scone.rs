//! The elements of a path that advise a rate (SCONE), as keys of its link: `lte,scone=0.9,scone_refresh=20s`.
//!
//! The transport decides whether a flow's ends support SCONE: `scone=handshake` or `scone=data`.

use flowstart_core::scone::element::Config;
use flowstart_core::units::Rate;

use super::form::Key;
use super::{InputError, Spec};

/// The keys.
pub(super) const KEYS: &[Key] = &[
    Key::new(
        "scone",
        "a rate, or 0.001 to 1000",
        "rate that the bottleneck advises, or its share of the link's",
        "none",
    )
    .such_as("scone=0.9"),
    Key::new(
        "scone_refresh",
        "a time",
        "time without further marks after a mark of a flow",
        "marks every SCONE packet",
    )
    .such_as("scone=0.9,scone_refresh=20s"),
];

/// Reads the element at a link of this rate from its keys. A link of unknown rate has none.
pub(super) fn read(spec: &mut Spec<'_>, rate: Option<Rate>) -> Result<Option<Config>, InputError> {
    let (advised, refresh) = (spec.value("scone")?, spec.read("scone_refresh")?);
    let Some(text) = advised else {
        return match refresh {
            Some(_) => Err(spec.refused_value("scone_refresh", "is for an element with scone=RATE")),
            None => Ok(None),
        };
    };
    let Some(rate) = rate else { return Ok(None) };
    let advised = match text.parse::<f64>() {
        Ok(share) if (0.001..=1000.0).contains(&share) => rate.scale(share),
        Ok(_) => return Err(spec.refused_value("scone", "allowed is a share of 0.001 to 1000, or a rate")),
        Err(_) => text
            .parse()
            .map_err(|error| spec.refused_value("scone", format_args!("{error}, and no share such as 0.9")))?,
    };
    let config = Config { refresh, ..Config::new(advised) };
    let key = |field: &str| if field == "refresh" { "scone_refresh" } else { "scone" };
    config.validate().map_err(|error| spec.refused_value(key(error.field), error))?;
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

    fn element(text: &str) -> Result<Option<Config>, InputError> {
        let mut spec = Spec::parse("--link", text)?;
        let element = read(&mut spec, Some(Rate::from_mbit(50)))?;
        spec.finish().map(|()| element)
    }

    #[test]
    fn a_rate_or_a_share_of_the_link_is_advised() {
        let mut none = Spec::parse("--link", "rate=50mbit").unwrap();
        assert_eq!(read(&mut none, None), Ok(None));
        assert_eq!(element("scone=10mbit"), Ok(Some(Config::new(Rate::from_mbit(10)))));
        assert_eq!(element("scone=0.5"), Ok(Some(Config::new(Rate::from_mbit(25)))));
        let config = element("scone=1,scone_refresh=20s").unwrap().unwrap();
        assert_eq!(config.refresh, Some(Duration::from_millis(20_000)));
        assert_eq!(describe(&config), "50mbit every 20s");
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_what_is_allowed() {
        for (keys, key, problem) in [
            ("scone=fast", "scone: ", "no share such as 0.9"),
            ("scone=-1", "scone `-1`", "0.001 to 1000"),
            ("scone=50kbit", "scone `50kbit`", "allowed is 100kbit to"),
            ("scone=1,scone_refresh=70s", "scone_refresh `70s`", "67s"),
            ("scone_refresh=20s", "scone_refresh", "is for an element"),
        ] {
            let error = element(keys).unwrap_err();
            assert!(error.problem.starts_with(key) && error.problem.contains(problem), "{keys}: {error}");
        }
    }
}
