//! The header says what the library does: it is made of the library's sources.

use std::path::Path;

/// The header as the sources have it, without the sections on safety: its first comment says all of that at once.
fn header() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("a configuration");
    let sources = ["layout.rs", "boundary.rs"].map(|file| folder.join("src").join(file));
    let builder = sources.into_iter().fold(cbindgen::Builder::new().with_config(config), cbindgen::Builder::with_src);
    let mut text = Vec::new();
    builder.generate().expect("sources that can be read").write(&mut text);
    let text = String::from_utf8(text).expect("UTF-8");
    let mut parts = text.split("//\n// # Safety\n");
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let declaration = part.lines().skip_while(|line| line.starts_with("//"));
        declaration.for_each(|line| made.extend([line, "\n"]));
    }
    made
}

#[test]
fn the_header_is_that_of_the_sources() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/flowstart.h");
    let made = header();
    if std::env::var_os("WRITE_HEADER").is_some() {
        std::fs::write(&file, &made).expect("a folder that can be written");
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == made, "include/flowstart.h is not that of the sources: run this test with WRITE_HEADER=1");
}

#[test]
fn lines_of_the_header_have_at_most_120_columns() {
    for (number, line) in (1..).zip(header().lines()) {
        assert!(line.chars().count() <= 120, "include/flowstart.h:{number}: {line}");
    }
}
