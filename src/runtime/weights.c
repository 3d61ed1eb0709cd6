/* A list is enough: it is searched while planning only, and holds one entry per packed weight. */
#include "runtime/weights.h"

#include <string.h>

#include "base/checked_size.h"

struct tn_weights_entry {
    tn_weights_entry *next;
    const void *source;  /* address of the unpacked contents */
    const tn_op_def *op; /* NULL: a plain aligned copy */
    uint16_t format;
    tn_shape shape;
    const void *params; /* [op->params_bytes], owned, right behind this record */
    tn_buffer buffer;
};

void tn_weights_init(tn_weights *weights, tn_allocator *allocator) {
    memset(weights, 0, sizeof *weights);
    weights->allocator = tn_allocator_retain(allocator);
    (void)pthread_mutex_init(&weights->mutex, NULL);
}

void tn_weights_deinit(tn_weights *weights) {
    if (weights->allocator == NULL) return;
    while (weights->entries != NULL) {
        tn_weights_entry *entry = weights->entries;
        weights->entries = entry->next;
        (void)tn_buffer_release(&entry->buffer);
        tn_allocator_free(weights->allocator, entry);
    }
    (void)pthread_mutex_destroy(&weights->mutex);
    tn_allocator_release(weights->allocator);
    weights->allocator = NULL;
}

static bool same_entry(const tn_weights_entry *a, const tn_weights_entry *b, size_t params_bytes) {
    return a->source == b->source && a->op == b->op && a->format == b->format &&
           a->shape.rank == b->shape.rank &&
           memcmp(a->shape.dims, b->shape.dims, (size_t)a->shape.rank * sizeof(int64_t)) == 0 &&
           (params_bytes == 0 || memcmp(a->params, b->params, params_bytes) == 0);
}

static const void *find(const tn_weights *weights, const tn_weights_entry *key,
                        size_t params_bytes) {
    for (const tn_weights_entry *entry = weights->entries; entry != NULL; entry = entry->next) {
        if (same_entry(entry, key, params_bytes)) return entry->buffer.data;
    }
    return NULL;
}

/* A record and buffer for `key`, not in the list yet. */
static tn_status create_entry(tn_weights *weights, const tn_weights_entry *key, size_t params_bytes,
                              size_t size_bytes, tn_weights_entry **out, tn_error *err) {
    const size_t record_bytes = tn_align_up(sizeof **out, 16) + params_bytes;
    tn_weights_entry *entry = tn_allocator_malloc(weights->allocator, record_bytes);
    TN_REQUIRE(entry != NULL, err, TN_OUT_OF_MEMORY, "a packed weight's record needs %zu bytes",
               record_bytes);
    *entry = *key;
    char *params = (char *)entry + tn_align_up(sizeof *entry, 16);
    if (params_bytes > 0) memcpy(params, key->params, params_bytes);
    entry->params = params;
    const tn_status status =
        tn_buffer_create(weights->allocator, size_bytes, 64, &entry->buffer, err);
    if (status != TN_OK) {
        tn_allocator_free(weights->allocator, entry);
        return status;
    }
    *out = entry;
    return TN_OK;
}

static void add_entry(tn_weights *weights, tn_weights_entry *entry, size_t size_bytes) {
    entry->next = weights->entries;
    weights->entries = entry;
    weights->size_bytes += size_bytes;
}

static void drop_entry(tn_weights *weights, tn_weights_entry *entry) {
    (void)tn_buffer_release(&entry->buffer);
    tn_allocator_free(weights->allocator, entry);
}

static tn_status make_packed(tn_weights *weights, const tn_weights_entry *key,
                             const tn_pack_context *pack, const void **out_data) {
    const tn_op_def *op = pack->node->op;
    size_t size_bytes = 0;
    tn_weights_entry *entry = NULL;
    TN_TRY(op->pack_size(pack, &size_bytes));
    TN_TRY(create_entry(weights, key, op->params_bytes, size_bytes, &entry, pack->err));
    const tn_status status = op->pack(pack, entry->buffer.data);
    if (status != TN_OK) {
        drop_entry(weights, entry);
        return status;
    }
    add_entry(weights, entry, size_bytes);
    *out_data = entry->buffer.data;
    return TN_OK;
}

tn_status tn_weights_get_packed(tn_weights *weights, const tn_pack_context *pack,
                                const void **out_data) {
    const tn_fact *weight = pack->node->inputs[pack->variant->pack_input];
    const tn_weights_entry key = {.source = weight->data,
                                  .op = pack->node->op,
                                  .format = pack->variant->pack_format,
                                  .shape = weight->shape,
                                  .params = pack->node->params};
    tn_status status = TN_OK;
    (void)pthread_mutex_lock(&weights->mutex);
    *out_data = find(weights, &key, pack->node->op->params_bytes);
    if (*out_data == NULL) status = make_packed(weights, &key, pack, out_data);
    (void)pthread_mutex_unlock(&weights->mutex);
    return status;
}

static tn_status make_aligned(tn_weights *weights, const tn_weights_entry *key, size_t size_bytes,
                              const void **out_data, tn_error *err) {
    tn_weights_entry *entry = NULL;
    TN_TRY(create_entry(weights, key, 0, size_bytes, &entry, err));
    memcpy(entry->buffer.data, key->source, size_bytes);
    add_entry(weights, entry, size_bytes);
    *out_data = entry->buffer.data;
    return TN_OK;
}

tn_status tn_weights_get_aligned(tn_weights *weights, const void *data, size_t size_bytes,
                                 const void **out_data, tn_error *err) {
    const tn_weights_entry key = {.source = data};
    tn_status status = TN_OK;
    (void)pthread_mutex_lock(&weights->mutex);
    *out_data = find(weights, &key, 0);
    if (*out_data == NULL) status = make_aligned(weights, &key, size_bytes, out_data, err);
    (void)pthread_mutex_unlock(&weights->mutex);
    return status;
}
