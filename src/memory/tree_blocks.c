/* Blocks as the tree sees them: charged, then taken from the page source; given back in the
 * opposite order. The physical call runs outside the tree lock. */
#include <string.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "memory/fault.h"
#include "memory/size_class.h"
#include "memory/tree.h"

#define FIRST_CHUNK_RECORDS 15 /* with the chunk's own line: 1 KiB */
#define MAX_CHUNK_RECORDS 1023

static void *source_alloc(tn_allocator *node, const tn_block_request *request,
                          size_t *out_actual_bytes) {
    *out_actual_bytes = request->source_bytes;
    return tn_source_alloc(node->source, request->source_bytes, request->align,
                           request->is_exact ? NULL : out_actual_bytes);
}

static tn_charge charge_of(const tn_block_request *request, size_t held_bytes) {
    return (tn_charge){.size_bytes = request->charged_bytes,
                       .requested_bytes = request->requested_bytes,
                       .held_bytes = held_bytes,
                       .unit = request->is_raw ? TN_CHARGE_RAW : TN_CHARGE_BLOCK};
}

/* What the source is going to give, so that one visit to the tree can count it. */
static size_t expected_bytes(const tn_allocator *node, const tn_block_request *request) {
    if (request->is_exact || node->source->kind != TN_SOURCE_SYSTEM) return request->source_bytes;
    return tn_block_capacity(tn_size_max(request->source_bytes, 1));
}

static void correct_held(tn_allocator *node, size_t expected, size_t actual_bytes) {
    tn_lock_acquire(&node->root->lock);
    node->own_held_bytes -= expected;
    node->own_held_bytes += actual_bytes;
    tn_lock_release(&node->root->lock);
}

tn_status tn_node_take_block(tn_allocator *node, const tn_block_request *request, void **out_data,
                             size_t *out_actual_bytes, tn_error *err) {
    const size_t expected = expected_bytes(node, request);
    const tn_charge charge = charge_of(request, expected);
    *out_data = NULL;
    TN_TRY(tn_node_charge(node, &charge, err));
    void *data = source_alloc(node, request, out_actual_bytes);
    if (data == NULL) {
        /* whatever anybody in this tree retains is worth less than this request */
        tn_allocator *top = node;
        while (top->parent != NULL) top = top->parent;
        if (tn_node_reclaim(top, request->source_bytes) > 0) {
            data = source_alloc(node, request, out_actual_bytes);
        }
    }
    if (data == NULL) {
        const tn_status status =
            tn_out_of_memory(node, request->requested_bytes, request->source_bytes, err);
        tn_node_discharge(node, &charge);
        return status;
    }
    if (*out_actual_bytes != expected) correct_held(node, expected, *out_actual_bytes);
    *out_data = data;
    return TN_OK;
}

void tn_node_give_block(tn_allocator *node, const tn_block_request *request, void *data,
                        size_t actual_bytes, tn_ledger *record) {
    tn_charge charge = charge_of(request, actual_bytes);
    charge.record = record;
    tn_source_free(node->source, data, request->source_bytes, request->align, actual_bytes);
    tn_node_discharge(node, &charge);
}

/* Adds a chunk of unused records. Under the lock. */
static bool add_record_chunk(tn_root *root) {
    const uint32_t count =
        root->next_chunk_records == 0 ? FIRST_CHUNK_RECORDS : root->next_chunk_records;
    const size_t size_bytes = sizeof(tn_ledger) * (count + 1); /* the first line is the chunk's */
    size_t actual_bytes = 0;
    _Static_assert(sizeof(tn_record_chunk) <= sizeof(tn_ledger), "the header must fit in a line");
    tn_record_chunk *const chunk =
        tn_source_alloc(&root->first_source, size_bytes, TN_BUFFER_ALIGNMENT, &actual_bytes);
    if (chunk == NULL) return false;
    memset(chunk, 0, size_bytes);
    chunk->size_bytes = size_bytes;
    chunk->actual_bytes = actual_bytes;
    chunk->next = root->record_chunks;
    root->record_chunks = chunk;
    root->metadata_bytes += actual_bytes;
    tn_ledger *const records = (tn_ledger *)chunk + 1;
    for (uint32_t i = 0; i < count; i++) {
        records[i].link.next = root->free_records;
        root->free_records = &records[i];
    }
    root->next_chunk_records = count >= MAX_CHUNK_RECORDS ? MAX_CHUNK_RECORDS : 2 * count + 1;
    return true;
}

tn_ledger *tn_node_take_record(tn_allocator *node) {
    tn_root *const root = node->root;
    tn_ledger *record = NULL;
    if (tn_fault_hits(root->fault, TN_FAULT_METADATA)) return NULL;
    tn_lock_acquire(&root->lock);
    if (root->free_records != NULL || add_record_chunk(root)) {
        record = root->free_records;
        root->free_records = record->link.next;
        /* the generation survives: it tells one use of the record from the next */
        record->link.next = NULL;
    }
    tn_lock_release(&root->lock);
    return record;
}

void tn_root_push_record(tn_root *root, tn_ledger *record) {
    record->kind = TN_LEDGER_UNUSED;
    record->state = TN_BLOCK_UNUSED;
    record->generation++;
    record->data = NULL;
    record->owner = NULL;
    record->link.next = root->free_records;
    root->free_records = record;
}

void tn_node_give_record(tn_allocator *node, tn_ledger *record) {
    tn_lock_acquire(&node->root->lock);
    tn_root_push_record(node->root, record);
    tn_lock_release(&node->root->lock);
}

void *tn_node_take_metadata(tn_allocator *node, size_t size_bytes) {
    tn_root *const root = node->root;
    if (tn_fault_hits(root->fault, TN_FAULT_METADATA)) return NULL;
    void *const data = tn_source_alloc(&root->first_source, size_bytes, TN_BUFFER_ALIGNMENT, NULL);
    if (data == NULL) return NULL;
    memset(data, 0, size_bytes);
    tn_lock_acquire(&root->lock);
    root->metadata_bytes += size_bytes;
    tn_lock_release(&root->lock);
    return data;
}

void tn_node_give_metadata(tn_allocator *node, void *data, size_t size_bytes) {
    tn_root *const root = node->root;
    if (data == NULL) return;
    tn_source_free(&root->first_source, data, size_bytes, TN_BUFFER_ALIGNMENT, size_bytes);
    tn_lock_acquire(&root->lock);
    root->metadata_bytes -= size_bytes;
    tn_lock_release(&root->lock);
}
