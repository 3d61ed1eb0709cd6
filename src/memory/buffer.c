/* Buffers: views by value with one reference on their block's record. */
#include <string.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "memory/fault.h"
#include "memory/poison.h"
#include "memory/size_class.h"
#include "memory/tree.h"

static void set_empty(tn_buffer *out) {
    *out = (tn_buffer){.data = tn_empty_data(), .size_bytes = 0, .ledger = tn_empty_ledger()};
}

static void fill_record(tn_ledger *record, tn_allocator *allocator, const tn_block_request *request,
                        void *data, size_t actual_bytes) {
    record->data = data;
    record->capacity_bytes = actual_bytes;
    record->u.size_bytes = request->charged_bytes;
    record->owner = allocator;
    record->link.align = request->align;
    record->kind = TN_LEDGER_PLAIN;
    record->state = TN_BLOCK_LIVE;
    tn_ref_count_init(&record->refs, 1);
}

tn_status tn_buffer_create(tn_allocator *allocator, size_t size_bytes, size_t align, tn_buffer *out,
                           tn_error *err) {
    void *data = NULL;
    size_t actual_bytes = 0;
    memset(out, 0, sizeof *out);
    if (align == 0) align = TN_BUFFER_ALIGNMENT;
    TN_REQUIRE((align & (align - 1)) == 0, err, TN_INVALID_ARGUMENT,
               "alignment of %zu bytes is not a power of two", align);
    TN_REQUIRE(size_bytes <= TN_MAX_BLOCK_BYTES && align <= TN_MAX_BLOCK_BYTES, err,
               TN_OUT_OF_MEMORY, "no machine has %zu bytes aligned to %zu", size_bytes, align);
    if (size_bytes == 0 && align <= TN_PAGE_BYTES) {
        set_empty(out);
        return TN_OK;
    }
    const tn_block_request request = {.requested_bytes = size_bytes,
                                      .charged_bytes = size_bytes,
                                      .source_bytes = size_bytes,
                                      .align = tn_size_max(align, TN_BUFFER_ALIGNMENT)};
    if (tn_fault_hits(allocator->root->fault, TN_FAULT_BUFFER)) {
        return tn_out_of_memory(allocator, size_bytes, size_bytes, err);
    }
    tn_ledger *const record = tn_node_take_record(allocator);
    if (record == NULL) return tn_out_of_memory(allocator, sizeof *record, sizeof *record, err);
    const tn_status status = tn_node_take_block(allocator, &request, &data, &actual_bytes, err);
    if (status != TN_OK) {
        tn_node_give_record(allocator, record);
        return status;
    }
    fill_record(record, allocator, &request, data, actual_bytes);
    tn_poison((char *)data + size_bytes, actual_bytes - size_bytes);
    *out = (tn_buffer){.data = data, .size_bytes = size_bytes, .ledger = record};
    return TN_OK;
}

tn_status tn_buffer_retain(const tn_buffer *buffer, tn_error *err) {
    TN_REQUIRE(buffer != NULL && buffer->ledger != NULL, err, TN_DEAD,
               "the buffer was released already");
    if (buffer->ledger->kind == TN_LEDGER_EMPTY) return TN_OK;
    TN_REQUIRE(tn_ref_count_retain(&buffer->ledger->refs), err, TN_DEAD,
               "the buffer's block was given back already");
    return TN_OK;
}

tn_status tn_buffer_release(tn_buffer *buffer) {
    if (buffer == NULL || buffer->ledger == NULL) return TN_DEAD;
    tn_ledger *const ledger = buffer->ledger;
    memset(buffer, 0, sizeof *buffer);
    return tn_ledger_release(ledger);
}

tn_status tn_buffer_slice(const tn_buffer *buffer, size_t offset_bytes, size_t size_bytes,
                          tn_buffer *out_borrowed, tn_error *err) {
    const tn_buffer base = *buffer; /* it may be the output too */
    memset(out_borrowed, 0, sizeof *out_borrowed);
    TN_REQUIRE(base.ledger != NULL, err, TN_DEAD, "the buffer was released already");
    TN_REQUIRE(offset_bytes <= base.size_bytes && size_bytes <= base.size_bytes - offset_bytes, err,
               TN_OUT_OF_RANGE, "bytes %zu..+%zu leave a buffer of %zu", offset_bytes, size_bytes,
               base.size_bytes);
    *out_borrowed = (tn_buffer){
        .data = (char *)base.data + offset_bytes, .size_bytes = size_bytes, .ledger = base.ledger};
    return TN_OK;
}
