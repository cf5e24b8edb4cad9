//! The example in C, compiled against the library as it is installed, and run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs a program; `None` if it is not installed, which is a failure with CI=true.
fn run(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{command:?}: {error}");
            println!("skipped: {command:?}: {error}");
            None
        }
    }
}

fn stdout(command: &mut Command) -> Option<String> {
    let output = run(command)?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

/// Where cargo has put the libraries that belong to this test.
fn built() -> PathBuf {
    std::env::current_exe().expect("a path").parent().expect("a folder").to_owned()
}

/// Compiles the example against an installation; returns the program.
fn compiled(prefix: &Path, is_static: bool) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/flow.c");
    let program = prefix.join(if is_static { "static" } else { "shared" });
    let mut ask = Command::new("pkg-config");
    ask.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).args(["--cflags", "--libs", "flowstart"]);
    if is_static {
        ask.arg("--static");
    }
    let flags = stdout(&mut ask)?;
    let flags = flags.split_whitespace().map(|flag| match flag {
        // Beside a shared library the linker takes that.
        "-lflowstart" if is_static => "-l:libflowstart.a",
        flag => flag,
    });
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1"]).arg(&source).arg("-o").arg(&program);
    stdout(cc.args(flags)).map(|_| program)
}

/// Milliseconds of a transfer, and what the program printed.
fn transfer(prefix: &Path, program: &Path, arguments: &[&str]) -> Option<(f64, String)> {
    let printed = stdout(Command::new(program).args(arguments).env("LD_LIBRARY_PATH", prefix.join("lib")))?;
    let millis = printed.split(" in ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a time");
    Some((millis.parse().expect("a number"), printed))
}

#[test]
#[cfg(target_os = "linux")]
fn the_example_runs_with_the_installed_library() {
    let folder = tempfile::tempdir().expect("a folder");
    let (prefix, script) = (folder.path(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install-capi"));
    if stdout(Command::new(script).arg(built()).arg(prefix)).is_none() {
        return;
    }
    for file in ["include/flowstart.h", "lib/libflowstart.a", "lib/libflowstart.so.0", "lib/pkgconfig/flowstart.pc"] {
        assert!(prefix.join(file).exists(), "{file}");
    }
    for is_static in [false, true] {
        let Some(program) = compiled(prefix, is_static) else { return };
        let millis = |arguments: &[&str]| transfer(prefix, &program, arguments);
        let Some((slow, printed)) = millis(&[]) else { return };
        // Half an RTT to the receiver, and 2 MB at 50 Mbit/s: 25 ms + 1667 * 9600 bit / 50 Mbit/s = 345 ms. Slow start
        // needs a few round trips more.
        assert!((345.0..1000.0).contains(&slow), "{printed}");
        let Some((hinted, printed)) = millis(&["blitzstart", "50000000"]) else { return };
        assert!(hinted >= 345.0 && hinted < 0.8 * slow, "{printed}, and slow start {slow} ms");
        let wrong = run(Command::new(&program).arg("blitzstar").env("LD_LIBRARY_PATH", prefix.join("lib")));
        let wrong = wrong.expect("a program");
        let told = String::from_utf8_lossy(&wrong.stderr);
        assert!(!wrong.status.success() && told.contains("did you mean `blitzstart`?"), "{told}");
    }
}

/// The header is for C++ as well.
#[test]
fn the_header_is_valid_cpp() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/flowstart.h");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", "c++"]);
    stdout(compiler.arg(header));
}
