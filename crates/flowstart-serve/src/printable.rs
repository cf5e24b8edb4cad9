//! What others say, for a terminal, which would obey its control characters.

/// The text with its control characters escaped.
#[must_use]
pub fn printable(text: &str) -> String {
    // What turns the order of letters around shows another text than the one that is there.
    let turns =
        |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let shown = |c: char| if c.is_control() || turns(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_command_a_terminal_is_escaped() {
        assert_eq!(printable("\x1b]0;title\x07\r200 OK, 2 µs\u{9b}"), "\\u{1b}]0;title\\u{7}\\r200 OK, 2 µs\\u{9b}");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
    }
}
