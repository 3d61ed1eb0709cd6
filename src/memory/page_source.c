/* The counted source: asks the fault injector first, counts what a tree takes and gives back, and
 * hides which kind of source is behind. The counts are the independent side of the tree's
 * invariant (see tn_allocator_verify): the tree counts per node, this counts per call. */
#include "memory/page_source.h"

#include "memory/fault.h"

void *tn_source_alloc(tn_source *source, size_t size_bytes, size_t align,
                      size_t *out_actual_bytes) {
    size_t actual_bytes = size_bytes;
    if (tn_fault_hits(source->fault, TN_FAULT_PAGE_SOURCE)) return NULL;
    void *const data = source->table.alloc(source->table.ctx, size_bytes, align, 0, &actual_bytes);
    if (data == NULL) return NULL;
    if (actual_bytes < size_bytes || out_actual_bytes == NULL) actual_bytes = size_bytes;
    /* relaxed: counters order nothing */
    atomic_fetch_add_explicit(&source->used_bytes, actual_bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&source->alloc_count, 1, memory_order_relaxed);
    if (out_actual_bytes != NULL) *out_actual_bytes = actual_bytes;
    return data;
}

void tn_source_free(tn_source *source, void *data, size_t size_bytes, size_t align,
                    size_t actual_bytes) {
    source->table.free(source->table.ctx, data, size_bytes, align);
    atomic_fetch_sub_explicit(&source->used_bytes, actual_bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&source->free_count, 1, memory_order_relaxed);
}

uint64_t tn_source_held_bytes(const tn_source *source) {
    if (source->kind != TN_SOURCE_CALLER && source->table.stats != NULL) {
        tn_page_source_stats stats = {.struct_size = sizeof stats};
        source->table.stats(source->table.ctx, &stats);
        return stats.held_bytes;
    }
    return atomic_load_explicit(&source->used_bytes, memory_order_relaxed);
}
