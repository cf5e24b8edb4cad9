//! What packages are made of: what `scripts/install` lays down, what `scripts/release` sets, and crates that need
//! nothing outside of their folder. `scripts/packages` makes and tries the packages themselves.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What a program that ended well has written.
fn stdout(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Whether a program is installed that a test needs; with CI=true it has to be.
fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    assert!(found || std::env::var("CI").as_deref() != Ok("true"), "{program} is not installed");
    found
}

fn program() -> PathBuf {
    assert_cmd::cargo::cargo_bin("flowstart")
}

/// The long options that a short help lists, a line each.
fn options(help: &str) -> BTreeSet<&str> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    // What they do stands behind two spaces.
    let words = lines.filter_map(|line| line.split("  ").next()).flat_map(|names| names.split([' ', ',', '[', '=']));
    words.filter_map(|word| word.strip_prefix("--")).collect()
}

#[test]
fn an_installation_has_every_option_in_the_manual_and_the_completions() {
    let folder = TempDir::new().unwrap();
    let built = program().parent().unwrap().to_owned();
    stdout(Command::new(root().join("scripts/install")).arg(built).arg("/usr").arg(folder.path()));
    let usr = folder.path().join("usr");
    let version = stdout(Command::new(usr.join("bin/flowstart")).arg("--version"));
    assert_eq!(version, format!("flowstart {}\n", env!("CARGO_PKG_VERSION")));
    let share = |file: &str| fs::read_to_string(usr.join("share").join(file)).unwrap();
    let bash = share("bash-completion/completions/flowstart");
    let zsh = share("zsh/site-functions/_flowstart");
    let fish = share("fish/vendor_completions.d/flowstart.fish");
    let help = stdout(Command::new(program()).arg("--help"));
    let commands = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let commands: Vec<&str> = commands
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.starts_with(char::is_alphabetic))
        .map(|line| line.split(' ').next().unwrap())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let page = share(&format!("man/man1/flowstart-{command}.1")).replace("\\-", "-");
        let help = stdout(Command::new(program()).args([command, "-h"]));
        let options = options(&help);
        assert!(options.contains("help"), "{command}: {help}");
        for option in options {
            assert!(page.contains(&format!("--{option}")), "the manual of {command}: --{option}");
            assert!(bash.contains(&format!("--{option}")), "bash, {command}: --{option}");
            assert!(zsh.contains(&format!("--{option}")), "zsh, {command}: --{option}");
            assert!(fish.contains(&format!(" -l {option}")), "fish, {command}: --{option}");
        }
    }
    for text in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        assert_eq!(share(&format!("doc/flowstart/{text}")), fs::read_to_string(root().join(text)).unwrap());
    }
    let refused = Command::new(root().join("scripts/install")).args([".", "usr"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("begins with /"), "{refused:?}");
}

/// Copies a folder with what is below it; links are followed.
fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
            if entry.file_name() != "target" {
                copy(&entry.path(), &to.join(entry.file_name()));
            }
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}

/// A repository with what a release changes and with what cargo needs for that.
fn repository() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("scripts")).unwrap();
    for part in ["Cargo.toml", "Cargo.lock", "CHANGELOG.md", "crates", "fuzz", "scripts/release"] {
        copy(&root().join(part), &folder.path().join(part));
    }
    git(folder.path(), &["init", "--quiet"]);
    commit(folder.path());
    folder
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let who = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"];
    stdout(Command::new("git").current_dir(folder).args(who).args(arguments))
}

fn commit(folder: &Path) {
    git(folder, &["add", "--all"]);
    git(folder, &["commit", "--quiet", "--message", "all"]);
}

fn release(folder: &Path, version: &str) -> Output {
    // What cargo needs to know of registries it knows from building this test.
    let mut command = Command::new(folder.join("scripts/release"));
    command.arg(version).current_dir(folder).env("CARGO_NET_OFFLINE", "true").output().unwrap()
}

/// The version behind the one of this build.
fn next() -> String {
    let minor: u64 = env!("CARGO_PKG_VERSION_MINOR").parse().unwrap();
    format!("{}.{}.0", env!("CARGO_PKG_VERSION_MAJOR"), minor + 1)
}

#[test]
fn a_release_sets_the_version_everywhere_and_dates_the_changelog() {
    if !is_installed("git") || !is_installed("python3") {
        return;
    }
    let (repository, next) = (repository(), next());
    let folder = repository.path();
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
    // There is something to release, whatever this tree has.
    let changelog = read("CHANGELOG.md");
    let (title, entries) = changelog.split_once("## [Unreleased]\n").unwrap();
    fs::write(folder.join("CHANGELOG.md"), format!("{title}## [Unreleased]\n\n- Something new.\n{entries}")).unwrap();
    commit(folder);
    let told = release(folder, &next);
    assert!(told.status.success(), "{told:?}");
    assert!(String::from_utf8_lossy(&told.stdout).contains(&format!("git tag --annotate v{next}")), "{told:?}");

    let dated = read("CHANGELOG.md");
    let (_, rest) = dated.split_once(&format!("## [Unreleased]\n\n## [{next}] - 20")).unwrap();
    assert!(rest["26-01-01\n".len()..].starts_with("\n- Something new.\n"), "{rest}");
    assert!(dated.ends_with(entries));
    let cargo: toml::Table = read("Cargo.toml").parse().unwrap();
    assert_eq!(cargo["workspace"]["package"]["version"].as_str(), Some(&*next));
    for (name, dependency) in cargo["workspace"]["dependencies"].as_table().unwrap() {
        if dependency.get("path").is_some() {
            assert_eq!(dependency["version"].as_str(), Some(&*next), "{name}");
        }
    }
    for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
        let packages: toml::Table = read(lock).parse().unwrap();
        let packages = packages["package"].as_array().unwrap();
        let own = packages.iter().filter(|package| package["name"].as_str().unwrap().starts_with("flowstart"));
        let versions: BTreeSet<&str> = own
            .filter(|one| one["name"].as_str() != Some("flowstart-fuzz"))
            .filter_map(|one| one["version"].as_str())
            .collect();
        assert_eq!(versions, BTreeSet::from([&*next]), "{lock}");
    }
    // Nothing else changes: as many lines go as come, and each of them has a version.
    let changed = git(folder, &["diff", "--unified=0", "--", ":!CHANGELOG.md"]);
    let lines = |sign: &str| -> Vec<String> {
        let lines = changed.lines().filter_map(|line| line.strip_prefix(sign));
        lines.filter(|line| !line.starts_with(sign)).map(str::to_owned).collect()
    };
    let old: Vec<String> = lines("-").iter().map(|line| line.replace(env!("CARGO_PKG_VERSION"), &next)).collect();
    assert_eq!(old, lines("+"));
    let names = git(folder, &["diff", "--name-only"]);
    let files = ["CHANGELOG.md", "Cargo.lock", "Cargo.toml", "crates/flowstart-capi/Cargo.toml", "fuzz/Cargo.lock"];
    assert_eq!(names.lines().collect::<Vec<_>>(), files);
}

#[test]
fn a_release_is_refused_where_it_would_be_wrong_and_then_nothing_changes() {
    if !is_installed("git") || !is_installed("python3") {
        return;
    }
    let (repository, next) = (repository(), next());
    let folder = repository.path();
    let refused = |version: &str, reason: &str| {
        let before = git(folder, &["diff"]);
        let told = release(folder, version);
        assert_eq!(told.status.code(), Some(2), "{version}: {told:?}");
        assert!(String::from_utf8_lossy(&told.stderr).contains(reason), "{version}, {reason}: {told:?}");
        assert_eq!(git(folder, &["diff"]), before, "{version}");
    };
    let changelog = |text: &str| {
        fs::write(folder.join("CHANGELOG.md"), text).unwrap();
        commit(folder);
    };
    for version in ["1", "v9.0.0", "9.0", "9.0.0-rc.1", "9.0.00", "", "9.0.0\n"] {
        refused(version, "allowed are three numbers");
    }
    refused("0.0.9", "allowed is one from");
    changelog(&format!("# Changelog\n\n## [Unreleased]\n\n- New.\n\n## [{next}] - 2026-01-01\n\n- Old.\n"));
    refused(&next, &format!("allowed is one above {next}"));
    changelog("# Changelog\n\n## [Unreleased]\n\n### Added\n\n## [0.0.1] - 2026-01-01\n\n- Old.\n");
    refused(&next, "nothing stands below");
    changelog("# Changelog\n\n## [0.0.1] - 2026-01-01\n\n- Old.\n");
    refused(&next, "'## [Unreleased]' is missing");
    changelog("# Changelog\n\n## [Unreleased]\n\n- New.\n");
    fs::write(folder.join("CHANGELOG.md"), "# Changelog\n\n## [Unreleased]\n\n- Newer.\n").unwrap();
    refused(&next, "the tree has changes");
}

/// The paths that a source includes.
fn included(source: &str) -> impl Iterator<Item = &str> {
    let calls = ["include_str!(\"", "include_bytes!(\"", "include!(\""].into_iter();
    calls.flat_map(|call| source.split(call).skip(1)).filter_map(|rest| rest.split('"').next())
}

/// A registry gets a crate's folder alone.
#[test]
fn what_a_crate_includes_is_in_its_folder() {
    let (mut problems, mut count) = (Vec::new(), 0);
    for own in fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()) {
        let mut sources = vec![own.join("build.rs")];
        let mut folders = vec![own.join("src")];
        while let Some(folder) = folders.pop().filter(|folder| folder.is_dir()) {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() { folders.push(path) } else { sources.push(path) }
            }
        }
        for file in sources.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs")) {
            let Ok(source) = fs::read_to_string(file) else { continue };
            let place = file.parent().unwrap().strip_prefix(&own).unwrap();
            for path in included(&source) {
                count += 1;
                // How many folders below the crate's own, on the way: never above.
                let whole = place.join(path);
                let depths = whole.components().scan(0_i32, |depth, part| {
                    *depth += if part == Component::ParentDir { -1 } else { 1 };
                    Some(*depth)
                });
                if depths.min().is_some_and(|least| least < 0) {
                    problems.push(format!("{}: {path}", file.display()));
                }
            }
        }
    }
    assert!(problems.is_empty(), "outside of the crate:\n{}", problems.join("\n"));
    assert!(count > 50, "only {count} files are included");
}

/// What a crate's build script looks for above the crates is made part of its package.
#[test]
fn what_a_build_script_finds_in_the_repository_is_packaged() {
    let script = fs::read_to_string(root().join("scripts/packages")).unwrap();
    let mut links = 0;
    for own in fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(build) = fs::read_to_string(own.join("build.rs")) else { continue };
        let name = own.file_name().unwrap().to_str().unwrap();
        for folder in build.split("own.join(\"../../").skip(1).filter_map(|rest| rest.split('"').next()) {
            let link = format!("ln -sfn ../../{folder} crates/{name}/{folder}\n");
            assert!(script.contains(&link), "scripts/packages lacks: {link}");
            links += 1;
        }
    }
    assert_eq!(links, 2, "scenarios and reference data");
}

/// A crate's manifest, and its folder.
fn manifest(name: &str) -> (toml::Table, PathBuf) {
    let folder = root().join("crates").join(name);
    (fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap(), folder)
}

#[test]
fn packages_name_files_and_versions_that_there_are() {
    let version = env!("CARGO_PKG_VERSION");
    for name in ["flowstart", "flowstart-capi"] {
        let (manifest, folder) = manifest(name);
        let licence = manifest["package"]["metadata"]["deb"]["license-file"][0].as_str().unwrap();
        assert!(folder.join(licence).is_file(), "{licence}");
    }
    let (capi, folder) = manifest("flowstart-capi");
    let variants = &capi["package"]["metadata"]["deb"]["variants"];
    let (library, dev) = (&variants["shared"], &variants["dev"]);
    // Programs ask for the library by its first number, as build.rs of flowstart-capi names it.
    let name = format!("libflowstart{}", env!("CARGO_PKG_VERSION_MAJOR"));
    assert_eq!(library["name"].as_str(), Some(&*name));
    let file = format!("libflowstart.so.{}*", env!("CARGO_PKG_VERSION_MAJOR"));
    assert!(library["assets"][0][0].as_str().unwrap().ends_with(&file), "{library}");
    assert!(folder.join(library["triggers-file"].as_str().unwrap()).is_file());
    assert_eq!(dev["depends"].as_str(), Some(&*format!("{name} (= {version}-1)")));
}
