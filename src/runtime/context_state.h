/* A context from inside: one run at a time, with its slab, value table and what it holds between
 * begin and end of a run. */
#ifndef TN_RUNTIME_CONTEXT_STATE_H
#define TN_RUNTIME_CONTEXT_STATE_H

#include "runtime/session_state.h"

/* A value whose size is known only during the run. */
typedef struct tn_dynamic_value {
    tn_fact fact;
    tn_allocation_handle handle; /* of roots; arena NULL: none */
} tn_dynamic_value;

struct tn_context {
    tn_context *next_idle;
    tn_context *next_all;
    tn_session *session; /* pooled: borrowed; user's own: one reference */
    bool is_users;
    atomic_flag is_busy;
    tn_allocator *allocator;             /* one reference; child of the session's execution node */
    tn_arena *arena;                     /* where execution memory comes from; borrowed */
    tn_execution_arena *execution_arena; /* the same; NULL in single-arena mode */
    bool owns_arena;
    tn_slab own_slab;      /* single-arena mode */
    tn_cached_plan *bound; /* the plan that the tables are set for; use-counted */
    char *slab;
    int64_t *signature; /* [session->signature_capacity] */
    void **values;      /* [value_capacity] */
    uint32_t value_capacity;
    tn_allocation_handle *io;  /* [session outputs] blocks of this run; arena NULL: none */
    tn_dynamic_value *dynamic; /* [dynamic_capacity], by dynamic_index */
    uint32_t dynamic_capacity;
    const tn_step *step;               /* the running one, for make_output */
    tn_error *errors;                  /* [TN_MAX_WORKERS] */
    tn_bump run_bump;                  /* records of dynamic steps; reset at the end of a run */
    tn_allocation_handle *temporaries; /* of the running step */
    uint32_t temporary_count, temporary_capacity;
    tn_allocation_handle *staged;  /* [session inputs] copies of strided feeds */
    const tn_tensor **feeds;       /* [session inputs] of the running run; borrowed */
    bool *was_given;               /* [session outputs] of the running run: written into */
    tn_value **held_inputs;        /* [session inputs] set by tn_context_set; references */
    tn_value **held_outputs;       /* [session outputs] of the last run; references */
    uint64_t copies, copied_bytes; /* of this run */
};

/* One run. `feeds` [input_count] by declared position; `outputs` [output_count] by declared
 * position: NULL and wanted[i]: a new value; non-NULL: written into. */
typedef struct tn_run_request {
    const tn_tensor *const *feeds;
    tn_value **outputs;
    const bool *wanted;
} tn_run_request;

tn_status tn_context_execute(tn_context *context, const tn_run_request *request, tn_error *err);

/* Makes and frees a context (context.c). `users`: it retains the session. */
tn_status tn_context_make(tn_session *session, bool users, tn_context **out, tn_error *err);
void tn_context_free(tn_context *context);

/* executor.c: runs the bound tiles of a step. */
tn_status tn_context_run_tiles(tn_context *context, const tn_step *step, char *shared_scratch,
                               char *worker_scratch, tn_error *err);

/* dynamic.c: infers, binds and runs a step with the facts of now. */
tn_status tn_context_run_dynamic(tn_context *context, const tn_step *step, tn_error *err);
tn_status tn_context_assign(tn_context *context, const tn_step *step, tn_error *err);
/* Memory of a dynamic root, in the arena that its slot says. */
tn_status tn_context_make_dynamic(tn_context *context, uint32_t value, const tn_fact *fact,
                                  void **out_data, tn_error *err);
void tn_context_release_dynamic(tn_context *context, uint32_t root);
void tn_context_release_all_dynamic(tn_context *context);
/* Memory until the end of the running step. */
tn_status tn_context_make_temporary(tn_context *context, size_t size_bytes, void **out_data,
                                    tn_error *err);
void tn_context_release_temporaries(tn_context *context);
/* The fact of `value` as it is now: the plan's, or the run's. */
const tn_fact *tn_context_fact(const tn_context *context, uint32_t value);

/* context.c: the arena behind a context, whichever kind it is. */
void tn_context_drop(tn_context *context);
tn_status tn_context_begin_run(tn_context *context, tn_error *err);
void tn_context_end_run(tn_context *context);
tn_status tn_context_reserve_slab(tn_context *context, size_t size_bytes, void **out_slab,
                                  tn_error *err);
tn_status tn_context_allocate(tn_context *context, size_t size_bytes, tn_allocation_handle *out,
                              tn_error *err);
tn_status tn_context_reserve_tables(tn_context *context, const tn_plan *plan, tn_error *err);

#endif
