/* Environments, sessions, contexts, bindings, plans: running a model.
 *
 * Ownership: environment and session are shared by count (create/retain/release); context and
 *            binding have one owner (create/destroy). An exported output outlives all of them.
 * Threads:   environment and session are safe from any thread; a context or binding is used by one
 *            thread at a time, a second one gets TN_BUSY. */
#ifndef TENURE_SESSION_H
#define TENURE_SESSION_H

#include <tenure/arena.h>
#include <tenure/model.h>
#include <tenure/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_environment tn_environment;
typedef struct tn_session tn_session;
typedef struct tn_context tn_context;
typedef struct tn_io_binding tn_io_binding;
typedef struct tn_plan_report tn_plan_report;

typedef void (*tn_log_fn)(void *ctx, tn_log_level level, const char *text);

/* Zero is the default everywhere; then the environment variable named, then the value named. */
typedef struct tn_environment_options {
    size_t struct_size;
    tn_allocator *parent;         /* NULL: the environment makes a root of its own */
    uint64_t memory_limit_bytes;  /* TENURE_MEMORY_LIMIT; none */
    uint32_t thread_count;        /* TENURE_NUM_THREADS; number of processors */
    const char *page_source_name; /* TENURE_PAGE_SOURCE; "system" */
    const tn_page_source *page_source;
    const tn_fault_injector *fault;
    tn_log_level log_level;
    tn_log_fn log_sink; /* NULL: stderr */
    void *log_ctx;
} tn_environment_options;

/* Makes an environment: root allocator (or child of the caller's), thread pool, model cache.
 * Errors: TN_INVALID_ARGUMENT naming the option or variable, TN_OUT_OF_MEMORY, TN_LIMIT. */
TN_API TN_MUST_USE tn_status tn_environment_create(const tn_environment_options *options,
                                                   tn_environment **out, tn_error *err);
TN_API tn_environment *tn_environment_retain(tn_environment *environment);
TN_API void tn_environment_release(tn_environment *environment);
/* Ends use: later calls get TN_CLOSED. Always succeeds; exported outputs stay valid. */
TN_API void tn_environment_close(tn_environment *environment);
/* Borrowed: the allocator under which everything of this environment is charged. */
TN_API tn_allocator *tn_environment_allocator(const tn_environment *environment);

/* Loads the file, or shares the copy that another session of this environment has loaded. */
TN_API TN_MUST_USE tn_status tn_environment_load_model(tn_environment *environment,
                                                       const char *path, tn_model **out,
                                                       tn_error *err);

/* Retention of arenas between runs. */
typedef enum tn_retention {
    TN_RETENTION_ADAPTIVE, /* what the last `retention_window` runs used */
    TN_RETENTION_ALL,
    TN_RETENTION_NONE
} tn_retention;

typedef struct tn_dim_override {
    const char *symbol; /* dim_param */
    int64_t value;
} tn_dim_override;

typedef struct tn_session_options {
    size_t struct_size;
    const char *name;             /* of its allocator; NULL: the model's file or graph name */
    uint64_t memory_limit_bytes;  /* 0: none */
    uint32_t thread_count;        /* 0: the environment's; 1: runs on the calling thread alone */
    uint32_t max_concurrent_runs; /* 0: no bound */
    uint64_t wait_for_memory_ns;  /* how long a run may wait for a context; 0: TN_BUSY at once
                                     only when max_concurrent_runs is set */
    tn_retention retention;
    uint32_t retention_window;           /* 0: 16 runs */
    tn_execution_arena *execution_arena; /* borrowed reference is kept; NULL: one per context */
    tn_io_arena *io_arena;               /* retained; NULL: the session's own */
    tn_io_arena *execution_in_io_arena;  /* single-arena mode: intermediates in an I/O arena */
    bool disable_reuse;                  /* every value gets memory of its own; for comparing */
    bool disable_fusion; /* no elementwise programs, no epilogues, no affine folding */
    bool exact_only;     /* only rewrites that keep every bit */
    bool disable_in_place;
    bool poison;                          /* fill released intermediates with 0xAA */
    const struct tn_op_table *custom_ops; /* experimental.h; NULL: none */
    size_t dim_override_count;
    const tn_dim_override *dim_overrides;
} tn_session_options;

/* Makes a session: checks every node, reports all unsupported ones at once, plans, packs weights.
 * Ownership: the session retains `environment` and `model`.
 * Errors:    TN_INVALID_MODEL, TN_UNSUPPORTED (all nodes named), TN_INVALID_ARGUMENT, TN_LIMIT,
 *            TN_OUT_OF_MEMORY, TN_CLOSED. */
TN_API TN_MUST_USE tn_status tn_session_create(tn_environment *environment, tn_model *model,
                                               const tn_session_options *options, tn_session **out,
                                               tn_error *err);
TN_API tn_session *tn_session_retain(tn_session *session);
TN_API void tn_session_release(tn_session *session);
/* Ends use: later calls get TN_CLOSED. Exported outputs stay valid; everything else goes back. */
TN_API void tn_session_close(tn_session *session);
TN_API tn_allocator *tn_session_allocator(const tn_session *session); /* borrowed */
TN_API tn_io_arena *tn_session_io_arena(const tn_session *session);   /* borrowed */

/* Declared inputs and outputs, in file order. */
typedef struct tn_value_info {
    size_t struct_size;
    const char *name; /* borrowed from the session */
    tn_value_kind kind;
    tn_value_kind element_kind; /* of sequences and optionals */
    tn_dtype dtype;
    int32_t rank;                         /* -1: not declared */
    int64_t dims[TN_MAX_RANK];            /* -1: symbolic or unknown */
    const char *dim_symbols[TN_MAX_RANK]; /* NULL: none; borrowed */
} tn_value_info;

TN_API size_t tn_session_input_count(const tn_session *session);
TN_API size_t tn_session_output_count(const tn_session *session);
TN_API size_t tn_session_overridable_count(const tn_session *session);
/* Errors: TN_OUT_OF_RANGE. */
TN_API TN_MUST_USE tn_status tn_session_input_info(const tn_session *session, size_t index,
                                                   tn_value_info *out, tn_error *err);
TN_API TN_MUST_USE tn_status tn_session_output_info(const tn_session *session, size_t index,
                                                    tn_value_info *out, tn_error *err);
TN_API TN_MUST_USE tn_status tn_session_overridable_info(const tn_session *session, size_t index,
                                                         tn_value_info *out, tn_error *err);

/* Facts of the model for printing; strings borrowed from the session. */
typedef struct tn_model_meta {
    size_t struct_size;
    const char *producer_name, *producer_version, *graph_name, *domain, *doc_string;
    int64_t model_version, ir_version;
    size_t opset_count, property_count;
    const char *const *opset_domains;   /* [opset_count] */
    const int64_t *opset_versions;      /* [opset_count] */
    const char *const *property_keys;   /* [property_count] */
    const char *const *property_values; /* [property_count] */
} tn_model_meta;
TN_API void tn_session_meta(const tn_session *session, tn_model_meta *out);

/* Runs the model once.
 * Shapes:    feeds [feed_count] by name; every input without a default must be fed. Dense feeds are
 *            borrowed for the call; strided ones are staged once in the I/O arena and counted.
 *            output_names [output_count], or NULL for all declared outputs in order.
 * Ownership: out_values [output_count]: on entry each entry is NULL (a new value is made, release
 *            it with tn_tensor_release) or a tensor of the right type and shape to write into.
 * Errors:    TN_INVALID_ARGUMENT (names the input, wanted and given), TN_LIMIT, TN_OUT_OF_MEMORY,
 *            TN_BUSY, TN_TIMED_OUT, TN_CLOSED; kernel errors carry the node's name. A failed run
 *            changes nothing: out_values entries are as before.
 * Threads:   any number at once; each run checks a context out of the session's pool. */
typedef struct tn_feed {
    const char *name;
    const tn_value *value;
} tn_feed;
TN_API TN_MUST_USE tn_status tn_session_run(tn_session *session, const tn_feed *feeds,
                                            size_t feed_count, const char *const *output_names,
                                            size_t output_count, tn_value **out_values,
                                            tn_error *err);

/* A context of one's own: values stay readable between runs until cleared.
 * Ownership: destroy before or after the session, it retains it. */
TN_API TN_MUST_USE tn_status tn_context_create(tn_session *session, tn_context **out,
                                               tn_error *err);
TN_API void tn_context_destroy(tn_context *context);
/* Sets an input by name; retains `value`, borrowed memory stays borrowed. */
TN_API TN_MUST_USE tn_status tn_context_set(tn_context *context, const char *name, tn_value *value,
                                            tn_error *err);
TN_API TN_MUST_USE tn_status tn_context_run(tn_context *context, tn_error *err);
/* Lends a new reference of an output of the last run. Errors: TN_INVALID_ARGUMENT. */
TN_API TN_MUST_USE tn_status tn_context_get(tn_context *context, const char *name, tn_value **out,
                                            tn_error *err);
/* Drops all values; exported outputs are untouched. */
TN_API void tn_context_clear(tn_context *context);

/* Bound inputs and outputs, kept alive by the binding until unbound or rebound. */
TN_API TN_MUST_USE tn_status tn_io_binding_create(tn_session *session, tn_io_binding **out,
                                                  tn_error *err);
TN_API void tn_io_binding_destroy(tn_io_binding *binding);
TN_API TN_MUST_USE tn_status tn_io_binding_bind_input(tn_io_binding *binding, const char *name,
                                                      tn_value *value, tn_error *err);
/* `value` NULL: the run makes a new one each time. */
TN_API TN_MUST_USE tn_status tn_io_binding_bind_output(tn_io_binding *binding, const char *name,
                                                       tn_value *value, tn_error *err);
/* Makes an input tensor in the session's I/O arena, binds it and lends a reference to fill. */
TN_API TN_MUST_USE tn_status tn_io_binding_make_input(tn_io_binding *binding, const char *name,
                                                      tn_dtype dtype, const tn_shape *shape,
                                                      tn_value **out, tn_error *err);
TN_API void tn_io_binding_clear_inputs(tn_io_binding *binding);
TN_API void tn_io_binding_clear_outputs(tn_io_binding *binding);
TN_API TN_MUST_USE tn_status tn_io_binding_run(tn_io_binding *binding, tn_error *err);
/* A new reference of output `index` (order of binding) of the last run. */
TN_API TN_MUST_USE tn_status tn_io_binding_output(tn_io_binding *binding, size_t index,
                                                  tn_value **out, tn_error *err);
TN_API size_t tn_io_binding_output_count(const tn_io_binding *binding);

/* Counters since the session began or since tn_session_reset_counters. */
typedef struct tn_session_stats {
    size_t struct_size;
    uint64_t run_count, failed_run_count;
    uint64_t payload_copies, copied_bytes; /* staging, planned output copies */
    uint64_t plan_count, plan_hits, plan_misses;
    uint64_t weights_bytes; /* charged to the session itself */
    uint64_t shared_bytes;  /* in shared/<file>, counted in limit and peaks */
    uint64_t weights_mapped_bytes;
    uint64_t execution_live_bytes, execution_peak_bytes, execution_retained_bytes;
    uint64_t workspace_peak_bytes;
    uint64_t io_live_bytes, io_peak_bytes, io_leased_bytes, io_retained_bytes;
    uint64_t plan_metadata_bytes;
    uint64_t measured_peak_bytes;  /* whole session's, of the last run */
    uint64_t predicted_peak_bytes; /* of the plan used last */
    uint64_t execution_lower_bound_bytes;
    bool prediction_complete;
    uint64_t context_count;
} tn_session_stats;
TN_API void tn_session_get_stats(const tn_session *session, tn_session_stats *out);
TN_API void tn_session_reset_counters(tn_session *session);
/* Gives back retained blocks, idle contexts and cached plans beyond the newest. Bytes given back.
 */
TN_API size_t tn_session_trim(tn_session *session, tn_trim_level level);
TN_API TN_MUST_USE tn_status tn_session_set_memory_limit(tn_session *session, uint64_t limit_bytes,
                                                         tn_error *err);
/* The session's part of the tree as text; see tn_allocator_report. */
TN_API size_t tn_session_report(const tn_session *session, char *text, size_t capacity_bytes);

/* Shapes to plan for; inputs that are not named keep their declared shape. */
typedef struct tn_plan_shape {
    const char *input_name;
    tn_shape shape;
    const void *data; /* contents of small integer inputs that decide shapes; NULL: unknown */
} tn_plan_shape;

/* Plans without running.
 * Ownership: *out is new and independent of the session; free it with tn_plan_report_destroy.
 * Errors:    TN_INVALID_ARGUMENT naming an input whose shape is still unknown. */
TN_API TN_MUST_USE tn_status tn_session_plan(tn_session *session, const tn_plan_shape *shapes,
                                             size_t shape_count, tn_plan_report **out,
                                             tn_error *err);
TN_API void tn_plan_report_destroy(tn_plan_report *report);

typedef enum tn_plan_arena {
    TN_PLAN_EXECUTION,
    TN_PLAN_IO,
    TN_PLAN_INPUT,
    TN_PLAN_WEIGHT,
    TN_PLAN_ALIAS,  /* lies inside another value */
    TN_PLAN_DYNAMIC /* size known at run time only */
} tn_plan_arena;

typedef struct tn_plan_value {
    size_t struct_size;
    const char *name; /* borrowed from the report */
    tn_dtype dtype;
    tn_shape shape;
    uint16_t layout_block; /* 0: plain */
    uint64_t size_bytes;
    uint32_t birth, death; /* step indices, both included */
    uint64_t offset_bytes; /* in the slab (EXECUTION) or in its root (ALIAS) */
    tn_plan_arena arena;
    const char *alias_of; /* NULL: none */
    bool is_workspace;
} tn_plan_value;

typedef struct tn_plan_step {
    size_t struct_size;
    const char *name, *op, *variant; /* borrowed from the report */
    uint64_t workspace_bytes;
    double cost_ns;
    int rewrite_class; /* 0 exact, 1 reassociated, 2 approximate */
} tn_plan_step;

typedef struct tn_plan_summary {
    size_t struct_size;
    uint64_t predicted_peak_bytes; /* whole session, as in tn_session_stats */
    uint64_t execution_bytes;      /* slab */
    uint64_t lower_bound_bytes;    /* of the slab */
    uint64_t io_bytes, weights_bytes, metadata_bytes, workspace_peak_bytes;
    bool is_complete;
    size_t value_count, step_count, copy_count;
} tn_plan_summary;
TN_API void tn_plan_report_summary(const tn_plan_report *report, tn_plan_summary *out);
TN_API TN_MUST_USE tn_status tn_plan_report_value(const tn_plan_report *report, size_t index,
                                                  tn_plan_value *out, tn_error *err);
TN_API TN_MUST_USE tn_status tn_plan_report_step(const tn_plan_report *report, size_t index,
                                                 tn_plan_step *out, tn_error *err);
/* The plan as a table; CSV has MiniMalloc's columns id,lower,upper,size,offset. Return the bytes
 * needed, NUL included. */
TN_API size_t tn_plan_report_text(const tn_plan_report *report, char *text, size_t capacity_bytes);
TN_API size_t tn_plan_report_csv(const tn_plan_report *report, char *text, size_t capacity_bytes);

/* The arena of output `slot` of the node named `node_name`: what every run does. */
TN_API TN_MUST_USE tn_status tn_session_allocator_for_output(const tn_session *session,
                                                             const char *node_name, uint32_t slot,
                                                             tn_plan_arena *out, tn_error *err);

/* Operators: rows in registry order. */
typedef struct tn_op_info {
    size_t struct_size;
    const char *name, *domain;
    int32_t since_version, until_version; /* until 0: current */
    uint32_t input_types;                 /* of input 0: bit per tn_dtype; 0: any */
    const char *notes;                    /* NULL: none */
} tn_op_info;
TN_API size_t tn_op_count(void);
TN_API TN_MUST_USE tn_status tn_op_get(size_t index, tn_op_info *out, tn_error *err);

/* What `model` needs and this library lacks, one line per node; bytes needed, NUL included; 1 when
 * nothing is missing. */
TN_API size_t tn_model_missing_ops(const tn_model *model, char *text, size_t capacity_bytes);

/* Node listing for `inspect`. Strings borrowed from the model until its release; not terminated by
 * NUL, so with sizes. */
typedef struct tn_node_info {
    size_t struct_size;
    const char *name, *op_type, *domain;
    size_t name_bytes, op_type_bytes, domain_bytes;
    size_t input_count, output_count;
} tn_node_info;
TN_API size_t tn_model_node_count(const tn_model *model);
TN_API TN_MUST_USE tn_status tn_model_node_info(const tn_model *model, size_t index,
                                                tn_node_info *out, tn_error *err);
TN_API uint64_t tn_model_weight_bytes(const tn_model *model);

#ifdef __cplusplus
}
#endif
#endif
