//! libFuzzer's program for all targets; the environment variable `FUZZ_TARGET` says which one.

#![no_main]

mod properties;

use std::sync::OnceLock;

/// The property of this run.
static PROPERTY: OnceLock<fn(&[u8]) -> bool> = OnceLock::new();

fn choose() -> fn(&[u8]) -> bool {
    let wanted = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let found = properties::ALL.iter().find(|(name, _)| *name == wanted);
    let Some((_, property)) = found else {
        let names: Vec<_> = properties::ALL.iter().map(|(name, _)| *name).collect();
        eprintln!("FUZZ_TARGET `{wanted}`: no such target; use one of {}", names.join(" "));
        std::process::exit(2);
    };
    *property
}

libfuzzer_sys::fuzz_target!(init: { PROPERTY.get_or_init(choose); }, |data: &[u8]| {
    PROPERTY.get_or_init(choose)(data);
});
