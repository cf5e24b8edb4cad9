//! What others say, for a terminal, which would obey its control characters.

/// The text with its control characters escaped.
#[must_use]
pub fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_command_a_terminal_is_escaped() {
        assert_eq!(printable("\x1b]0;title\x07\r200 OK, 2 µs\u{9b}"), "\\u{1b}]0;title\\u{7}\\r200 OK, 2 µs\\u{9b}");
    }
}
