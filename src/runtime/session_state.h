/* A session from inside: options, structural forms, sized plans, arenas, contexts. */
#ifndef TN_RUNTIME_SESSION_STATE_H
#define TN_RUNTIME_SESSION_STATE_H

#include <stdatomic.h>

#include "runtime/environment.h"

#define TN_MAX_CACHED_PLANS 64

/* One structural form per set of fed defaults. */
typedef struct tn_session_form {
    struct tn_session_form *next;
    tn_ir *ir;
    bool *fed_inputs;   /* [declared inputs] */
    bool uses_contents; /* small integer inputs are part of the signature */
    bool is_probed;     /* uses_contents has been decided */
} tn_session_form;

/* A sized plan with the signature it was made for. Counted, since contexts hold on to the one they
 * last used while the cache may drop it. */
typedef struct tn_cached_plan {
    struct tn_cached_plan *next; /* most recently used first */
    tn_plan *plan;
    const tn_session_form *form;
    int64_t *signature; /* owned, right behind this record */
    uint32_t signature_count;
    uint32_t use_count; /* contexts; guarded by the session's mutex */
    uint64_t hash;
    size_t size_bytes; /* of plan and record */
} tn_cached_plan;

typedef struct tn_session_counters {
    _Atomic uint64_t run_count, failed_run_count, payload_copies, copied_bytes, plan_hits,
        plan_misses;
} tn_session_counters;

typedef struct tn_declared_value {
    char *name; /* owned by names bump */
    tn_value_info info;
    bool has_default;
} tn_declared_value;

struct tn_session {
    tn_ref_count refs;
    tn_environment *environment; /* one reference */
    tn_model *model;             /* one reference */
    tn_shared_model *shared;
    tn_allocator *allocator; /* owned reference; parent of the four below */
    tn_allocator *weights_allocator, *execution_allocator, *io_allocator, *plan_allocator;
    tn_session_options options;
    tn_thread_pool *own_pool; /* owned; NULL: the environment's */
    tn_thread_pool *pool;     /* borrowed; NULL: calling thread only */
    uint32_t worker_count;
    tn_io_arena *io_arena; /* one reference */
    tn_weights folded;     /* packed forms of folded constants, in weights_allocator */
    tn_bump names;         /* declared values, metadata */
    tn_declared_value *inputs, *outputs;
    size_t input_count, output_count;
    size_t signature_capacity;
    bool has_defaults; /* some input has a default that a run may feed */
    tn_model_meta meta;
    const tn_op_table **tables; /* built-in and custom */
    size_t table_count;

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t context_returned;
    tn_session_form *forms;
    tn_cached_plan *plans;
    uint32_t plan_count;
    tn_context *idle_contexts;
    tn_context *all_contexts;
    uint32_t context_count, busy_count;
    bool is_closed;
    tn_cached_plan *last_plan; /* borrowed from plans; for reports */

    tn_session_counters counters;
};

/* The plan for `feeds` [input_count] (NULL where not fed), from the cache or made now. When it is
 * `hint` its use count stays, else it goes up. `signature` has room for session->signature_capacity
 * numbers. */
tn_status tn_session_find_plan(tn_session *session, const tn_tensor *const *feeds,
                               int64_t *signature, tn_cached_plan *hint, tn_cached_plan **out,
                               tn_error *err);
/* Plans for given inputs without feeds: what tn_session_plan does. */
tn_status tn_session_make_plan(tn_session *session, const tn_session_form *form,
                               const tn_plan_input *inputs, tn_allocator *allocator, tn_plan **out,
                               tn_error *err);
void tn_session_unuse_plan(tn_session *session, tn_cached_plan *plan);

/* Structural form for a set of fed inputs (plan_cache.c). Session mutex held. */
tn_status tn_session_form_for(tn_session *session, const bool *fed, tn_session_form **out,
                              tn_error *err);
void tn_session_drop_plans(tn_session *session, uint32_t keep_count);
void tn_session_drop_forms(tn_session *session);
tn_plan_options tn_session_plan_options(tn_session *session);
tn_arena_options tn_session_arena_options(const tn_session *session);

/* Checks a context out of the pool and back (session.c). */
tn_status tn_session_take_context(tn_session *session, tn_context **out, tn_error *err);
void tn_session_return_context(tn_session *session, tn_context *context);

/* Index of a declared value; SIZE_MAX when there is none of that name. */
size_t tn_session_find_input(const tn_session *session, const char *name);
size_t tn_session_find_output(const tn_session *session, const char *name);

/* Texts of tn_session_meta (session_info.c). */
tn_status tn_session_fill_meta(tn_session *session, tn_error *err);

/* TN_CLOSED when the session or its environment is. */
tn_status tn_session_check_open(tn_session *session, tn_error *err);

#endif
