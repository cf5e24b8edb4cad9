//! The stub of the extension module for type checkers: functions from their keywords, classes from `classes.pyi`.

use crate::functions::{Function, functions};
use crate::keywords::Keyword;

/// The classes, and what stands above all.
const CLASSES: &str = include_str!("classes.pyi");

fn argument(keyword: &Keyword) -> String {
    let hint = keyword.takes.hint();
    match keyword.default.as_deref() {
        Some("None") => format!("{}: {hint} | None = None", keyword.name),
        Some(default) => format!("{}: {hint} = {default}", keyword.name),
        None => format!("{}: {hint}", keyword.name),
    }
}

fn function(function: &Function) -> String {
    let Function { name, returns, .. } = function;
    let text: String = function
        .documentation()
        .trim_end()
        .lines()
        .map(|line| match line {
            "" => "\n".to_owned(),
            line => format!("    {line}\n"),
        })
        .collect();
    let text = text.trim_start().replace('\\', "\\\\");
    format!("def {name}({}) -> {returns}:\n    \"\"\"{text}    \"\"\"\n", function.signature(argument))
}

/// The whole stub.
pub(crate) fn text() -> String {
    let functions: Vec<String> = functions().map(function).collect();
    format!("{CLASSES}\n{}", functions.join("\n"))
}
