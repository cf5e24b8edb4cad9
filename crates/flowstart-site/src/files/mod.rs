//! The files of the site, without the simulator.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use flowstart_ui::{Question, Run, Site, assets, lab_page, packets_page, perform};

use crate::desk::program;

/// Files of this crate: where answers come from, the worker that has the simulator, and the page of a report.
const OWN: [(&str, &str); 3] = [
    ("source.js", include_str!("source.js")),
    ("worker.js", include_str!("worker.js")),
    ("report.html", include_str!("report.html")),
];

/// Writes all files but the simulator into a folder, which is made if it is not there. The first page has its answer:
/// its runs are simulated here.
///
/// # Errors
///
/// What cannot be simulated or written.
pub fn write(folder: &Path) -> Result<(), String> {
    let site = Site::of_files().map_err(|error| error.to_string())?;
    let question = Question::first().map_err(|refusal| refusal.to_string())?;
    // How long that takes here is of no interest elsewhere.
    let answered = perform(question, &program(|| Duration::ZERO), &|_| true)?;
    let run = Run::of_query("").map_err(|refusal| refusal.to_string())?;
    let pages = [
        (Site::LAB_FILE, lab_page(&answered.question, Some(&answered), None, &site)),
        (Site::PACKETS_FILE, packets_page(&run, &site)),
    ];
    let unwritable = |error: io::Error| format!("`{}`: {error}", folder.display());
    fs::create_dir_all(folder).map_err(unwritable)?;
    let write = |name: &str, content: &str| {
        let file = folder.join(name);
        fs::write(&file, content).map_err(|error| format!("`{}`: {error}", file.display()))
    };
    for (name, content) in pages {
        write(name, &content)?;
    }
    for (name, content) in assets() {
        write(name, &content)?;
    }
    OWN.iter().try_for_each(|(name, content)| write(name, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_a_page_names_is_written_and_none_of_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("site")).unwrap();
        let files = fs::read_dir(folder.path().join("site")).unwrap().map(|file| file.unwrap().path());
        let files: Vec<_> = files.map(|file| (file.clone(), fs::read_to_string(file).unwrap())).collect();
        let names: Vec<&str> = files.iter().map(|(file, _)| file.file_name().unwrap().to_str().unwrap()).collect();
        let mut named = 0;
        for (file, text) in &files {
            let elsewhere: Vec<&str> = text.split("://").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
            assert!(elsewhere.iter().all(|rest| *rest == "www.w3.org/2000/svg"), "{}: {elsewhere:?}", file.display());
            if file.extension().is_none_or(|extension| extension != "html") {
                continue;
            }
            for address in ["href=\"", "src=\"", "action=\""].iter().flat_map(|name| text.split(name).skip(1)) {
                let name = address.split(['"', '?', '#']).next().unwrap();
                if !name.is_empty() && !name.starts_with("data:") {
                    assert!(names.contains(&name), "{}: {name}", file.display());
                    named += 1;
                }
            }
        }
        assert!(named > 10, "{named}");
        let first = &files[names.iter().position(|name| *name == "index.html").unwrap()].1;
        assert!(first.contains("times as fast as slow-start"), "the first page has no answer");
        let scripts = first.split("data-scripts=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(scripts.split(' ').all(|script| names.contains(&script)), "{scripts}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let place = file.path().join("site");
        assert!(write(&place).unwrap_err().contains(&place.display().to_string()));
    }
}
