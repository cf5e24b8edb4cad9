//! Compiles the kernel's programs, one for each `bpf/*.bpf.c`, if the feature `kernel` is on.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// Where clang is asked for: distributions also install it with its version in its name.
const CLANG: &str = "CLANG";

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed={CLANG}");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if env::var_os("CARGO_FEATURE_KERNEL").is_none() || !is_linux {
        return;
    }
    let out = PathBuf::from(variable("OUT_DIR"));
    // The headers of libbpf, which its crate brings.
    let include = variable("DEP_BPF_INCLUDE");
    let mut objects = Vec::new();
    for source in programs() {
        let name = source.file_name().and_then(|name| name.to_str()).unwrap_or_default().trim_end_matches(".bpf.c");
        let object = out.join(format!("{name}.bpf.o"));
        compile(&source, &object, &include);
        objects.push(format!("    ({name:?}, include_bytes!({:?})),\n", object.display().to_string()));
    }
    let list = format!(
        "/// The name of each program's file, and the program.\n\
         pub(super) const OBJECTS: &[(&str, &[u8])] = &[\n{}];\n",
        objects.concat()
    );
    if let Err(error) = fs::write(out.join("objects.rs"), list) {
        fail(&format!("objects.rs cannot be written: {error}"));
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo sets no {name}")))
}

fn programs() -> Vec<PathBuf> {
    let entries = fs::read_dir("bpf").unwrap_or_else(|error| fail(&format!("the folder bpf cannot be read: {error}")));
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_str().is_some_and(|path| path.ends_with(".bpf.c")))
        .collect();
    found.sort();
    found
}

fn compile(source: &Path, object: &Path, include: &str) {
    let clang = env::var(CLANG).unwrap_or_else(|_| "clang".into());
    let arch = match variable("CARGO_CFG_TARGET_ARCH").as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        "riscv64" => "riscv",
        "s390x" => "s390",
        "powerpc64" => "powerpc",
        other => fail(&format!("the programs are not prepared for {other}")),
    };
    let endian = if variable("CARGO_CFG_TARGET_ENDIAN") == "big" { "bpfeb" } else { "bpfel" };
    let ran = Command::new(&clang)
        .args(["-target", endian, "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        // libbpf's macros take structs' addresses that they do not use.
        .args(["-Wno-unused-value", "-Wno-missing-declarations", &format!("-D__TARGET_ARCH_{arch}"), "-I", include])
        .args(["-fdebug-prefix-map=.=.".as_ref(), "-c".as_ref(), source.as_os_str(), "-o".as_ref(), object.as_os_str()])
        .status();
    match ran {
        Ok(status) if status.success() => {}
        Ok(_) => fail(&format!("{clang} cannot compile {}; version 12 or later is needed", source.display())),
        Err(error) => fail(&format!(
            "{clang} cannot be run ({error}). The feature needs clang, libelf and zlib: `scripts/setup kernel` installs \
             them, or on Debian `apt-get install clang libelf-dev zlib1g-dev`. {CLANG} names another clang"
        )),
    }
}

/// Ends the build with a sentence instead of a stack of calls.
fn fail(message: &str) -> ! {
    println!("cargo::error=flowstart-bpf: {message}");
    exit(1)
}
