/* The `libc` source: aligned_alloc and free, for programs that bring an allocator of their own by
 * preloading it. Its figures are those of the requests; what the C library keeps is not known. */
#include "memory/page_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked_size.h"
#include "memory/fault.h"
#include "memory/poison.h"

typedef struct libc_source {
    const tn_fault_injector *fault;
    _Atomic uint64_t used_bytes;
    _Atomic uint64_t alloc_count;
    _Atomic uint64_t free_count;
} libc_source;

void *tn_page_source_libc_create(const tn_fault_injector *fault) {
    if (tn_fault_hits(fault, TN_FAULT_MAPPING)) return NULL;
    libc_source *const source = calloc(1, sizeof *source);
    if (source != NULL) source->fault = fault;
    return source;
}

void tn_page_source_libc_set_fault(void *ctx, const tn_fault_injector *fault) {
    libc_source *const source = ctx;
    source->fault = fault;
}

void tn_page_source_libc_destroy(void *ctx) {
    free(ctx);
}

static void *libc_alloc(void *ctx, size_t size_bytes, size_t align, unsigned flags,
                        size_t *actual_bytes) {
    libc_source *const source = ctx;
    size_t padded_bytes = 0;
    (void)flags;
    /* aligned_alloc wants a multiple of the alignment */
    if (!tn_size_align(tn_size_max(size_bytes, 1), align, &padded_bytes)) return NULL;
    if (tn_fault_hits(source->fault, TN_FAULT_MAPPING)) return NULL;
    void *const data = aligned_alloc(align, padded_bytes);
    if (data == NULL) return NULL;
    *actual_bytes = padded_bytes;
    /* relaxed: counters order nothing */
    atomic_fetch_add_explicit(&source->used_bytes, padded_bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&source->alloc_count, 1, memory_order_relaxed);
    return data;
}

static void libc_free(void *ctx, void *data, size_t size_bytes, size_t align) {
    libc_source *const source = ctx;
    const size_t padded_bytes = tn_align_up(tn_size_max(size_bytes, 1), align);
    tn_unpoison(data, padded_bytes);
    free(data);
    atomic_fetch_sub_explicit(&source->used_bytes, padded_bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&source->free_count, 1, memory_order_relaxed);
}

static void libc_stats(void *ctx, tn_page_source_stats *out) {
    const libc_source *const source = ctx;
    const size_t struct_size = out->struct_size;
    memset(out, 0, sizeof *out);
    out->struct_size = struct_size;
    out->used_bytes = atomic_load_explicit(&source->used_bytes, memory_order_relaxed);
    out->held_bytes = out->used_bytes;
    out->alloc_count = atomic_load_explicit(&source->alloc_count, memory_order_relaxed);
    out->free_count = atomic_load_explicit(&source->free_count, memory_order_relaxed);
}

tn_page_source tn_page_source_libc_table(void *ctx) {
    return (tn_page_source){.struct_size = sizeof(tn_page_source),
                            .name = "libc",
                            .ctx = ctx,
                            .alloc = libc_alloc,
                            .free = libc_free,
                            .stats = libc_stats};
}
