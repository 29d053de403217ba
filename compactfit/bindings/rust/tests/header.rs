// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Is src/sys.rs what the C header says? Each struct and function of it is translated from there, and
//! compared as text: so a type with another sign, a pointer to what is constant, two arguments in another
//! order are found, which nothing else would notice. tests/layout.rs asks the C compiler for the rest.

const HEADER: &str = include_str!(concat!(env!("COMPACTFIT_INCLUDE"), "/compactfit.h"));
const SYS: &str = include_str!("../src/sys.rs");

/// C without comments, and with single blanks.
fn c() -> String {
    let mut out = String::new();
    let mut rest = HEADER;
    while let Some((before, after)) = rest.split_once("/*") {
        out += before;
        rest = after.split_once("*/").expect("comments end").1;
    }
    out += rest;
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Rust without comments and blanks, nor the comma that ends a list of several lines.
fn squeezed(rust: &str) -> String {
    let code = rust
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""));
    let words: String = code.flat_map(str::split_whitespace).collect();
    words.replace(",)", ")")
}

/// What is before `end`.
fn until<'a>(text: &'a str, end: &str) -> &'a str {
    text.split_once(end).expect("declarations end").0
}

/// The Rust type that is meant by a C one.
fn rust_type(c: &str) -> String {
    if let Some(target) = c.trim().strip_suffix('*') {
        return match target.trim().strip_prefix("const ") {
            Some(constant) => format!("*const {}", rust_type(constant)),
            None => format!("*mut {}", rust_type(target)),
        };
    }
    match c.trim() {
        "uint16_t" => "u16",
        "uint32_t" => "u32",
        "uint64_t" => "u64",
        "size_t" => "usize",
        "int" => "i32",
        "char" => "u8",
        "void" => "c_void",
        other => other
            .trim_start_matches("struct ")
            .trim_start_matches("enum "),
    }
    .to_string()
}

/// What C calls `type name`, or `void (*name)(arguments)`, as `name: type`.
fn rust_variable(c: &str) -> String {
    if let Some((_, function)) = c.split_once("void (*") {
        let (name, arguments) = function.split_once(")(").expect("a pointer to a function");
        let arguments = rust_variables(until(arguments, ")"), ',');
        return format!("{name}: Option<unsafe extern \"C\" fn({arguments})>");
    }
    let name = c.rfind(|one: char| !one.is_alphanumeric() && one != '_');
    let (kind, name) = c.split_at(name.expect("a type and a name") + 1);
    format!("{name}: {}", rust_type(kind))
}

/// The same of several.
fn rust_variables(c: &str, separator: char) -> String {
    let each = c.split(separator).map(str::trim).filter(|c| !c.is_empty());
    each.map(rust_variable).collect::<Vec<_>>().join(", ")
}

#[test]
fn structs_are_those_of_the_header() {
    for name in ["cf_handle", "cf_config", "cf_stats"] {
        let header = c();
        let (_, after) = header
            .split_once(&format!("struct {name} {{"))
            .expect("it is in the header");
        let fields = rust_variables(until(after, "}"), ';').replace(", ", ", pub ");
        let wanted = squeezed(&format!("pub struct {name} {{ pub {fields}, }}"));
        assert!(squeezed(SYS).contains(&wanted), "not so: {wanted}");
    }
}

#[test]
fn what_c_lays_out_is_laid_out_as_in_c() {
    let sys = squeezed(SYS);
    for keyword in ["pubstruct", "pubenum"] {
        for (at, _) in sys.match_indices(keyword) {
            let attributes = sys[..at].rfind([';', '}']).map_or(0, |before| before + 1);
            let item = until(&sys[attributes..], "{");
            assert!(item.starts_with("#[repr(C)]"), "not so: {item}");
        }
    }
}

#[test]
fn functions_are_those_of_the_header() {
    let header = c();
    let mut functions = 0;
    for rust in SYS.split("pub fn ").skip(1) {
        let name = until(rust, "(");
        let call = header
            .find(&format!(" {name}("))
            .or_else(|| header.find(&format!("*{name}(")));
        let at = call.unwrap_or_else(|| panic!("compactfit.h has no {name}()")) + 1;
        let before = header[..at].rfind([';', '}']).map_or(0, |end| end + 1);
        let arguments = until(&header[at + name.len() + 1..], ")");
        let result = match rust_type(&header[before..at]).as_str() {
            "c_void" => String::new(),
            kind => format!(" -> {kind}"),
        };
        let arguments = rust_variables(arguments, ',');
        let wanted = squeezed(&format!("pub fn {name}({arguments}){result};"));
        assert!(squeezed(SYS).contains(&wanted), "not so: {wanted}");
        functions += 1;
    }
    assert_ne!(functions, 0);
}
