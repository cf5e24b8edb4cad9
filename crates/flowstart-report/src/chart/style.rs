//! Series are told apart by colour, dash and shape.

use serde_json::{Value, json};

/// Okabe and Ito's colours, distinguishable with every kind of colour vision. Yellow is left out because it is too
/// pale on white.
pub(super) const COLOURS: [&str; 7] = ["#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
pub(super) const DASHES: [&[u32]; 6] = [&[1, 0], &[7, 3], &[2, 2], &[9, 3, 2, 3], &[4, 2], &[12, 3, 2, 3, 2, 3]];
pub(super) const SHAPES: [&str; 8] =
    ["circle", "triangle-up", "square", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left"];

/// The measured flow, other flows, and things that are neither.
pub(super) const MEASURED: &str = COLOURS[1];
pub(super) const OTHER: &str = COLOURS[2];
pub(super) const NEUTRAL: &str = "#555555";

/// Colour, dash and shape of the series with this index. 7 x 6 x 8 differ from each other longer than anyone can read.
pub(super) fn style(index: usize) -> (&'static str, &'static [u32], &'static str) {
    (COLOURS[index % COLOURS.len()], DASHES[index % DASHES.len()], SHAPES[index % SHAPES.len()])
}

/// Colour scale over series names, shared by every encoding of the same series.
pub(super) fn colours(names: &[String]) -> Value {
    json!({"domain": names, "range": (0..names.len()).map(|i| style(i).0).collect::<Vec<_>>()})
}

pub(super) fn dashes(names: &[String]) -> Value {
    json!({"domain": names, "range": (0..names.len()).map(|i| style(i).1).collect::<Vec<_>>()})
}

pub(super) fn shapes(names: &[String]) -> Value {
    json!({"domain": names, "range": (0..names.len()).map(|i| style(i).2).collect::<Vec<_>>()})
}

/// What each colour of a light page becomes on a dark one.
const DARK: &str = include_str!("../templates/dark.json");

/// Colours, each on a light and on a dark page.
pub(super) fn on_both(colours: &[&str]) -> Vec<[String; 2]> {
    let dark: std::collections::BTreeMap<String, String> = serde_json::from_str(DARK).unwrap_or_default();
    let both = |colour: &&str| {
        let light = colour.to_ascii_lowercase();
        [light.clone(), dark.get(&light).cloned().unwrap_or(light)]
    };
    colours.iter().map(both).collect()
}

/// The colours of series, in their order, each on a light and on a dark page.
pub fn series_colours() -> Vec<[String; 2]> {
    on_both(&COLOURS)
}
