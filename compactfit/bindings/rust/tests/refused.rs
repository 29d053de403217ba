// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Is refused what safe code must not do? Where the compiler finds errors in the files of tests/refused has
//! to be where a line is marked. It stops before it has found all: so lines that are found are left out, and
//! the rest is compiled again, until nothing is wrong. (`compile_fail` in documentation takes any error for the
//! right one, and needs one compilation each.)

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::process::{Command, Output};

const FOLDER: &str = env!("CARGO_TARGET_TMPDIR");

fn rustc(arguments: &[&str]) -> Output {
    let program = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    Command::new(&program)
        .args(["--edition=2021", "--emit=metadata", "--error-format=short"])
        .args(["--crate-type=rlib", "--out-dir", FOLDER])
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("cannot run {program}: {error}"))
}

/// The lines of a file where the compiler finds an error.
fn wrong_lines(said: &str, file: &str) -> BTreeSet<usize> {
    let errors = said.lines().filter(|line| line.contains(": error"));
    errors
        .filter_map(|line| line.strip_prefix(file)?.strip_prefix(':')?.split_once(':'))
        .map(|(line, _)| line.parse().expect("a line's number"))
        .collect()
}

/// Compiles the source without the lines that are wrong, until none is; these lines, and what was said.
fn refused(name: &str, source: &str, library: &str) -> (BTreeSet<usize>, String) {
    let file = format!("{FOLDER}/{name}.rs");
    let (mut refused, mut said) = (BTreeSet::new(), String::new());
    loop {
        let lines = source.lines().zip(1..);
        let rest: Vec<_> = lines
            .map(|(line, number)| if refused.contains(&number) { "" } else { line })
            .collect();
        fs::write(&file, rest.join("\n")).expect("cargo's folder for tests can be written");
        let answer = rustc(&["--extern", library, &file]);
        let errors = String::from_utf8_lossy(&answer.stderr);
        said += &errors;
        let wrong = wrong_lines(&errors, &file);
        if wrong.is_empty() {
            assert!(answer.status.success(), "{said}");
            return (refused, said);
        }
        refused.extend(wrong);
    }
}

#[test]
fn what_safe_code_must_not_do_does_not_compile() {
    // only its metadata: nothing is linked, so no C library is needed
    let built = rustc(&["--crate-name=compactfit", "--cap-lints=allow", "src/lib.rs"]);
    assert!(built.status.success(), "{:?}", built);
    let library = format!("compactfit={FOLDER}/libcompactfit.rmeta");

    for (name, source) in [
        ("pod", include_str!("refused/pod.rs")),
        ("core", include_str!("refused/core.rs")),
        ("heap", include_str!("refused/heap.rs")),
    ] {
        let lines = source.lines().zip(1..);
        let marked: BTreeSet<usize> = lines
            .filter(|(line, _)| line.ends_with("// refused"))
            .map(|(_, number)| number)
            .collect();
        assert_ne!(marked.len(), 0);
        let (refused, said) = refused(name, source, &library);
        assert_eq!(refused, marked, "{name}.rs:\n{said}");
    }
}
