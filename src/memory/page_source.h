/* The built-in page sources and the counted source that a tree works with. */
#ifndef TN_MEMORY_PAGE_SOURCE_H
#define TN_MEMORY_PAGE_SOURCE_H

#include <stdatomic.h>

#include <tenure/memory.h>

/* Makes the state of `system` (own mappings; its records lie in them too). NULL: out of memory.
 * Ownership: destroy it with tn_page_source_system_destroy when nothing of it is in use.
 * `fault` is borrowed and may be NULL; set_fault changes it. */
void *tn_page_source_system_create(const tn_fault_injector *fault);
void tn_page_source_system_set_fault(void *ctx, const tn_fault_injector *fault);
void tn_page_source_system_destroy(void *ctx);
tn_page_source tn_page_source_system_table(void *ctx);
/* Marks the whole pages of a block in use as free to take (their contents are lost when the system
 * needs them). Returns the bytes marked. */
size_t tn_page_source_system_soften(void *data, size_t size_bytes);

/* The same over the C library's allocator. */
void *tn_page_source_libc_create(const tn_fault_injector *fault);
void tn_page_source_libc_set_fault(void *ctx, const tn_fault_injector *fault);
void tn_page_source_libc_destroy(void *ctx);
tn_page_source tn_page_source_libc_table(void *ctx);

typedef enum tn_source_kind { TN_SOURCE_SYSTEM, TN_SOURCE_LIBC, TN_SOURCE_CALLER } tn_source_kind;

/* A source as one tree uses it: the table, and what this tree has taken from it. */
typedef struct tn_source {
    struct tn_source *next; /* of the same tree */
    tn_page_source table;
    tn_source_kind kind;
    const tn_fault_injector *fault; /* borrowed from the root, may be NULL */
    _Atomic uint64_t used_bytes;    /* handed out to this tree */
    _Atomic uint64_t alloc_count;   /* calls of alloc that succeeded */
    _Atomic uint64_t free_count;
} tn_source;

/* *out_actual_bytes is what counts as held for this block; hand it back to tn_source_free. With
 * `out_actual_bytes` NULL exactly `size_bytes` counts, whatever the source rounds up to.
 * NULL: out of memory. */
void *tn_source_alloc(tn_source *source, size_t size_bytes, size_t align, size_t *out_actual_bytes);
void tn_source_free(tn_source *source, void *data, size_t size_bytes, size_t align,
                    size_t actual_bytes);
/* Bytes got from the system for this tree's use; a caller's source without figures counts what is
 * in use. */
uint64_t tn_source_held_bytes(const tn_source *source);

#endif
