//! The shape of this repository: which crate uses which, no circles among the modules of a crate, no long files.

#![allow(clippy::unwrap_used, reason = "a tree that cannot be read fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a file without its tests.
const LONGEST: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The crates of the workspace.
fn crates() -> Vec<String> {
    let folders = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<_> = folders
        .filter(|folder| folder.join("Cargo.toml").exists())
        .map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// All sources below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A file's name as messages have it.
fn name(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

/// The lines before a trailing module of tests.
fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests {").map_or(text, |end| &text[..end])
}

/// Fails with all problems, a line each.
fn require(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn files_are_short() {
    let mut problems = Vec::new();
    for one in crates() {
        for file in sources(&root().join("crates").join(one).join("src")) {
            let lines = without_tests(&fs::read_to_string(&file).unwrap()).lines().count();
            // Tests may be long.
            if lines > LONGEST && !is_test(&file) {
                problems.push(format!("{}: {lines} lines without tests; {LONGEST} are allowed", name(&file)));
            }
        }
    }
    require(&problems);
}

/// Whether a file has tests only.
fn is_test(file: &Path) -> bool {
    let stem = file.file_stem().unwrap().to_str().unwrap();
    stem == "tests" || stem.ends_with("_tests") || file.components().any(|part| part.as_os_str() == "tests")
}

#[test]
fn crates_use_each_other_as_the_architecture_says() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    // A row is: crate, what it uses. What a crate uses stands above it.
    let mut above: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut problems = Vec::new();
    for (line, text) in (1..).zip(architecture.lines()) {
        let Some((of, used)) = text.strip_prefix("| `flowstart").and_then(|row| row.split_once("` | ")) else {
            continue;
        };
        let of = format!("flowstart{of}");
        let used = used.trim_end_matches(" |").split(", ").filter(|one| *one != "nothing");
        let used: BTreeSet<_> = used.map(|one| format!("flowstart-{one}")).collect();
        for one in used.iter().filter(|one| !above.contains_key(*one)) {
            problems.push(format!("ARCHITECTURE.md:{line}: {of} -> {one}: {one} does not stand above it"));
        }
        above.insert(of, used);
    }
    for one in crates() {
        let manifest = root().join("crates").join(&one).join("Cargo.toml");
        let Some(allowed) = above.get(&one) else {
            problems.push(format!("ARCHITECTURE.md: {one} is not in the table of crates"));
            continue;
        };
        let used = used_crates(&fs::read_to_string(&manifest).unwrap());
        for (used, line) in used.iter().filter(|(used, _)| !allowed.contains(*used)) {
            let place = name(&manifest);
            problems.push(format!("{place}:{line}: {one} -> {used}: the table in ARCHITECTURE.md does not have it"));
        }
        for unused in allowed.iter().filter(|allowed| !used.contains_key(*allowed)) {
            problems.push(format!("ARCHITECTURE.md: {one} -> {unused}: its Cargo.toml does not have it"));
        }
    }
    require(&problems);
}

/// The crates of this workspace that a manifest names outside of its tests, and where.
fn used_crates(manifest: &str) -> BTreeMap<String, usize> {
    let mut used = BTreeMap::new();
    let mut counts = false;
    for (line, text) in (1..).zip(manifest.lines()) {
        if text.starts_with('[') {
            counts = text.ends_with("dependencies]") && !text.contains("dev-dependencies");
        }
        let key = text.split(['.', ' ', '=']).next().unwrap_or_default();
        if counts && key.starts_with("flowstart-") {
            used.insert(key.to_owned(), line);
        }
    }
    used
}

#[test]
fn modules_form_no_circle() {
    let mut problems = Vec::new();
    for one in crates() {
        let tree = Tree::read(&root().join("crates").join(&one).join("src"));
        for (parent, arrows) in tree.arrows() {
            let place = [std::slice::from_ref(&one), parent.as_slice()].concat().join("::");
            problems.extend(circles(&arrows).iter().map(|circle| told(&place, circle, &arrows)));
        }
    }
    require(&problems);
}

/// A module's path from its crate's root.
type Module = Vec<String>;
/// Which child module uses which, and the places where it does.
type Arrows = BTreeMap<(String, String), Vec<String>>;

/// The modules of a crate and the paths that they name.
struct Tree {
    /// Modules, and the names that each brings in from elsewhere with what they mean.
    modules: BTreeMap<Module, BTreeMap<String, Module>>,
    /// Where a path is named, in which module, and what it is.
    named: Vec<(String, Module, Module)>,
}

impl Tree {
    fn read(src: &Path) -> Self {
        let mut tree = Self { modules: BTreeMap::new(), named: Vec::new() };
        let mut uses = Vec::new();
        for file in sources(src).into_iter().filter(|file| !is_test(file)) {
            let mut module: Module = file
                .strip_prefix(src)
                .unwrap()
                .with_extension("")
                .iter()
                .map(|part| part.to_str().unwrap().to_owned())
                .collect();
            module.pop_if(|last| ["lib", "main", "mod"].contains(&last.as_str()));
            let text = fs::read_to_string(&file).unwrap();
            for (line, is_use, path) in paths(&bare(without_tests(&text))) {
                uses.push((format!("{}:{line}", name(&file)), module.clone(), is_use, path));
            }
            tree.modules.insert(module, BTreeMap::new());
        }
        for (place, module, is_use, path) in uses {
            let path = absolute(&module, &path);
            if is_use && let (Some(last), Some(names)) = (path.last(), tree.modules.get_mut(&module)) {
                names.insert(last.clone(), path.clone());
            }
            tree.named.push((place, module, path));
        }
        tree
    }

    /// The module that a path leads to. Names that a module brings in from elsewhere are followed.
    fn target(&self, path: &[String], depth: usize) -> Module {
        let mut at = Module::new();
        for (place, part) in path.iter().enumerate() {
            let child = [at.as_slice(), std::slice::from_ref(part)].concat();
            if self.modules.contains_key(&child) {
                at = child;
                continue;
            }
            return match self.modules.get(&at).and_then(|names| names.get(part)) {
                Some(elsewhere) if depth > 0 && !path.starts_with(elsewhere) => {
                    let rest = path.get(place + 1..).unwrap_or_default();
                    self.target(&[elsewhere.as_slice(), rest].concat(), depth - 1)
                }
                _ => at,
            };
        }
        at
    }

    /// For each module the arrows among its children.
    fn arrows(&self) -> BTreeMap<Module, Arrows> {
        let mut all: BTreeMap<Module, Arrows> = BTreeMap::new();
        for (place, module, path) in &self.named {
            let target = self.target(path, 8);
            let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (module.get(common), target.get(common)) {
                let arrows = all.entry(module[..common].to_vec()).or_default();
                arrows.entry((from.clone(), to.clone())).or_default().push(place.clone());
            }
        }
        all
    }
}

/// A path from the crate's root. One that begins with a name begins at the module: it leads to a child, or nowhere.
fn absolute(module: &[String], path: &[String]) -> Module {
    let mut at = module.to_vec();
    let mut rest = path;
    while let [first, behind @ ..] = rest {
        match first.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()),
            _ => break,
        }
        rest = behind;
    }
    [at.as_slice(), rest].concat()
}

/// Source without comments and without what stands in quotation marks; lines stay.
fn bare(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut left = text;
    while let Some(one) = left.chars().next() {
        let length = if left.starts_with("//") {
            left.find('\n').unwrap_or(left.len())
        } else if one == '"' {
            let mut escaped = false;
            let end = left.char_indices().skip(1).find(|(_, one)| {
                let ends = *one == '"' && !escaped;
                escaped = *one == '\\' && !escaped;
                ends
            });
            end.map_or(left.len(), |(end, _)| end + 1)
        } else if left.starts_with("'\"'") {
            3
        } else {
            bare.push(one);
            left = &left[one.len_utf8()..];
            continue;
        };
        bare.extend(left[..length].chars().filter(|one| *one == '\n'));
        left = &left[length..];
    }
    bare
}

/// The paths that begin with `crate`, `self` or `super`, and all that stand after `use`: line, whether after `use`,
/// parts.
fn paths(text: &str) -> Vec<(usize, bool, Vec<String>)> {
    let word = |one: char| one.is_alphanumeric() || one == '_';
    let mut found = Vec::new();
    for root in ["crate::", "self::", "super::", "use "] {
        for (at, _) in text.match_indices(root) {
            let before = &text[..at];
            // In the middle of a word or of another path.
            if before.ends_with(word) || before.ends_with("::") {
                continue;
            }
            let path = text[at..].strip_prefix("use ").unwrap_or(&text[at..]);
            let mut depth = 0;
            let end = path.find(|one: char| {
                match one {
                    '{' => depth += 1,
                    '}' if depth > 0 => depth -= 1,
                    _ => {}
                }
                let within = depth > 0 && (one == ',' || one.is_whitespace());
                !(within || word(one) || [':', '*', '{', '}'].contains(&one))
            });
            let path = &path[..end.unwrap_or(path.len())];
            let is_use = root == "use " || before.ends_with("use ");
            let line = before.matches('\n').count() + 1;
            found.extend(expanded(path).into_iter().map(|path| (line, is_use, path)));
        }
    }
    found
}

/// The paths of a path with groups such as `a::{b, c::d}`.
fn expanded(text: &str) -> Vec<Vec<String>> {
    let text = text.trim();
    let Some((before, group)) = text.split_once('{') else {
        let parts = text.split("::").map(|part| part.split_whitespace().next().unwrap_or_default());
        let parts = parts.filter(|part| part.starts_with(|one: char| one.is_alphabetic() || one == '_'));
        return vec![parts.map(str::to_owned).collect()];
    };
    let stem: Vec<String> =
        before.split("::").filter(|part| !part.is_empty()).map(|part| part.trim().to_owned()).collect();
    let mut found = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, one) in group.char_indices() {
        match one {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                let part = group[start..at].trim();
                if !part.is_empty() {
                    found.extend(expanded(part).into_iter().map(|path| [stem.clone(), path].concat()));
                }
                start = at + 1;
                if one == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found
}

/// The sets of modules that use each other, directly or by way of others.
fn circles(arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let modules: BTreeSet<&String> = arrows.keys().flat_map(|(from, to)| [from, to]).collect();
    let reached = |from: &String| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(one) = open.pop() {
            for (_, to) in arrows.keys().filter(|(from, _)| from == one) {
                if reached.insert(to) {
                    open.push(to);
                }
            }
        }
        reached
    };
    let reach: BTreeMap<_, _> = modules.iter().map(|one| (*one, reached(one))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for one in modules {
        if reach[one].contains(one) && !found.iter().any(|circle| circle.contains(one)) {
            let both = reach[one].iter().filter(|other| reach[**other].contains(one));
            found.push(both.map(|other| (*other).clone()).collect());
        }
    }
    found
}

/// A circle with the arrows that have to go. In an order of the modules that few places point against, these are the
/// ones that do.
fn told(place: &str, circle: &BTreeSet<String>, arrows: &Arrows) -> String {
    let within: Vec<_> = arrows.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to)).collect();
    let mut left: BTreeSet<&String> = circle.iter().collect();
    let mut order: Vec<&String> = Vec::new();
    // The next lowest module is the one that uses the least of what is left.
    while !left.is_empty() {
        let uses = |one: &String| -> usize {
            let up = within.iter().filter(|((from, to), _)| from == one && to != one && left.contains(to));
            up.map(|(_, places)| places.len()).sum()
        };
        let used = |one: &String| -> usize {
            let down = within.iter().filter(|((from, to), _)| to == one && from != one && left.contains(from));
            down.map(|(_, places)| places.len()).sum()
        };
        let lowest = *left.iter().min_by_key(|one| (uses(one), std::cmp::Reverse(used(one)))).unwrap();
        left.remove(lowest);
        order.push(lowest);
    }
    let height = |one: &String| order.iter().position(|other| *other == one);
    let names: Vec<&str> = order.iter().map(|one| one.as_str()).collect();
    let mut text = format!("{place}: a circle of {}; from bottom to top, these arrows point up:", names.join(", "));
    for ((from, to), places) in within.iter().filter(|((from, to), _)| height(from) < height(to)) {
        for place in places.iter().collect::<BTreeSet<_>>() {
            text += &format!("\n  {place}: {from} -> {to}");
        }
    }
    text
}

#[test]
fn a_circle_is_told_with_the_arrow_that_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
    fs::create_dir(folder.path().join("high")).unwrap();
    write("lib.rs", "mod high;\nmod low;\nmod other;\npub use high::{Tower, part};\n");
    write(
        "high/mod.rs",
        "mod part;\n// use crate::other;\nuse crate::low::{self, Base};\nfn f() { crate::low::g() }\n",
    );
    write("high/part.rs", "use super::Base;\n#[cfg(test)]\nmod tests {\n    use crate::other;\n}\n");
    // By way of what the root brings in.
    write("low.rs", "use std::fmt;\n\nuse crate::Tower;\n");
    write("other.rs", "use crate::{high::{part::{A, B}}, low};\n");
    let arrows = &Tree::read(folder.path()).arrows()[&Module::new()];
    let [circle] = circles(arrows).try_into().unwrap();
    assert_eq!(circle.iter().collect::<Vec<_>>(), ["high", "low"]);
    let text = told("crate", &circle, arrows);
    let (head, wrong) = text.split_once('\n').unwrap();
    assert!(head.contains("a circle of low, high"), "{head}");
    assert!(wrong.trim_start().ends_with("low.rs:3: low -> high") && wrong.lines().count() == 1, "{wrong}");
    assert!(
        arrows.contains_key(&("other".into(), "high".into())) && !arrows.contains_key(&("high".into(), "other".into()))
    );
}
