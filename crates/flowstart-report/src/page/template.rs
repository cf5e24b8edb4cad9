//! The templates stand here, and are filled with what a page shows.

use crate::RenderError;
use crate::number::UNDEFINED;
use minijinja::{AutoEscape, Environment, Value, context};

/// The style of all pages, in a light and a dark scheme; page.js gives charts the same colours.
pub const STYLE: &str = include_str!("../templates/style.css");

/// The libraries that draw the charts, in the order in which they need each other.
const LIBRARIES: [&str; 3] = [
    include_str!("../vendor/vega.min.js"),
    include_str!("../vendor/vega-lite.min.js"),
    include_str!("../vendor/vega-embed.min.js"),
];

/// Their licences ask to be shown wherever the libraries go.
const LICENCES: [&str; 4] = [
    include_str!("../vendor/vega.LICENSE"),
    include_str!("../vendor/vega-lite.LICENSE"),
    include_str!("../vendor/vega-embed.LICENSE"),
    include_str!("../vendor/bundled-packages.LICENSE"),
];

/// Templates and the names by which they include each other.
const TEMPLATES: [(&str, &str); 9] = [
    ("page.html", include_str!("../templates/page.html")),
    ("report.html", include_str!("../templates/report.html")),
    ("changes.html", include_str!("../templates/changes.html")),
    ("fleet.html", include_str!("../templates/fleet.html")),
    ("trace.html", include_str!("../templates/trace.html")),
    ("overlay.html", include_str!("../templates/overlay.html")),
    ("figure.html", include_str!("../templates/figure.html")),
    ("setup.html", include_str!("../templates/setup.html")),
    ("method.html", include_str!("../templates/method.html")),
];

/// Fills a template with its own context and what every page needs.
pub(super) fn fill(template: &str, page: Value) -> Result<String, RenderError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(
        |name| {
            if name.ends_with(".html") { AutoEscape::Html } else { AutoEscape::None }
        },
    );
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    let common = context! {
        style => STYLE,
        script => concat!("const DARK = ", include_str!("../templates/dark.json"), ";\n", include_str!("../templates/page.js")),
        libraries => LIBRARIES.map(without_source_map),
        licences => LICENCES,
        undefined => UNDEFINED,
    };
    Ok(environment.get_template(template)?.render(context! { ..page, ..common })?)
}

/// A library without the comment that makes developer tools look for its source map.
fn without_source_map(library: &str) -> &str {
    library.rfind("//# sourceMappingURL=").map_or(library, |at| library[..at].trim_end())
}
