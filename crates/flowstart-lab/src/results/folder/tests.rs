use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("flowstart-experiment-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn write(file: &Path, text: &str) -> Result<(), ExperimentError> {
    write_file(file, |out| out.write_all(text.as_bytes()))
}

#[test]
fn a_file_is_written_without_harm_to_its_neighbours() {
    let folder = Folder::new("neighbours");
    let (file, neighbour) = (folder.0.join("p.pcapng"), folder.0.join("p.partial"));
    fs::write(&neighbour, "precious").unwrap();
    write(&file, "first").unwrap();
    write(&file, "second").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "second");
    assert_eq!(fs::read_to_string(&neighbour).unwrap(), "precious");
    // Not even under the name that the program would choose itself.
    let scratch = folder.0.join(".flowstart.0");
    fs::write(&scratch, "somebody's").unwrap();
    write(&file, "third").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "third");
    assert_eq!(fs::read_to_string(&scratch).unwrap(), "somebody's");
    assert_eq!(folder.names(), [".flowstart.0", "p.partial", "p.pcapng"]);
}

#[test]
fn what_cannot_be_written_completely_leaves_nothing_behind() {
    let folder = Folder::new("incomplete");
    let file = folder.0.join("file");
    fs::write(&file, "before").unwrap();
    let full = |out: &mut dyn Write| {
        out.write_all(b"half")?;
        Err(io::Error::from(io::ErrorKind::StorageFull))
    };
    assert!(write_file(&file, full).is_err());
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
    fs::create_dir(folder.0.join("folder")).unwrap();
    assert!(write(&folder.0.join("folder"), "text").is_err());
    assert_eq!(folder.names(), ["file", "folder"]);
}

#[cfg(unix)]
#[test]
fn a_link_or_a_pipe_where_a_file_is_written_is_not_followed() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new("followed");
    let precious = folder.0.join("precious");
    fs::write(&precious, "precious").unwrap();
    for name in ["p.partial", ".flowstart.0"] {
        symlink(&precious, folder.0.join(name)).unwrap();
    }
    assert!(std::process::Command::new("mkfifo").arg(folder.0.join(".flowstart.1")).status().unwrap().success());
    write(&folder.0.join("p.csv"), "text").unwrap();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    assert_eq!(folder.names(), [".flowstart.0", ".flowstart.1", "p.csv", "p.partial", "precious"]);
}

#[test]
fn a_folder_is_for_one_program_at_a_time() {
    let folder = Folder::new("one");
    let first = prepare_folder(&folder.0, false).unwrap();
    for resume in [false, true] {
        let told = prepare_folder(&folder.0, resume).unwrap_err().to_string();
        assert!(told.contains("another flowstart is at work in it"), "{told}");
    }
    drop(first);
    assert_eq!(folder.names(), Vec::<String>::new());
    // A program that was killed left its lock.
    fs::write(folder.0.join(LOCK), "").unwrap();
    drop(prepare_folder(&folder.0, false).unwrap());
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn only_a_folder_of_a_run_is_gone_on_with() {
    let folder = Folder::new("foreign");
    for name in ["report.html", "flows.csv", ".writable"] {
        let file = folder.0.join(name);
        fs::write(&file, "precious").unwrap();
        for resume in [false, true] {
            let told = prepare_folder(&folder.0, resume).unwrap_err().to_string();
            assert!(told.contains("holds other files"), "{told}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
        fs::remove_file(&file).unwrap();
    }
    fs::write(folder.0.join("report.html"), "").unwrap();
    for name in [JOURNAL, MANIFEST] {
        fs::write(folder.0.join(name), "").unwrap();
        prepare_folder(&folder.0, true).unwrap();
        assert!(prepare_folder(&folder.0, false).is_err());
        fs::remove_file(folder.0.join(name)).unwrap();
    }
}
