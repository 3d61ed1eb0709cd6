/* Packed and aligned forms of weights: made once per (contents, operator, format, parameters), kept
 * while a session that uses them lives. One table stands beside every shared model, another one in
 * each session for constants that folding made. */
#ifndef TN_RUNTIME_WEIGHTS_H
#define TN_RUNTIME_WEIGHTS_H

#include <pthread.h>

#include "plan/plan.h"

typedef struct tn_weights_entry tn_weights_entry;

/* Threads: safe. */
typedef struct tn_weights {
    tn_allocator *allocator; /* one reference; charged for buffers and records */
    pthread_mutex_t mutex;
    tn_weights_entry *entries;
    size_t size_bytes; /* of all buffers */
} tn_weights;

void tn_weights_init(tn_weights *weights, tn_allocator *allocator);
void tn_weights_deinit(tn_weights *weights);

/* The packed form that `pack` describes, from the table or made now. */
tn_status tn_weights_get_packed(tn_weights *weights, const tn_pack_context *pack,
                                const void **out_data);

/* A copy of `data` [size_bytes] aligned to 64. */
tn_status tn_weights_get_aligned(tn_weights *weights, const void *data, size_t size_bytes,
                                 const void **out_data, tn_error *err);

#endif
