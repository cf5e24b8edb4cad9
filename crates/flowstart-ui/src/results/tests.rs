use std::fs;

use tempfile::TempDir;

use super::*;

const MANIFEST_TEXT: &str = r#"{"version": "1", "command": ["flowstart", "compare"], "scenario": "SCENARIO",
    "directory": ".", "seed": 1, "host": "", "wall_time_s": 1.0, "unix_time_s": 1, "files": []}"#;

fn folder_with(files: &[(&str, &str)]) -> (TempDir, Folder) {
    let outer = TempDir::new().unwrap();
    let root = outer.path().join("results");
    for (file, text) in files {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    fs::write(outer.path().join("secret"), "secret").unwrap();
    let folder = Folder::open(&root).unwrap();
    (outer, folder)
}

#[test]
fn results_and_records_are_found_at_any_depth_up_to_three() {
    let manifest = MANIFEST_TEXT.replace("SCENARIO", "title = 'Mine'\\nlink = ['lte']\\nscheme = ['slow-start']");
    let (_outer, folder) = folder_with(&[
        ("a/manifest.json", &manifest),
        ("b/c/d/manifest.json", &manifest),
        ("b/c/d/e/f/manifest.json", &manifest),
        ("b/c/x/y/manifest.json", &manifest),
        ("r/record.toml", "command = \"flowstart run four-startups --json\""),
        ("empty/file", ""),
        (".hidden/manifest.json", &manifest),
    ]);
    let list = folder.list();
    let names: Vec<&str> = list.entries.iter().map(|entry| &*entry.name).collect();
    assert_eq!((names, list.is_cut), (vec!["a", "b/c/d", "r"], false));
    assert_eq!((&*list.entries[0].title, &*list.entries[0].command), ("Mine", "flowstart compare"));
    assert_eq!((list.entries[2].kind, &*list.entries[2].command), (Kind::Record, "flowstart run four-startups --json"));
}

#[test]
fn no_name_leads_out_of_the_folder() {
    let (outer, folder) = folder_with(&[("a/manifest.json", "{}"), ("a/report.html", "report")]);
    assert_eq!(folder.file("a", REPORT).unwrap().unwrap(), b"report");
    assert_eq!(folder.file("a", "summary.json").unwrap(), None);
    let absolute = outer.path().join("secret").display().to_string();
    for name in ["..", "a/..", "a/../..", ".", "", "/etc", &absolute, "a\\..", "a/./b", "a\0", "../results/a"] {
        assert!(folder.file(name, REPORT).is_err(), "{name}");
        assert!(folder.kind(name).is_err(), "{name}");
    }
    for file in ["../../secret", "..", "secret", "/etc/passwd", ""] {
        let told = folder.file("a", file).unwrap_err().to_string();
        assert!(told.contains("allowed are"), "{told}");
    }
}

#[cfg(unix)]
#[test]
fn no_link_of_the_file_system_leads_out_of_the_folder() {
    use std::os::unix::fs::symlink;

    let (outer, folder) = folder_with(&[("a/manifest.json", "{}"), ("b/report.html", "report")]);
    let root = outer.path().join("results");
    symlink(outer.path().join("secret"), root.join("a/report.html")).unwrap();
    symlink(outer.path(), root.join("out")).unwrap();
    symlink(root.join("b"), root.join("within")).unwrap();
    let told = folder.file("a", REPORT).unwrap_err().to_string();
    assert!(told.contains("leads out of the folder"), "{told}");
    assert!(folder.file("out", REPORT).is_err() && folder.file("out/results/a", MANIFEST).is_ok());
    assert_eq!(folder.file("within", REPORT).unwrap().unwrap(), b"report");
    // A pipe has no end.
    fs::remove_file(root.join("a/report.html")).unwrap();
    symlink("/dev/zero", root.join("a/report.html")).unwrap();
    assert!(folder.file("a", REPORT).is_err());
}

#[test]
fn a_manifest_cannot_make_this_program_read_a_recording() {
    let scenario = "link = ['trace=/etc/passwd,rtt=40ms']\\nsize = ['2MB']\\nscheme = ['slow-start']";
    let (_outer, folder) = folder_with(&[("a/manifest.json", &MANIFEST_TEXT.replace("SCENARIO", scenario))]);
    let told = folder.stored("a").unwrap_err().to_string();
    assert!(told.contains("recordings"), "{told}");
}

#[test]
fn a_record_is_a_table_or_a_text() {
    let cells = "id,fct_ms\nlte/taildrop,12.5\n";
    let head = "command = \"flowstart run x --json\"\ndate = \"2026-01-01\"\n";
    let (_outer, folder) = folder_with(&[
        ("a/record.toml", head),
        ("a/cells.csv", cells),
        ("b/record.toml", "command = ["),
        ("c/record.toml", head),
        ("c/output.txt", "42"),
    ]);
    let record = folder.record("a").unwrap();
    assert_eq!((record.header.len(), &*record.rows[0][1], &*record.facts[1].1), (2, "12.5", "2026-01-01"));
    let told = folder.record("b").unwrap_err().to_string();
    assert!(told.contains("`b`: record.toml"), "{told}");
    assert_eq!(folder.record("c").unwrap().text, "42");
}

#[test]
fn what_is_no_folder_is_refused() {
    let told = Folder::open(Path::new("/no/such/folder")).unwrap_err().to_string();
    assert!(told.contains("/no/such/folder"), "{told}");
    assert!(Folder::open(Path::new("Cargo.toml")).unwrap_err().to_string().contains("is no folder"));
}
