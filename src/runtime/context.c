/* Contexts: made, freed, checked out; the arena behind one, whichever kind it is.
 *
 * A context's execution memory is its own arena, the caller's execution arena, or, in single-arena
 * mode, the caller's I/O arena; the executor only sees the calls at the end of this file. */
#include <stdio.h>
#include <string.h>

#include "base/checked_size.h"
#include "runtime/context_state.h"

static void *get_array(tn_context *context, size_t count, size_t item_bytes) {
    return tn_allocator_calloc(context->allocator, count + 1, item_bytes);
}

static tn_status make_arena(tn_context *context, tn_error *err) {
    tn_session *session = context->session;
    if (session->options.execution_in_io_arena != NULL) {
        context->arena = tn_io_arena_as_arena(session->options.execution_in_io_arena);
        tn_slab_init(&context->own_slab, context->arena, session->options.retention_window);
        return TN_OK;
    }
    if (session->options.execution_arena != NULL) {
        context->execution_arena = session->options.execution_arena;
    } else {
        const tn_arena_options options = tn_session_arena_options(session);
        TN_TRY(tn_execution_arena_create(context->allocator, &options, &context->execution_arena,
                                         err));
        context->owns_arena = true;
    }
    context->arena = tn_execution_arena_as_arena(context->execution_arena);
    return TN_OK;
}

static tn_status make_tables(tn_context *context, tn_error *err) {
    const tn_session *session = context->session;
    context->io = get_array(context, session->output_count, sizeof *context->io);
    context->staged = get_array(context, session->input_count, sizeof *context->staged);
    context->feeds = get_array(context, session->input_count, sizeof *context->feeds);
    context->was_given = get_array(context, session->output_count, sizeof *context->was_given);
    context->held_inputs = get_array(context, session->input_count, sizeof *context->held_inputs);
    context->held_outputs =
        get_array(context, session->output_count, sizeof *context->held_outputs);
    context->errors = get_array(context, session->worker_count, sizeof *context->errors);
    context->signature =
        get_array(context, session->signature_capacity, sizeof *context->signature);
    const bool is_whole = context->io != NULL && context->staged != NULL &&
                          context->feeds != NULL && context->was_given != NULL &&
                          context->held_inputs != NULL && context->held_outputs != NULL &&
                          context->errors != NULL && context->signature != NULL;
    TN_REQUIRE(is_whole, err, TN_OUT_OF_MEMORY, "a context's tables need memory");
    return TN_OK;
}

tn_status tn_context_make(tn_session *session, bool users, tn_context **out, tn_error *err) {
    tn_status status = TN_OK;
    tn_context *context = NULL;
    tn_allocator *node = NULL;
    char name[32];
    *out = NULL;
    (void)snprintf(name, sizeof name, "context-%u", session->context_count);
    const tn_allocator_options options = {.struct_size = sizeof options, .name = name};
    TN_TRY(tn_allocator_create_child(session->execution_allocator, &options, &node, err));
    context = tn_allocator_calloc(session->plan_allocator, 1, sizeof *context);
    TN_REQUIRE_GOTO(context != NULL, cleanup, err, TN_OUT_OF_MEMORY, "a context needs %zu bytes",
                    sizeof *context);
    context->session = session;
    context->allocator = session->plan_allocator;
    atomic_flag_clear(&context->is_busy);
    context->run_bump.allocator = session->plan_allocator;
    TN_TRY_GOTO(make_tables(context, err), cleanup);
    context->allocator = node;
    node = NULL;
    TN_TRY_GOTO(make_arena(context, err), cleanup);
    if (users) {
        context->is_users = true;
        (void)tn_session_retain(session);
    }
    *out = context;
    context = NULL;

cleanup:
    tn_context_free(context);
    tn_allocator_release(node);
    return status;
}

static void free_tables(tn_context *context) {
    tn_allocator *allocator = context->session->plan_allocator;
    tn_allocator_free(allocator, context->io);
    tn_allocator_free(allocator, context->staged);
    tn_allocator_free(allocator, context->feeds);
    tn_allocator_free(allocator, context->was_given);
    tn_allocator_free(allocator, context->held_inputs);
    tn_allocator_free(allocator, context->held_outputs);
    tn_allocator_free(allocator, context->errors);
    tn_allocator_free(allocator, context->signature);
    tn_allocator_free(allocator, context->values);
    tn_allocator_free(allocator, context->dynamic);
    tn_allocator_free(allocator, context->temporaries);
}

void tn_context_free(tn_context *context) {
    if (context == NULL) return;
    tn_session *session = context->session;
    if (context->held_inputs != NULL && context->held_outputs != NULL) tn_context_drop(context);
    if (context->bound != NULL) tn_session_unuse_plan(session, context->bound);
    if (context->owns_arena) tn_execution_arena_destroy(context->execution_arena);
    if (context->execution_arena == NULL && context->arena != NULL) {
        tn_slab_deinit(&context->own_slab);
    }
    tn_bump_deinit(&context->run_bump);
    free_tables(context);
    if (context->allocator != session->plan_allocator) tn_allocator_release(context->allocator);
    tn_allocator_free(session->plan_allocator, context);
}

/* Drops values that a user's context holds. */
void tn_context_drop(tn_context *context) {
    for (size_t i = 0; i < context->session->input_count; i++) {
        tn_tensor_release(context->held_inputs[i]);
        context->held_inputs[i] = NULL;
    }
    for (size_t i = 0; i < context->session->output_count; i++) {
        tn_tensor_release(context->held_outputs[i]);
        context->held_outputs[i] = NULL;
    }
}

tn_status tn_context_begin_run(tn_context *context, tn_error *err) {
    TN_TRY(tn_arena_begin_run(context->arena, err));
    tn_io_arena_begin_run(context->session->io_arena);
    return TN_OK;
}

/* An execution arena ends its own slab; a single arena's run is counted once. */
void tn_context_end_run(tn_context *context) {
    tn_arena *io_arena = tn_io_arena_as_arena(context->session->io_arena);
    if (context->execution_arena == NULL) tn_slab_end_run(&context->own_slab);
    tn_arena_end_run(context->arena);
    if (io_arena != context->arena) tn_arena_end_run(io_arena);
}

tn_status tn_context_reserve_slab(tn_context *context, size_t size_bytes, void **out_slab,
                                  tn_error *err) {
    if (context->execution_arena != NULL) {
        return tn_execution_arena_reserve_slab(context->execution_arena, size_bytes, out_slab, err);
    }
    return tn_slab_reserve(&context->own_slab, size_bytes, out_slab, err);
}

tn_status tn_context_allocate(tn_context *context, size_t size_bytes, tn_allocation_handle *out,
                              tn_error *err) {
    return tn_arena_allocate(context->arena, size_bytes, out, err);
}

/* Room for the plan's values: grows, never shrinks while the context lives. */
tn_status tn_context_reserve_tables(tn_context *context, const tn_plan *plan, tn_error *err) {
    tn_allocator *allocator = context->session->plan_allocator;
    const uint32_t wanted = plan->slot_count + 1; /* one more for packed weights of dynamic steps */
    if (wanted > context->value_capacity) {
        void **values = tn_allocator_realloc(allocator, context->values, wanted * sizeof *values);
        TN_REQUIRE(values != NULL, err, TN_OUT_OF_MEMORY, "a table of %u values needs memory",
                   wanted);
        context->values = values;
        context->value_capacity = wanted;
    }
    const uint32_t dynamic = plan->dynamic_value_count;
    if (dynamic > context->dynamic_capacity) {
        tn_dynamic_value *grown =
            tn_allocator_realloc(allocator, context->dynamic, dynamic * sizeof *grown);
        TN_REQUIRE(grown != NULL, err, TN_OUT_OF_MEMORY, "a table of %u values needs memory",
                   dynamic);
        memset(grown, 0, dynamic * sizeof *grown);
        context->dynamic = grown;
        context->dynamic_capacity = dynamic;
    }
    return TN_OK;
}
