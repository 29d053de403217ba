// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Are the structs and constants of src/sys.rs those of C, as the C compiler has them? It is asked, field
//! by field, by assertions that it has to believe: nothing is run, so it may be one for another machine.

use std::env;
use std::io::Write;
use std::mem::{align_of, size_of, MaybeUninit};
use std::process::{Command, Stdio};
use std::ptr;

#[path = "../src/sys.rs"]
#[allow(dead_code)] // what is here is measured, not used
mod sys;

/// Compiles C that consists of assertions; what does not hold is in the panic's message.
fn holds(assertions: &[String]) {
    let words = env::var("CC").unwrap_or_else(|_| "cc".to_string());
    let mut words = words.split_whitespace();
    let mut cc = Command::new(words.next().expect("CC is not empty"));
    cc.args(words)
        .args(["-std=gnu11", "-fsyntax-only", "-xc", "-"])
        .args(["-I", env!("COMPACTFIT_INCLUDE")]);
    cc.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = cc
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run {cc:?}: {error}"));
    let code = format!("#include \"compactfit.h\"\n{}\n", assertions.join("\n"));
    let mut input = child.stdin.take().expect("it is piped");
    input
        .write_all(code.as_bytes())
        .expect("the compiler reads it");
    drop(input);
    let answer = child.wait_with_output().expect("the compiler ends");
    let said = String::from_utf8_lossy(&answer.stderr);
    assert!(answer.status.success(), "C says otherwise:\n{said}");
}

fn assertion(condition: &str, name: &str) -> String {
    format!("_Static_assert({condition}, \"{name}\");")
}

/// Size and alignment of what a pointer leads to.
fn extent<T>(_: *const T) -> (usize, usize) {
    (size_of::<T>(), align_of::<T>())
}

/// What C has to say of a struct, with all of its fields.
macro_rules! layout {
    ($type:ident { $($field:ident),+ $(,)? }) => {{
        // This does not compile if a field is left out here.
        let _ = |whole: sys::$type| {
            let sys::$type { $($field: _),+ } = whole;
        };
        let whole = MaybeUninit::<sys::$type>::uninit();
        let start = whole.as_ptr();
        let c = concat!("struct ", stringify!($type));
        let (size, align) = extent(start);
        let condition = format!("sizeof({c}) == {size} && _Alignof({c}) == {align}");
        let mut assertions = vec![assertion(&condition, c)];
        $(
            // SAFETY: an address in the struct is computed, nothing is read
            let field = unsafe { ptr::addr_of!((*start).$field) };
            let (size, align) = extent(field);
            let offset = field as usize - start as usize;
            let name = concat!(stringify!($type), ".", stringify!($field));
            let c_field = format!("(({c} *)0)->{}", stringify!($field));
            for (condition, what) in [
                (format!("offsetof({c}, {}) == {offset}", stringify!($field)), "offset"),
                (format!("sizeof({c_field}) == {size}"), "size"),
                (format!("_Alignof(__typeof__({c_field})) == {align}"), "alignment"),
            ] {
                assertions.push(assertion(&condition, &format!("{what} of {name}")));
            }
        )+
        holds(&assertions);
    }};
}

#[test]
fn handles_are_laid_out_as_in_c() {
    layout!(cf_handle { slot, stamp });
}

#[test]
fn configurations_are_laid_out_as_in_c() {
    layout!(cf_config {
        engine,
        page_size,
        block_size,
        max_not_full,
        deferred,
        wide,
        pieces,
        remote_frees,
        seed,
        class_max_not_full,
        lock,
        unlock,
        lock_arg,
    });
}

#[test]
fn statistics_are_laid_out_as_in_c() {
    layout!(cf_stats {
        pages,
        free_pages,
        handle_pages,
        large_pages,
        not_full_pages,
        stuck_pages,
        objects,
        pinned,
        free_blocks,
        remote_failed,
        moves,
        moved_bytes,
    });
}

#[test]
fn constants_are_those_of_c() {
    macro_rules! values {
        ($($name:ident),+ $(,)?) => {
            [$((stringify!($name), sys::$name as i64)),+]
        };
    }
    let values = values![
        CF_OK,
        CF_ENOMEM,
        CF_ESIZE,
        CF_ESTALE,
        CF_EPINNED,
        CF_EPINS,
        CF_MAX_CLASSES,
        CF_UNLIMITED,
    ];
    let declared = include_str!("../src/sys.rs").matches("pub const ").count();
    assert_eq!(values.len(), declared, "all of them are looked at");
    let moving = ("CF_MOVING", sys::cf_engine::CF_MOVING as i64);
    let each = values.iter().chain([&moving]);
    let assertions: Vec<_> = each
        .map(|(name, value)| assertion(&format!("{name} == {value}"), name))
        .collect();
    holds(&assertions);
}
