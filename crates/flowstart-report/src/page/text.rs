//! Text of the user becomes sentences and paragraphs.

/// The title, or what stands in its place where there is none.
pub(super) fn or_untitled(title: &str) -> &str {
    if title.is_empty() { "flowstart report" } else { title }
}

/// Sentences in which a number and its unit stay on one line, however narrow the screen.
pub(super) fn sentences(answer: &[String]) -> Vec<String> {
    let units = [" %", " ms", " Mbit", " MB", " KB"];
    let kept =
        |text: &String| units.iter().fold(text.clone(), |text, unit| text.replace(unit, &unit.replace(' ', "\u{a0}")));
    answer.iter().map(kept).collect()
}

/// The paragraphs of a text, which blank lines separate.
pub(super) fn paragraphs(text: Option<&str>) -> Vec<String> {
    let text = text.unwrap_or_default().replace("\r\n", "\n");
    text.split("\n\n").map(str::trim).filter(|p| !p.is_empty()).map(str::to_owned).collect()
}
