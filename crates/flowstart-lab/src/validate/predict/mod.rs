//! What is asked of Predict, and what it does.

pub mod grid;
