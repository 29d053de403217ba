// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Is the C header still the one that src/sys.rs was written from? Nothing else would notice.

const HEADER: &str = include_str!("../c/compactfit.h");

/// Without comments, and with single blanks.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        out += before;
        rest = after.split_once("*/").expect("comments end").1;
    }
    out += rest;
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn declares(text: &str) {
    assert!(
        plain(HEADER).contains(&plain(text)),
        "compactfit.h has no longer: {text}"
    );
}

#[test]
fn structs_are_those_of_the_header() {
    declares("typedef struct cf_handle { uint32_t slot; uint32_t stamp; } cf_handle;");
    declares("enum cf_engine { CF_MOVING, CF_NONMOVING, };");
    declares(
        "struct cf_config {
            enum cf_engine engine;
            uint32_t page_size;
            uint32_t block_size;
            uint16_t max_not_full;
            bool deferred;
            bool wide;
            uint32_t remote_frees;
            uint32_t seed;
            const uint16_t *class_max_not_full;
            void (*lock)(void *arg);
            void (*unlock)(void *arg);
            void *lock_arg;
        };",
    );
    declares(
        "struct cf_stats {
            size_t pages;
            size_t free_pages;
            size_t handle_pages;
            size_t large_pages;
            size_t not_full_pages;
            size_t stuck_pages;
            size_t objects;
            size_t pinned;
            size_t free_blocks;
            size_t remote_failed;
            uint64_t moves;
            uint64_t moved_bytes;
        };",
    );
}

#[test]
fn constants_are_those_of_the_header() {
    declares(
        "enum cf_status { CF_OK = 0, CF_ENOMEM = -1, CF_ESIZE = -2, CF_EINVAL = -3,
            CF_ESTALE = -4, CF_EPINNED = -5, CF_EPINS = -6, CF_EAGAIN = -7, };",
    );
    declares("#define CF_MAX_CLASSES 80");
    declares("#define CF_UNLIMITED 0xffffu");
}

#[test]
fn functions_are_those_of_the_header() {
    for function in [
        "struct cf_heap *cf_init(void *buffer, size_t size, const struct cf_config *config);",
        "int cf_malloc(struct cf_heap *heap, size_t size, cf_handle *handle);",
        "int cf_aligned_alloc(struct cf_heap *heap, size_t align, size_t size, cf_handle *handle);",
        "int cf_realloc(struct cf_heap *heap, cf_handle handle, size_t size);",
        "int cf_free(struct cf_heap *heap, cf_handle handle);",
        "void *cf_at(struct cf_heap *heap, cf_handle handle, size_t offset, size_t *length);",
        "int cf_pin(struct cf_heap *heap, cf_handle handle);",
        "int cf_unpin(struct cf_heap *heap, cf_handle handle);",
        "size_t cf_compact(struct cf_heap *heap, size_t budget);",
        "size_t cf_debt(struct cf_heap *heap);",
        "size_t cf_bound(struct cf_heap *heap, size_t size);",
        "size_t cf_max_contiguous(const struct cf_heap *heap);",
        "void cf_get_stats(struct cf_heap *heap, struct cf_stats *stats);",
        "const char *cf_verify(struct cf_heap *heap);",
    ] {
        declares(function);
    }
}
