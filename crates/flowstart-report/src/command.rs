//! Commands are written so that the reader can paste them. The program stands as it was called, and paths start where
//! it was called.

use std::path::Path;

/// The name of the program in commands that the report is given.
const PROGRAM: &str = "flowstart";

/// How and where the program was called.
pub(crate) struct Invocation {
    program: String,
    /// Empty when unknown.
    folder: String,
}

impl Invocation {
    /// Of this process.
    pub(crate) fn current() -> Self {
        let folder = std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default();
        Self::new(&std::env::args().next().unwrap_or_default(), &folder)
    }

    fn new(called: &str, folder: &str) -> Self {
        // The root is part of every absolute path, and nothing is gained without it.
        let folder = if folder == "/" { String::new() } else { folder.to_owned() };
        let mut invocation = Self { program: PROGRAM.to_owned(), folder };
        let called = invocation.path(called);
        let own = Path::new(&called).file_stem().is_some_and(|name| name == PROGRAM);
        if own && !Path::new(&called).is_absolute() && !called.contains(' ') {
            invocation.program = called;
        }
        invocation
    }

    /// A path from where the program was called, if it leads there.
    pub(crate) fn path(&self, path: &str) -> String {
        match path.strip_prefix(self.folder.as_str()) {
            Some(_) if self.folder.is_empty() => path.to_owned(),
            Some("") => ".".to_owned(),
            Some(rest) => match rest.strip_prefix('/') {
                Some("") => ".".to_owned(),
                Some(below) => below.to_owned(),
                None => path.to_owned(),
            },
            None => path.to_owned(),
        }
    }

    /// A whole command that begins with the name of the program.
    pub(crate) fn command(&self, text: &str) -> String {
        let word = |word: &str| match word.split_once('=') {
            Some((name, value)) => format!("{name}={}", self.path(value)),
            None => self.path(word),
        };
        let mut words = text.split(' ');
        let first = words.next().map(|first| if first == PROGRAM { self.program.clone() } else { first.to_owned() });
        first.into_iter().chain(words.map(word)).collect::<Vec<_>>().join(" ")
    }
}

/// The command that replays a repetition.
pub(crate) fn replay(cell: &str, rep: u32, directory: &str) -> String {
    let invocation = Invocation::current();
    let directory = if directory.is_empty() { ".".to_owned() } else { invocation.path(directory) };
    invocation.command(&format!("flowstart trace --cell {} --rep {rep} --from {}", quoted(cell), quoted(&directory)))
}

/// A word of a shell command.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_start_where_the_program_was_called() {
        let invocation = Invocation::new("/home/me/lab/target/release/flowstart", "/home/me/lab");
        let given =
            "flowstart run /home/me/lab/a.toml --out /home/me/lab/results/x --from=/home/me/lab /home/me/laboratory";
        let shown = "target/release/flowstart run a.toml --out results/x --from=. /home/me/laboratory";
        assert_eq!(invocation.command(given), shown);
    }

    #[test]
    fn a_program_elsewhere_has_only_its_name() {
        let invocation = Invocation::new("/usr/bin/flowstart", "/home/me");
        assert_eq!(invocation.command("flowstart compare --out r"), "flowstart compare --out r");
        let test = Invocation::new("target/debug/deps/other-1f", "");
        assert_eq!(test.command("flowstart compare --out /r"), "flowstart compare --out /r");
    }
}
