//! Collects what `flowstart list` says about parameters: the doc comments of the algorithms' configurations and of the
//! transport profiles, so that each is written once. Finds the scenarios that come with the program.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The families of algorithms in `flowstart-core`.
const FAMILIES: [&str; 3] = ["startup", "avoidance", "aqm"];

/// A field of a configuration.
struct Field {
    name: String,
    of: String,
    doc: String,
    is_flat: bool,
}

/// The structs and enums of a source file.
#[derive(Default)]
struct Source {
    structs: BTreeMap<String, Vec<Field>>,
    enums: BTreeMap<String, Vec<String>>,
}

/// The text between the first pair of these marks.
fn between<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(open)?;
    Some(rest.split_once(close)?.0)
}

/// A variant as users write it.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for (place, letter) in name.char_indices() {
        if letter.is_ascii_uppercase() && place > 0 {
            text.push('-');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

impl Source {
    fn read(text: &str) -> Self {
        let mut source = Self::default();
        let (mut in_struct, mut in_enum) = (None, None);
        let (mut doc, mut rename, mut is_flat, mut is_converted) = (String::new(), None, false, false);
        for line in text.lines() {
            let words = line.trim();
            if line == "}" {
                (in_struct, in_enum) = (None, None);
            } else if let Some(name) = between(line, "pub struct ", " {") {
                // One without fields counts too; otherwise another type of the same name would be found for it.
                source.structs.entry(name.to_owned()).or_default();
                in_struct = (!line.ends_with('}')).then(|| name.to_owned());
            } else if let Some(name) = between(line, "pub enum ", " {") {
                // Another type is written in place of its variants.
                in_enum = (!is_converted).then(|| name.to_owned());
            } else if let Some(more) = words.strip_prefix("///") {
                doc = format!("{doc} {}", more.trim());
                continue;
            } else if words.starts_with("#[") {
                rename = between(words, "rename = \"", "\"").map(str::to_owned).or(rename);
                is_flat |= words.contains("flatten");
                is_converted |= words.contains("try_from");
                continue;
            } else if let Some(name) = &in_struct
                && let Some((field, of)) = words.strip_prefix("pub ").and_then(|rest| rest.split_once(": "))
            {
                let of = of.trim_end_matches(',').to_owned();
                let name_of_field = rename.take().unwrap_or_else(|| field.to_owned());
                let field = Field { name: name_of_field, of, doc: doc.trim().to_owned(), is_flat };
                source.structs.entry(name.clone()).or_default().push(field);
            } else if let Some(name) = &in_enum
                && line.starts_with("    ")
                && line[4..].starts_with(|letter: char| letter.is_ascii_uppercase())
            {
                let variant: String = words.chars().take_while(char::is_ascii_alphanumeric).collect();
                let written = rename.take().unwrap_or_else(|| kebab(&variant));
                source.enums.entry(name.clone()).or_default().push(written);
            }
            (doc, rename, is_flat, is_converted) = (String::new(), None, false, false);
        }
        source
    }
}

/// All Rust files below a folder, by the path of their module.
fn sources(folder: &Path, module: &str, found: &mut BTreeMap<String, Source>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if path.is_dir() {
            sources(&path, &format!("{module}{stem}/"), found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.insert(format!("{module}{stem}"), Source::read(&fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// A family's sources, and what its types are.
struct Family(BTreeMap<String, Source>);

impl Family {
    /// What `find` finds in the module's own file, in the files of its folder, or elsewhere.
    fn find<'f, T>(&'f self, module: &str, find: impl Fn(&'f Source) -> Option<T>) -> Option<T> {
        let of_folder = |path: &str| path.starts_with(&format!("{module}/"));
        let own = self.0.get(module).and_then(&find);
        own.or_else(|| self.0.iter().filter(|(path, _)| of_folder(path)).find_map(|(_, source)| find(source)))
            .or_else(|| self.0.values().find_map(&find))
    }

    /// What the values of a type are.
    fn values(&self, module: &str, of: &str) -> String {
        let of = of.strip_prefix("Option<").and_then(|of| of.strip_suffix('>')).unwrap_or(of);
        match of {
            "Duration" => "a time".into(),
            "Rate" => "a rate".into(),
            "Bytes" => "bytes".into(),
            "bool" => "true or false".into(),
            "f64" => "a number".into(),
            "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number".into(),
            _ => {
                let name = of.rsplit("::").next().unwrap_or(of);
                let module = of.split_once("::").map_or(module, |(module, _)| module);
                self.find(module, |source| source.enums.get(name)).map_or(String::new(), |names| names.join(", "))
            }
        }
    }

    /// The parameters of a struct, as lines of a table.
    fn parameters(&self, module: &str, name: &str, table: &mut String) {
        for field in self.find(module, |source| source.structs.get(name)).into_iter().flatten() {
            match field.of.split_once("::") {
                Some((module, name)) if field.is_flat => self.parameters(module, name, table),
                _ if field.is_flat => self.parameters(module, &field.of, table),
                _ => {
                    let (values, doc) = (self.values(module, &field.of), plain(&field.doc));
                    let _ = writeln!(table, "({:?}, {values:?}, {doc:?}),", field.name);
                }
            }
        }
    }
}

/// A doc comment without its marks.
fn plain(doc: &str) -> String {
    doc.replace("[`", "").replace("`]", "").replace('`', "")
}

/// The folder with the sources of a crate, as its build script tells: these crates may be anywhere.
fn told(name: &str) -> io::Result<PathBuf> {
    env::var_os(name).map(PathBuf::from).ok_or_else(|| io::Error::other(format!("{name} is not set")))
}

/// The folder of scenarios: in the repository it stands above the crates, in this crate's package it is inside.
fn scenarios() -> io::Result<PathBuf> {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let places = [own.join("scenarios"), own.join("../../scenarios")];
    let found = places.into_iter().find(|folder| folder.is_dir());
    found.ok_or_else(|| io::Error::other("the folder `scenarios` is neither in the crate nor in the repository"))
}

fn main() -> io::Result<()> {
    println!("cargo::rustc-env=FLOWSTART_SCENARIOS={}", scenarios()?.display());
    let (core, sim) = (told("DEP_FLOWSTART_CORE_SOURCES")?, told("DEP_FLOWSTART_SIM_SOURCES")?);
    let mut table = String::from("&[\n");
    for family in FAMILIES {
        let folder = core.join(family);
        let mut found = BTreeMap::new();
        sources(&folder, "", &mut found)?;
        let registry = fs::read_to_string(folder.join("mod.rs"))?;
        let found = Family(found);
        for line in registry.lines() {
            let (Some(name), Some((_, module))) = (between(line, " = \"", "\" in "), line.split_once("\" in ")) else {
                continue;
            };
            let module: String =
                module.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
            let _ = writeln!(table, "({family:?}, {name:?}, &[");
            found.parameters(&module, "Config", &mut table);
            table += "]),\n";
        }
    }
    let mut found = BTreeMap::new();
    sources(&sim.join("transport"), "", &mut found)?;
    table += "(\"transport\", \"\", &[\n";
    Family(found).parameters("profile", "Profile", &mut table);
    table += "])]\n";
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("parameters.rs");
    fs::write(out, table)
}
