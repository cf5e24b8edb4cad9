//! The program that writes the files.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::process::Command;

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_flowstart-site"))
}

#[test]
fn it_writes_a_folder_and_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("some/site");
    let wrote = program().arg(&site).output().unwrap();
    assert!(wrote.status.success() && wrote.stdout.is_empty() && wrote.stderr.is_empty(), "{wrote:?}");
    assert!(site.join("index.html").exists() && site.join("worker.js").exists());
    // Again, over what is there.
    assert!(program().arg(&site).status().unwrap().success());
}

#[test]
fn without_one_folder_it_says_how_it_is_used() {
    for arguments in [&[][..], &["one", "two"]] {
        let told = program().args(arguments).output().unwrap();
        assert_eq!((told.status.code(), &*told.stdout), (Some(2), &b""[..]));
        assert!(String::from_utf8_lossy(&told.stderr).contains("usage: flowstart-site FOLDER"));
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let told = program().arg(file.path().join("site")).output().unwrap();
    assert_eq!(told.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&told.stderr).starts_with("error: `"), "{told:?}");
}
