//! What the standard library and serde say of a value that they cannot read, as what is allowed.

use alloc::format;
use alloc::string::{String, ToString};

const WHOLE: &str = "a whole number from 0 on";
const NUMBER: &str = "a number";
const TRUTH: &str = "true or false";

/// What would be allowed in place of a text that the standard library could not read. `None`: the message is somebody
/// else's.
pub(super) fn of_text(message: &str) -> Option<&'static str> {
    match message {
        "invalid digit found in string"
        | "cannot parse integer from empty string"
        | "number too large to fit in target type"
        | "number too small to fit in target type"
        | "number would be zero for non-zero type" => Some(WHOLE),
        "invalid float literal" | "cannot parse float from empty string" => Some(NUMBER),
        "provided string was not `true` or `false`" => Some(TRUTH),
        _ => None,
    }
}

/// What would be allowed in place of a value whose type serde did not expect. `None`: the message is about something
/// else.
pub fn of_serde(message: &str) -> Option<String> {
    let (_, expected) = unexpected(message)?;
    Some(match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => WHOLE.to_string(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_string(),
        "f32" | "f64" => NUMBER.to_string(),
        "a string" => "a text".to_string(),
        "a sequence" => "a list, as in [\"a\", \"b\"]".to_string(),
        "a boolean" | "bool" => TRUTH.to_string(),
        other => other.to_string(),
    })
}

/// A message of serde with what is allowed in place of a type of Rust. Other messages stay as they are.
pub fn plain(message: &str) -> String {
    match (unexpected(message), of_serde(message)) {
        (Some((found, _)), Some(allowed)) => format!("{found}: allowed is {allowed}"),
        _ => message.to_string(),
    }
}

/// What serde found and what it expected.
fn unexpected(message: &str) -> Option<(&str, &str)> {
    let rest = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))?;
    rest.rsplit_once(", expected ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told_in_words() {
        assert_eq!(plain("invalid type: integer `0`, expected a string"), "integer `0`: allowed is a text");
        let told = plain("invalid value: integer `-1`, expected u32");
        assert_eq!(told, "integer `-1`: allowed is a whole number from 0 on");
        assert_eq!(of_serde("invalid type: string \"a, expected b\", expected f64").as_deref(), Some("a number"));
        assert_eq!(plain("unknown field `x`, expected `y`"), "unknown field `x`, expected `y`");
    }

    #[test]
    fn the_standard_librarys_messages_are_known() {
        let told = |error: &dyn core::fmt::Display| of_text(&error.to_string());
        for text in ["", "x", "-1", "2.5", "99999999999"] {
            assert_eq!(told(&text.parse::<u32>().unwrap_err()), Some(WHOLE), "{text}");
        }
        for text in ["", "x"] {
            assert_eq!(told(&text.parse::<f64>().unwrap_err()), Some(NUMBER), "{text}");
        }
        assert_eq!(told(&"yes".parse::<bool>().unwrap_err()), Some(TRUTH));
        assert_eq!(of_text("`x` is not a rate"), None);
    }
}
