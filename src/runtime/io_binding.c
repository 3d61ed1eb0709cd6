/* Bindings: inputs and outputs that stay bound over many runs.
 *
 * A binding owns what it binds: inputs are kept alive until unbound or rebound, results belong to
 * the binding until taken or replaced by the next run. */
#include <string.h>

#include "base/error.h"
#include "memory/tree.h"
#include "runtime/context_state.h"
#include "tensor/tensor_record.h"

typedef struct bound_output {
    size_t index;     /* declared position */
    tn_value *given;  /* one reference; written into; NULL: a new value each run */
    tn_value *result; /* one reference; of the last run */
} bound_output;

struct tn_io_binding {
    tn_session *session; /* one reference */
    atomic_flag is_busy;
    tn_value **inputs;     /* [session inputs] references */
    bound_output *outputs; /* [session outputs] in order of binding */
    size_t output_count;
    tn_feed *feeds;     /* [session inputs] scratch of a run */
    const char **names; /* [session outputs] */
    tn_value **values;  /* [session outputs] */
};

static void *get_array(tn_session *session, size_t count, size_t item_bytes) {
    return tn_allocator_calloc(session->plan_allocator, count + 1, item_bytes);
}

tn_status tn_io_binding_create(tn_session *session, tn_io_binding **out, tn_error *err) {
    tn_status status = TN_OK;
    tn_io_binding *binding = NULL;
    TN_REQUIRE(session != NULL && out != NULL, err, TN_INVALID_ARGUMENT,
               "a binding needs a session and a place for itself");
    *out = NULL;
    TN_TRY(tn_session_check_open(session, err));
    const uint64_t refusals = tn_tree_refusal_number(session->plan_allocator);
    binding = tn_allocator_calloc(session->plan_allocator, 1, sizeof *binding);
    TN_REQUIRE_GOTO(binding != NULL, cleanup, err, TN_OUT_OF_MEMORY, "a binding needs %zu bytes",
                    sizeof *binding);
    binding->session = tn_session_retain(session);
    atomic_flag_clear(&binding->is_busy);
    binding->inputs = get_array(session, session->input_count, sizeof *binding->inputs);
    binding->outputs = get_array(session, session->output_count, sizeof *binding->outputs);
    binding->feeds = get_array(session, session->input_count, sizeof *binding->feeds);
    binding->names = get_array(session, session->output_count, sizeof *binding->names);
    binding->values = get_array(session, session->output_count, sizeof *binding->values);
    TN_REQUIRE_GOTO(binding->inputs != NULL && binding->outputs != NULL && binding->feeds != NULL &&
                        binding->names != NULL && binding->values != NULL,
                    cleanup, err, TN_OUT_OF_MEMORY, "a binding's tables need memory");
    *out = binding;
    binding = NULL;

cleanup:
    tn_io_binding_destroy(binding);
    return tn_tree_explain(session->plan_allocator, refusals, status, err);
}

void tn_io_binding_destroy(tn_io_binding *binding) {
    if (binding == NULL) return;
    tn_session *session = binding->session;
    tn_allocator *allocator = session->plan_allocator;
    if (binding->inputs != NULL) tn_io_binding_clear_inputs(binding);
    if (binding->outputs != NULL) tn_io_binding_clear_outputs(binding);
    tn_allocator_free(allocator, binding->inputs);
    tn_allocator_free(allocator, binding->outputs);
    tn_allocator_free(allocator, binding->feeds);
    tn_allocator_free(allocator, binding->names);
    tn_allocator_free(allocator, binding->values);
    tn_allocator_free(allocator, binding);
    tn_session_release(session);
}

/* One user at a time: a second one gets TN_BUSY, also for binding while a run is going on. */
static tn_status enter(tn_io_binding *binding, tn_error *err) {
    /* acquire and release: what one user wrote is seen by the next one's thread */
    TN_REQUIRE(!atomic_flag_test_and_set_explicit(&binding->is_busy, memory_order_acquire), err,
               TN_BUSY, "the binding is in use on another thread");
    return TN_OK;
}

static void leave(tn_io_binding *binding) {
    atomic_flag_clear_explicit(&binding->is_busy, memory_order_release);
}

static tn_status bind_input(tn_io_binding *binding, const char *name, tn_value *value,
                            tn_error *err) {
    const size_t index = tn_session_find_input(binding->session, name);
    TN_REQUIRE(index != SIZE_MAX, err, TN_INVALID_ARGUMENT, "the model has no input '%s'", name);
    tn_value *held = tn_tensor_retain(value);
    TN_REQUIRE(held != NULL, err, TN_DEAD, "the value for input '%s' is already released", name);
    tn_tensor_release(binding->inputs[index]);
    binding->inputs[index] = held;
    return TN_OK;
}

tn_status tn_io_binding_bind_input(tn_io_binding *binding, const char *name, tn_value *value,
                                   tn_error *err) {
    TN_REQUIRE(binding != NULL && name != NULL && value != NULL, err, TN_INVALID_ARGUMENT,
               "binding an input needs a binding, a name and a value");
    TN_TRY(enter(binding, err));
    const tn_status status = bind_input(binding, name, value, err);
    leave(binding);
    return status;
}

static tn_status bind_output(tn_io_binding *binding, const char *name, tn_value *value,
                             tn_error *err) {
    const size_t index = tn_session_find_output(binding->session, name);
    TN_REQUIRE(index != SIZE_MAX, err, TN_INVALID_ARGUMENT, "the model has no output '%s'", name);
    size_t position = 0;
    while (position < binding->output_count && binding->outputs[position].index != index) {
        position++;
    }
    bound_output *output = &binding->outputs[position];
    if (position == binding->output_count) {
        *output = (bound_output){.index = index};
        binding->output_count++;
    }
    tn_tensor_release(output->given);
    tn_tensor_release(output->result);
    output->given = tn_tensor_retain(value);
    output->result = NULL;
    return TN_OK;
}

tn_status tn_io_binding_bind_output(tn_io_binding *binding, const char *name, tn_value *value,
                                    tn_error *err) {
    TN_REQUIRE(binding != NULL && name != NULL, err, TN_INVALID_ARGUMENT,
               "binding an output needs a binding and a name");
    TN_TRY(enter(binding, err));
    const tn_status status = bind_output(binding, name, value, err);
    leave(binding);
    return status;
}

static tn_status make_input(tn_io_binding *binding, const char *name, tn_dtype dtype,
                            const tn_shape *shape, tn_value **out, tn_error *err) {
    tn_session *session = binding->session;
    tn_status status = TN_OK;
    size_t size_bytes = 0;
    tn_allocation_handle handle = {0};
    tn_io_lease *lease = NULL;
    tn_value *value = NULL;
    TN_TRY(tn_session_check_open(session, err));
    TN_TRY(tn_shape_size_bytes(shape, dtype, &size_bytes, err));
    TN_TRY(tn_io_arena_allocate(session->io_arena, size_bytes, &handle, err));
    TN_TRY_GOTO(tn_io_arena_export(session->io_arena, &handle, &lease, err), cleanup);
    TN_TRY_GOTO(tn_tensor_create_leased(session->io_allocator, dtype, shape, &lease, &value, err),
                cleanup);
    TN_TRY_GOTO(bind_input(binding, name, value, err), cleanup);
    *out = value;
    value = NULL;

cleanup:
    tn_tensor_release(value);
    tn_io_lease_release(lease);
    if (handle.arena != NULL) (void)tn_allocation_handle_reset(&handle);
    return status;
}

tn_status tn_io_binding_make_input(tn_io_binding *binding, const char *name, tn_dtype dtype,
                                   const tn_shape *shape, tn_value **out, tn_error *err) {
    TN_REQUIRE(binding != NULL && name != NULL && shape != NULL && out != NULL, err,
               TN_INVALID_ARGUMENT, "making an input needs a binding, a name and a shape");
    *out = NULL;
    TN_TRY(enter(binding, err));
    const tn_status status = make_input(binding, name, dtype, shape, out, err);
    leave(binding);
    return status;
}

void tn_io_binding_clear_inputs(tn_io_binding *binding) {
    for (size_t i = 0; i < binding->session->input_count; i++) {
        tn_tensor_release(binding->inputs[i]);
        binding->inputs[i] = NULL;
    }
}

void tn_io_binding_clear_outputs(tn_io_binding *binding) {
    for (size_t i = 0; i < binding->output_count; i++) {
        tn_tensor_release(binding->outputs[i].given);
        tn_tensor_release(binding->outputs[i].result);
    }
    binding->output_count = 0;
}

static tn_status run_bound(tn_io_binding *binding, tn_error *err) {
    const tn_session *session = binding->session;
    size_t feed_count = 0;
    for (size_t i = 0; i < session->input_count; i++) {
        if (binding->inputs[i] == NULL) continue;
        binding->feeds[feed_count++] = (tn_feed){session->inputs[i].name, binding->inputs[i]};
    }
    for (size_t i = 0; i < binding->output_count; i++) {
        binding->names[i] = session->outputs[binding->outputs[i].index].name;
        binding->values[i] = binding->outputs[i].given;
    }
    TN_TRY(tn_session_run(binding->session, binding->feeds, feed_count, binding->names,
                          binding->output_count, binding->values, err));
    for (size_t i = 0; i < binding->output_count; i++) {
        bound_output *output = &binding->outputs[i];
        tn_tensor_release(output->result);
        output->result =
            output->given != NULL ? tn_tensor_retain(output->given) : binding->values[i];
    }
    return TN_OK;
}

tn_status tn_io_binding_run(tn_io_binding *binding, tn_error *err) {
    TN_REQUIRE(binding != NULL, err, TN_INVALID_ARGUMENT, "there is no binding");
    TN_TRY(enter(binding, err));
    const tn_status status = run_bound(binding, err);
    leave(binding);
    return status;
}

tn_status tn_io_binding_output(tn_io_binding *binding, size_t index, tn_value **out,
                               tn_error *err) {
    *out = NULL;
    TN_REQUIRE(index < binding->output_count, err, TN_OUT_OF_RANGE, "output %zu of %zu", index,
               binding->output_count);
    TN_REQUIRE(binding->outputs[index].result != NULL, err, TN_INVALID_ARGUMENT,
               "the binding has not run yet");
    *out = tn_tensor_retain(binding->outputs[index].result);
    return TN_OK;
}

size_t tn_io_binding_output_count(const tn_io_binding *binding) {
    return binding->output_count;
}
