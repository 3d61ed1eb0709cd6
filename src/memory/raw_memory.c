/* tn_allocator_malloc and its family: memory of the library's own objects. A header of 16 bytes in
 * front of each block says how large it is and whose, so that free needs no size. The request is
 * charged; header and rounding are slack. */
#include <string.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "memory/fault.h"
#include "memory/size_class.h"
#include "memory/tree.h"

#define RAW_ALIGN 16

typedef struct raw_header {
    size_t size_bytes;
    tn_allocator *owner; /* borrowed; it stays while it has raw blocks */
} raw_header;

_Static_assert(sizeof(raw_header) == RAW_ALIGN, "what follows the header must be aligned");

void *tn_allocator_malloc(tn_allocator *allocator, size_t size_bytes) {
    size_t source_bytes = 0;
    size_t actual_bytes = 0;
    void *data = NULL;
    if (tn_fault_hits(allocator->root->fault, TN_FAULT_METADATA)) return NULL;
    if (!tn_size_add(size_bytes, sizeof(raw_header), &source_bytes)) return NULL;
    const tn_block_request request = {.requested_bytes = size_bytes,
                                      .charged_bytes = size_bytes,
                                      .source_bytes = source_bytes,
                                      .align = RAW_ALIGN,
                                      .is_exact = true,
                                      .is_raw = true};
    if (tn_node_take_block(allocator, &request, &data, &actual_bytes, NULL) != TN_OK) return NULL;
    raw_header *const header = data;
    header->size_bytes = size_bytes;
    header->owner = allocator;
    return header + 1;
}

void *tn_allocator_calloc(tn_allocator *allocator, size_t count, size_t size_bytes) {
    size_t total_bytes = 0;
    if (!tn_size_mul(count, size_bytes, &total_bytes)) return NULL;
    void *const data = tn_allocator_malloc(allocator, total_bytes);
    if (data != NULL) memset(data, 0, total_bytes);
    return data;
}

void tn_allocator_free(tn_allocator *allocator, void *data) {
    (void)allocator; /* the header knows */
    if (data == NULL) return;
    raw_header *const header = (raw_header *)data - 1;
    const tn_block_request request = {.charged_bytes = header->size_bytes,
                                      .source_bytes = header->size_bytes + sizeof *header,
                                      .align = RAW_ALIGN,
                                      .is_exact = true,
                                      .is_raw = true};
    tn_node_give_block(header->owner, &request, header, request.source_bytes, NULL);
}

/* Grows or shrinks within what the block's size class gives anyway. False: refused, unchanged. */
static bool resize_in_place(raw_header *header, size_t size_bytes) {
    tn_allocator *const node = header->owner;
    const size_t old_bytes = header->size_bytes;
    const tn_charge more = {.size_bytes = size_bytes > old_bytes ? size_bytes - old_bytes : 0,
                            .requested_bytes = size_bytes};
    if (more.size_bytes > 0 && tn_node_charge(node, &more, NULL) != TN_OK) return false;
    tn_source *const source = node->source;
    tn_lock_acquire(&node->root->lock);
    if (size_bytes < old_bytes) {
        tn_node_subtract(node, old_bytes - size_bytes);
        node->own_charged_bytes -= old_bytes - size_bytes;
    }
    node->own_held_bytes += size_bytes;
    node->own_held_bytes -= old_bytes;
    tn_lock_release(&node->root->lock);
    /* relaxed: a counter; both sides of the invariant move by the same amount */
    atomic_fetch_add_explicit(&source->used_bytes, size_bytes - old_bytes, memory_order_relaxed);
    header->size_bytes = size_bytes;
    return true;
}

/* Only the difference is charged while both blocks exist: a table that doubles inside its limit
 * must not be refused for the moment of the copy. */
static void *move_block(raw_header *header, size_t size_bytes) {
    tn_allocator *const node = header->owner;
    const size_t old_bytes = header->size_bytes;
    const size_t kept_bytes = tn_size_min(size_bytes, old_bytes);
    void *data = NULL;
    size_t actual_bytes = 0;
    const tn_block_request wanted = {.requested_bytes = size_bytes,
                                     .charged_bytes = size_bytes - kept_bytes,
                                     .source_bytes = size_bytes + sizeof *header,
                                     .align = RAW_ALIGN,
                                     .is_exact = true,
                                     .is_raw = true};
    if (tn_node_take_block(node, &wanted, &data, &actual_bytes, NULL) != TN_OK) return NULL;
    raw_header *const moved = data;
    moved->size_bytes = size_bytes;
    moved->owner = node;
    memcpy(moved + 1, header + 1, kept_bytes);
    const tn_block_request given = {.charged_bytes = old_bytes - kept_bytes,
                                    .source_bytes = old_bytes + sizeof *header,
                                    .align = RAW_ALIGN,
                                    .is_exact = true,
                                    .is_raw = true};
    tn_node_give_block(node, &given, header, given.source_bytes, NULL);
    return moved + 1;
}

void *tn_allocator_realloc(tn_allocator *allocator, void *data, size_t size_bytes) {
    if (data == NULL) return tn_allocator_malloc(allocator, size_bytes);
    raw_header *const header = (raw_header *)data - 1;
    const size_t old_bytes = header->size_bytes;
    if (tn_fault_hits(header->owner->root->fault, TN_FAULT_METADATA)) return NULL;
    if (size_bytes > TN_MAX_BLOCK_BYTES) return NULL;
    if (header->owner->source->kind == TN_SOURCE_SYSTEM &&
        tn_block_capacity(size_bytes + sizeof *header) ==
            tn_block_capacity(old_bytes + sizeof *header)) {
        return resize_in_place(header, size_bytes) ? data : NULL;
    }
    return move_block(header, size_bytes);
}
