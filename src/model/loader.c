/* The parts of a load that belong to no single message: the list of scopes, and the joining of
 * messages that a writer (or `cat`) has split. */
#include "model/loader.h"

#include "base/checked_size.h"
#include "base/error.h"

/* Split messages are legal but unusual; nested ones could multiply a file many times over. */
#define MERGED_FILES_LIMIT 4
#define MERGED_BYTES_FREE ((size_t)64 * 1024)

tn_status tn_loader_add_scope(tn_loader *loader, const tn_scope *scope, uint32_t *out_index,
                              tn_error *err) {
    if (loader->scope_count == loader->scope_capacity) {
        const size_t capacity = tn_size_max(8, (size_t)loader->scope_capacity * 2);
        size_t size_bytes = 0;
        TN_REQUIRE(capacity < TN_SCOPE_NONE && tn_size_mul(capacity, sizeof *scope, &size_bytes),
                   err, TN_UNSUPPORTED, "more than %u graphs", (unsigned)loader->scope_count);
        tn_scope *grown = tn_allocator_realloc(loader->allocator, loader->scopes, size_bytes);
        if (grown == NULL) return tn_record_refusal(loader->allocator, size_bytes, err);
        loader->scopes = grown;
        loader->scope_capacity = (uint32_t)capacity;
    }
    loader->scopes[loader->scope_count] = *scope;
    *out_index = loader->scope_count++;
    return TN_OK;
}

static tn_status join_bytes(tn_loader *loader, const tn_wire_list *list, tn_bytes *out,
                            tn_error *err) {
    size_t total_bytes = 0;
    tn_bytes piece;
    for (tn_wire_list rest = *list; rest.count > 0;) {
        TN_TRY(tn_wire_list_next(&rest, &piece, err));
        total_bytes += piece.size_bytes; /* all lie in one message: no wrap */
    }
    size_t limit_bytes = SIZE_MAX;
    (void)tn_size_mul(loader->file.size_bytes, MERGED_FILES_LIMIT, &limit_bytes);
    limit_bytes = tn_size_max(limit_bytes, MERGED_BYTES_FREE);
    TN_REQUIRE(total_bytes <= limit_bytes - loader->merged_bytes, err, TN_UNSUPPORTED,
               "%s field %u: split messages join to more than %zu bytes", list->reader.message,
               (unsigned)list->number, limit_bytes);
    loader->merged_bytes += total_bytes;

    uint8_t *joined = tn_record_pool_alloc(loader->records, total_bytes, 1);
    if (joined == NULL) return tn_record_pool_refusal(loader->records, total_bytes, 1, err);
    *out = (tn_bytes){joined, total_bytes};
    for (tn_wire_list rest = *list; rest.count > 0;) {
        TN_TRY(tn_wire_list_next(&rest, &piece, err));
        memcpy(joined, piece.data, piece.size_bytes);
        joined += piece.size_bytes;
    }
    return TN_OK;
}

tn_status tn_loader_join(tn_loader *loader, tn_wire_list list, tn_bytes *out, tn_error *err) {
    *out = (tn_bytes){NULL, 0};
    if (list.count == 0) return TN_OK;
    return list.count == 1 ? tn_wire_list_next(&list, out, err)
                           : join_bytes(loader, &list, out, err);
}
