//! The smallest setting that shows the same: as much as possible is plain, and numbers have few digits.

use super::dimension::Dimension;
use super::space::{Point, Space};

/// The part of what is bad that the smallest setting still has.
const KEPT: f64 = 0.9;
/// Passes over the dimensions: what one makes plain may let another become plain.
const PASSES: u32 = 2;

/// Most settings that are tried on the way.
pub(super) fn most_steps(space: &Space) -> usize {
    // A value that no simpler one equals.
    let steps = |dimension: &Dimension| dimension.simpler(f64::MAX).len();
    PASSES as usize * space.dimensions().iter().map(steps).sum::<usize>()
}

/// Makes one dimension after the other plainer as long as `excess` of the setting stays near `least`, what the setting
/// `from` has. What is declared last goes first: a link always has a rate.
pub(super) fn smallest<E>(
    space: &Space,
    from: Point,
    least: f64,
    mut excess: impl FnMut(&Point) -> Result<Option<f64>, E>,
) -> Result<Point, E> {
    let mut point = from;
    let plain = space.plain();
    for _ in 0..PASSES {
        for place in (0..point.len()).rev() {
            if !space.matters(&point, place) {
                point[place] = plain[place];
                continue;
            }
            for simpler in space.dimensions()[place].simpler(point[place]) {
                let mut candidate = point.clone();
                candidate[place] = simpler;
                if excess(&candidate)?.is_some_and(|excess| excess >= KEPT * least) {
                    point = candidate;
                    break;
                }
            }
        }
    }
    Ok(point)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::worst::space::Question;

    #[test]
    fn only_what_matters_stays_special() {
        let question = Question {
            scheme: "blitzstart".to_owned(),
            against: vec!["slow-start".to_owned()],
            transport: "model-quic".to_owned(),
            avoidance: None,
            link_options: None,
        };
        let (space, _) = Space::new(&question, &[]).unwrap();
        let at = |name: &str| space.dimensions().iter().position(|one| one.name() == name).unwrap();
        let mut from = space.plain();
        for (name, value) in
            [("rate", 12_300_000.0), ("buffer", 0.234), ("aqm", 3.0), ("knowledge", 1.0), ("hint", 34.5), ("acks", 2.0)]
        {
            from[at(name)] = value;
        }
        // It is bad where a false hint meets a small buffer.
        let excess = |point: &Point| {
            let is_bad = point[at("knowledge")] == 1.0 && point[at("hint")] >= 30.0 && point[at("buffer")] < 0.5;
            Ok::<_, Infallible>(Some(if is_bad { 1.0 } else { 0.0 }))
        };
        let Ok(found) = smallest(&space, from, 1.0, excess);
        let mut expected = space.plain();
        for (name, value) in [("rate", 10_000_000.0), ("buffer", 0.2), ("knowledge", 1.0), ("hint", 30.0)] {
            expected[at(name)] = value;
        }
        assert_eq!(found, expected);
    }
}
