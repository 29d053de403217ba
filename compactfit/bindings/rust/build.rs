// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Builds the C library (feature `bundled`), or finds the installed one through pkg-config.
//!
//! No crate is needed for either: one file is compiled, and this works without a registry.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_BUNDLED").is_some() {
        build();
    } else {
        link_installed();
    }
}

/// What the user says in the variable, for this target or for all.
fn tool(name: &str, default: &str) -> String {
    let target = env::var("TARGET").unwrap().replace('-', "_");
    let own = format!("{name}_{target}");
    println!("cargo:rerun-if-env-changed={own}");
    println!("cargo:rerun-if-env-changed={name}");
    env::var(own)
        .or_else(|_| env::var(name))
        .unwrap_or_else(|_| default.to_string())
}

/// CC, CFLAGS and AR are as for make; `CC_<target>` and so on come first.
fn build() {
    let out = env::var("OUT_DIR").unwrap();
    let object = format!("{out}/compactfit.o");
    let archive = format!("{out}/libcompactfit.a");
    for file in ["c/compactfit.c", "c/compactfit.h"] {
        println!("cargo:rerun-if-changed={file}");
    }

    let mut cc = command(&tool("CC", "cc"));
    cc.args(["-std=c11", "-O2", "-ffreestanding", "-Ic", "-c"]);
    if env::var("CARGO_CFG_TARGET_OS").unwrap() != "none" {
        cc.arg("-fPIC"); // Rust programs are position independent, firmware is not
    }
    cc.args(tool("CFLAGS", "").split_whitespace());
    output(cc.args(["c/compactfit.c", "-o", &object]));

    // ar adds to an archive of an earlier build otherwise
    let _ = std::fs::remove_file(&archive);
    output(command(&tool("AR", "ar")).args(["crs", &archive, &object]));
    println!("cargo:rustc-link-search=native={out}");
    println!("cargo:rustc-link-lib=static=compactfit");
}

fn link_installed() {
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let pkg_config = tool("PKG_CONFIG", "pkg-config");
    let found = output(command(&pkg_config).args(["--modversion", "compactfit"]));
    let wanted = env::var("CARGO_PKG_VERSION").unwrap();
    // Before 1.0 any version may change what the C structs look like.
    assert!(
        found == wanted,
        "compactfit {found} is installed, this crate is for {wanted}"
    );
    let folder = output(command(&pkg_config).args(["--variable=libdir", "compactfit"]));
    assert!(Path::new(&folder).is_dir(), "there is no folder {folder}");
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
        .unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let said = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "{command:?} failed:\n{said}");
    String::from_utf8_lossy(&result.stdout).trim().to_string()
}
