/* The environment from inside: root allocator, thread pool, models that sessions share. */
#ifndef TN_RUNTIME_ENVIRONMENT_H
#define TN_RUNTIME_ENVIRONMENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <tenure/session.h>

#include "base/cpu_features.h"
#include "base/log.h"
#include "base/ref_count.h"
#include "base/thread_pool.h"
#include "runtime/weights.h"

/* A loaded model with the packed forms made from its weights. */
typedef struct tn_shared_model {
    struct tn_shared_model *next;
    tn_model *model; /* one reference */
    tn_weights packed;
    uint32_t session_count;
    char *path; /* owned; NULL for models from bytes */
    uint64_t device, inode, size_bytes;
    int64_t modified_ns;
} tn_shared_model;

struct tn_environment {
    tn_ref_count refs;
    tn_allocator *allocator; /* one reference */
    bool owns_root;
    tn_thread_pool *pool; /* owned; NULL with one thread */
    uint32_t thread_count;
    tn_cpu_features cpu;
    tn_log log;
    pthread_mutex_t mutex; /* guards shared_models and is_closed */
    tn_shared_model *shared_models;
    bool is_closed;
};

/* The entry of `model`, made when there is none; its session count goes up. */
tn_status tn_environment_share_model(tn_environment *environment, tn_model *model,
                                     tn_shared_model **out, tn_error *err);

/* Session count down; an entry that no session and no caller uses is dropped. Accepts NULL. */
void tn_environment_unshare_model(tn_environment *environment, tn_shared_model *shared);

/* Memory of a thread pool from an allocator. */
tn_base_alloc tn_environment_base_alloc(tn_allocator *allocator);

#endif
