//! Styles and scripts.

use std::borrow::Cow;
use std::fmt::Write;

use flowstart_report::{STYLE, cause_colours, series_colours};

/// The files that all pages need: name and content. Beside them `source.js` says where answers come from.
pub fn assets() -> [(&'static str, Cow<'static, str>); 6] {
    [
        ("style.css", STYLE.into()),
        ("ui.css", include_str!("../templates/ui.css").into()),
        ("colours.css", colours().into()),
        ("chart.js", include_str!("../templates/chart.js").into()),
        ("lab.js", include_str!("../templates/lab.js").into()),
        ("packets.js", include_str!("../templates/packets.js").into()),
    ]
}

/// The report's colours of series and of causes, as classes.
fn colours() -> String {
    let mut css = String::new();
    for (letter, colours) in [('s', series_colours()), ('c', cause_colours())] {
        for (place, [light, dark]) in colours.iter().enumerate() {
            let class = format!(".{letter}{place}");
            // Writing to a string does not fail.
            let _ = writeln!(css, "{class} {{ --colour: {light}; }}");
            let _ = writeln!(css, "@media (prefers-color-scheme: dark) {{ {class} {{ --colour: {dark}; }} }}");
        }
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_the_report_and_are_other_ones_in_the_dark() {
        let css = colours();
        assert!(css.contains(".s0 { --colour: #000000; }"), "{css}");
        assert!(css.contains("dark) { .s0 { --colour: #f0f0f0; } }"), "{css}");
        assert!(css.contains(".c9 { --colour: #f1f1f1; }"), "{css}");
    }
}
