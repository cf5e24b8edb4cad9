//! Texts of the repository: links lead somewhere, and the first page stays short.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that cannot be set up fails")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Markdown file below a folder, without what is built and what is hidden.
fn texts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() && !name.starts_with('.') && !["target", "results"].contains(&&*name) {
            found.extend(texts(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found
}

#[test]
fn links_between_files_lead_somewhere() {
    let mut broken = Vec::new();
    for text in texts(&root()) {
        let content = fs::read_to_string(&text).unwrap();
        for link in content.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            let file = link.split('#').next().unwrap();
            let is_file = !file.is_empty() && !file.contains("://") && !file.contains(char::is_whitespace);
            if is_file && !text.parent().unwrap().join(file).exists() {
                broken.push(format!("{}: {link}", text.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_first_page_has_at_most_120_lines() {
    let lines = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= 120, "README.md has {lines} lines");
}

/// What texts call a file: words in backticks with a slash that end as sources do.
fn named_files(content: &str) -> impl Iterator<Item = &str> {
    let words = content.split('`').skip(1).step_by(2);
    words.filter(|word| word.contains('/') && (word.ends_with(".rs") || word.ends_with(".toml")))
}

#[test]
fn files_that_texts_name_are_there() {
    let root = root().canonicalize().unwrap();
    let files: Vec<String> = ["crates", "fuzz", "record", "scenarios", "validation"]
        .into_iter()
        .flat_map(|folder| files_below(&root.join(folder)))
        .map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned())
        .collect();
    let mut missing = Vec::new();
    for text in texts(&root) {
        let content = fs::read_to_string(&text).unwrap();
        for name in named_files(&content).filter(|name| !name.contains(['<', '*', '$', ' '])) {
            let name = name.trim_start_matches("./").trim_start_matches("../");
            if !files.iter().any(|file| file == name || file.ends_with(&format!("/{name}"))) {
                missing.push(format!("{}: {name}", text.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// A claim whose test was renamed or is gone would stand without one.
#[test]
fn tests_that_the_page_on_security_names_are_there() {
    let files = files_below(&root().join("crates"));
    let sources: Vec<String> = files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
    let page = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| It tries"));
    let tests = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    let names: Vec<&str> = tests.flat_map(|names| names.split('`').skip(1).step_by(2)).collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        assert!(sources.iter().any(|source| source.contains(&format!("fn {name}("))), "{name} is no test");
    }
}

/// Every file below a folder, without what is built.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| match path.is_dir() {
        true if path.ends_with("target") => Vec::new(),
        true => files_below(&path),
        false => vec![path],
    };
    paths.flat_map(below).collect()
}
