// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Builds the C library (feature `bundled`), or finds the installed one through pkg-config.
//!
//! No crate is needed for either: one file is compiled, and this works without a registry. The C compiler
//! is asked what it compiles for before its object is linked: one for another machine, or for another
//! calling convention, links in silence and fails when it runs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};

/// `core::error::Error` is there from this Rust 1.x on.
const CORE_ERROR_SINCE: u32 = 81;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let header = source("compactfit.h");
    println!(
        "cargo:rustc-env=COMPACTFIT_INCLUDE={}", // for tests
        header.parent().expect("it is in a folder").display()
    );
    if rust_minor() >= CORE_ERROR_SINCE {
        println!("cargo:rustc-check-cfg=cfg(core_error)");
        println!("cargo:rustc-cfg=core_error");
    }
    if env::var_os("DOCS_RS").is_some() {
        return; // documentation links nothing
    }
    if env::var_os("CARGO_FEATURE_BUNDLED").is_some() {
        build();
    } else {
        link_installed();
    }
}

/// x of the compiler's version 1.x.
fn rust_minor() -> u32 {
    let version = output(Command::new(cargo("RUSTC")).arg("--version"));
    let minor = version.split('.').nth(1).and_then(|x| x.parse().ok());
    minor.unwrap_or_else(|| fail(&format!("which version of Rust is {version:?}?")))
}

/// What cargo says in an environment variable.
fn cargo(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo sets {name}, and has not")))
}

/// The target's name as part of that of an environment variable.
fn target_suffix() -> String {
    cargo("TARGET").replace(['-', '.'], "_")
}

/// What the user says in the variable, for this target or for all.
fn told(name: &str) -> Option<String> {
    let own = format!("{name}_{}", target_suffix());
    println!("cargo:rerun-if-env-changed={own}");
    println!("cargo:rerun-if-env-changed={name}");
    env::var(own).or_else(|_| env::var(name)).ok()
}

/// A file of the C library. In the crate's package it is in `c`; in a clone of the repository there is a
/// symbolic link, or where git makes none, on Windows, a file that says where it would lead.
fn source(name: &str) -> PathBuf {
    let folder = Path::new(&cargo("CARGO_MANIFEST_DIR")).join("c");
    let file = folder.join(name);
    println!("cargo:rerun-if-changed={}", file.display());
    let text = std::fs::read_to_string(&file)
        .unwrap_or_else(|error| fail(&format!("cannot read {}: {error}", file.display())));
    let leads_to = folder.join(text.trim());
    if text.lines().count() == 1 && leads_to.is_file() {
        return leads_to;
    }
    file
}

/// CC, CFLAGS and AR are as for make; `CC_<target>` and so on come first.
fn build() {
    let out = cargo("OUT_DIR");
    let object = format!("{out}/compactfit.o");
    let archive = format!("{out}/libcompactfit.a");
    let code = source("compactfit.c");
    let header = source("compactfit.h");

    let target = cargo("TARGET");
    let program = told("CC").unwrap_or_else(|| default_compiler(&target).to_string());
    let mut flags = Vec::new();
    if target != cargo("HOST") {
        flags = target_flags(&target);
        if macros(&program, &[]).contains("__clang__") {
            flags.push(format!("--target={}", clang_target(&target)));
        }
    }
    if cargo("CARGO_CFG_TARGET_OS") != "none" {
        flags.push("-fPIC".to_string()); // Rust programs are position independent, firmware is not
    }
    let own = told("CFLAGS").unwrap_or_default();
    flags.extend(own.split_whitespace().map(str::to_string));
    check_compiler(&program, &flags);

    let mut cc = command(&program);
    cc.args(["-std=c11", "-O2", "-ffreestanding", "-c", "-o", &object]);
    cc.arg("-I")
        .arg(header.parent().expect("it is in a folder"));
    output(cc.args(&flags).arg(code));

    // ar adds to an archive of an earlier build otherwise
    let _ = std::fs::remove_file(&archive);
    let ar = told("AR").unwrap_or_else(|| output(command(&program).arg("-print-prog-name=ar")));
    output(command(&ar).args(["crs", &archive, &object]));
    println!("cargo:rustc-link-search=native={out}");
    println!("cargo:rustc-link-lib=static=compactfit");
}

/// The C compiler that there most likely is for a target, if the user says nothing.
fn default_compiler(target: &str) -> &'static str {
    let arm = target.starts_with("thumb") || target.starts_with("arm");
    if arm && target.contains("-none-eabi") {
        return "arm-none-eabi-gcc";
    }
    "cc"
}

/// What a C compiler has to be told to compile for a target that is not its own.
fn target_flags(target: &str) -> Vec<String> {
    let machine = target.split('-').next().unwrap_or("");
    let flags = match machine {
        "thumbv6m" => "-mthumb -march=armv6s-m",
        "thumbv7m" => "-mthumb -march=armv7-m",
        "thumbv7em" => "-mthumb -march=armv7e-m",
        "thumbv8m.base" => "-mthumb -march=armv8-m.base",
        "thumbv8m.main" => "-mthumb -march=armv8-m.main",
        "armv7a" => "-march=armv7-a",
        "armv7r" => "-march=armv7-r",
        "i586" => "-m32 -march=i586",
        "i686" => "-m32 -march=i686",
        "x86_64" => "-m64",
        "aarch64" if target.ends_with("-softfloat") => "-mno-outline-atomics -mgeneral-regs-only",
        "aarch64" if target.contains("-none") => "-mno-outline-atomics",
        _ => return riscv_flags(machine),
    };
    let mut flags: Vec<_> = flags.split(' ').map(str::to_string).collect();
    if target.ends_with("eabihf") {
        let unit = match machine {
            "thumbv7em" => "fpv4-sp-d16",
            "thumbv8m.main" => "fpv5-sp-d16",
            _ => "vfpv3-d16",
        };
        flags.push("-mfloat-abi=hard".to_string());
        flags.push(format!("-mfpu={unit}"));
    } else if target.ends_with("none-eabi") {
        flags.push("-mfloat-abi=soft".to_string());
    } else if target == "x86_64-unknown-none" {
        // interrupts use the stack, and nobody saves these registers
        flags.push("-mno-red-zone".to_string());
        flags.push("-mgeneral-regs-only".to_string());
    }
    flags
}

/// A RISC-V's name says what it has: riscv32imac.
fn riscv_flags(machine: &str) -> Vec<String> {
    let (bits, integers) = match machine.get(..7) {
        Some("riscv32") => ("rv32", "ilp32"),
        Some("riscv64") => ("rv64", "lp64"),
        _ => return Vec::new(),
    };
    let has = &machine[7..];
    let floats = match has {
        _ if has.contains('g') || has.contains('d') => "d",
        _ if has.contains('f') => "f",
        _ => "",
    };
    vec![
        format!("-march={bits}{has}"),
        format!("-mabi={integers}{floats}"),
        "-mcmodel=medany".to_string(),
    ]
}

/// Rust's name of a target as clang has it.
fn clang_target(target: &str) -> String {
    let (machine, rest) = target.split_once('-').unwrap_or((target, ""));
    if machine.starts_with("riscv") {
        return format!("{}-{rest}", &machine[..7]);
    }
    target.to_string()
}

/// The macros that a C compiler has of itself, a `#define` a line.
fn macros(program: &str, flags: &[String]) -> String {
    let mut cc = command(program);
    cc.args(flags).args(["-dM", "-E", "-xc", "-"]); // which is empty
    match cc.output() {
        Ok(result) if result.status.success() => {
            String::from_utf8_lossy(&result.stdout).into_owned()
        }
        Ok(result) => refuse(program, &String::from_utf8_lossy(&result.stderr)),
        Err(error) => refuse(program, &error.to_string()),
    }
}

/// Ends with an error unless the C compiler compiles for cargo's target.
fn check_compiler(program: &str, flags: &[String]) {
    let macros = macros(program, flags);
    let value = |name: &str| {
        let define = format!("#define {name} ");
        macros.lines().find_map(|line| line.strip_prefix(&define))
    };
    let (target, machine) = (cargo("TARGET"), cargo("CARGO_CFG_TARGET_ARCH"));
    let own = match machine.as_str() {
        "x86" => "__i386__",
        "x86_64" => "__x86_64__",
        "arm" => "__arm__",
        "aarch64" => "__aarch64__",
        "riscv32" | "riscv64" => "__riscv",
        _ => "__SIZEOF_POINTER__", // of a machine that is not known here only the size is
    };
    let number = |name: &str| value(name).and_then(|text| text.parse::<u32>().ok());
    let bits = number("__SIZEOF_POINTER__").map(|bytes| (bytes * 8).to_string());
    let order = match value("__BYTE_ORDER__") {
        Some("__ORDER_BIG_ENDIAN__") => "big",
        _ => "little",
    };
    // gcc and clang say the same in different words
    let compiles_m = matches!(value("__ARM_ARCH_PROFILE"), Some("77" | "'M'"));
    let is_m = ["thumbv6m", "thumbv7m", "thumbv7em", "thumbv8m"]
        .iter()
        .any(|name| target.starts_with(name));
    let features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    let has = |feature: &str| features.split(',').any(|name| name == feature);
    let uses = |define: &str, feature: &str| value(define).is_some() && !has(feature);
    let wrong = if value(own).is_none() {
        format!("it does not compile for {machine}")
    } else if bits != Some(cargo("CARGO_CFG_TARGET_POINTER_WIDTH")) {
        "its pointers are of another size".to_string()
    } else if order != cargo("CARGO_CFG_TARGET_ENDIAN") {
        "its integers are in the other order of bytes".to_string()
    } else if is_m && !compiles_m {
        "it does not compile for a Cortex-M".to_string()
    } else if machine == "arm"
        && target.contains("eabi")
        && value("__ARM_PCS_VFP").is_some() != target.ends_with("hf")
    {
        "it passes floating-point numbers in other registers".to_string()
    } else if uses("__SSE__", "sse") || uses("__ARM_NEON", "neon") && machine == "aarch64" {
        "it uses vector registers, which programs there must not".to_string()
    } else {
        return;
    };
    refuse(program, &wrong);
}

fn refuse(program: &str, why: &str) -> ! {
    let (target, own) = (cargo("TARGET"), target_suffix());
    fail(&format!(
        "the C compiler `{program}` is no good for {target}: {}\n\
         set CC_{own} to a C compiler for {target}, and CFLAGS_{own} to what it has to be told",
        why.trim()
    ))
}

/// Ends with an error, without the traces of a panic.
fn fail(why: &str) -> ! {
    eprintln!("error: {why}");
    exit(1)
}

fn link_installed() {
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let pkg_config = told("PKG_CONFIG").unwrap_or_else(|| "pkg-config".to_string());
    let found = output(command(&pkg_config).args(["--modversion", "compactfit"]));
    let wanted = cargo("CARGO_PKG_VERSION");
    // Before 1.0 any version may change what the C structs look like.
    if found != wanted {
        fail(&format!(
            "compactfit {found} is installed, this crate is for {wanted}"
        ));
    }
    let folder = output(command(&pkg_config).args(["--variable=libdir", "compactfit"]));
    if !Path::new(&folder).is_dir() {
        fail(&format!("there is no folder {folder}"));
    }
    println!("cargo:rerun-if-changed={folder}");
    println!("cargo:rustc-link-search=native={folder}");
    println!("cargo:rustc-link-lib=compactfit");
}

/// A program, perhaps with arguments.
fn command(words: &str) -> Command {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().expect("a program's name is not empty"));
    command.args(words);
    command
}

fn output(command: &mut Command) -> String {
    let result = command
        .output()
        .unwrap_or_else(|error| fail(&format!("cannot run {command:?}: {error}")));
    if !result.status.success() {
        let said = String::from_utf8_lossy(&result.stderr);
        fail(&format!("{command:?} failed:\n{said}"));
    }
    String::from_utf8_lossy(&result.stdout).trim().to_string()
}
