//! Writes the files of the site into a folder: `flowstart-site FOLDER`. `make site` puts the simulator beside them.

use std::env;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [folder] = &arguments[..] else {
        eprintln!("usage: flowstart-site FOLDER");
        return ExitCode::from(2);
    };
    match flowstart_site::write(Path::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(1)
        }
    }
}
