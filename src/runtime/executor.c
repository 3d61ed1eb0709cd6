/* One run on one context.
 *
 * The plan has decided everything; here addresses are filled in, steps are run and results
 * exported. Nothing is allocated from the system on a repeated signature: the slab is kept, I/O
 * blocks come from their free lists, records of results from small free lists. Whatever fails, the
 * last part gives back all that the run took. */
#include <string.h>

#include "base/checked_size.h"
#include "runtime/context_state.h"
#include "tensor/tensor_record.h"

typedef struct tile_job {
    const tn_step *step;
    tn_kernel_context *kernel;
} tile_job;

static void run_tile(void *ctx, uint32_t tile, uint32_t worker) {
    const tile_job *job = ctx;
    if (job->kernel->errors[worker].code != TN_OK) return;
    const tn_status status = job->step->run(job->step->record, job->kernel, tile, tile + 1, worker);
    job->kernel->errors[worker].code = status;
}

static tn_status make_output(tn_kernel_context *kernel, uint32_t slot, tn_dtype dtype,
                             const tn_shape *shape, void **out_data) {
    tn_context *context = kernel->runtime;
    const tn_fact fact = {.kind = TN_KIND_TENSOR, .dtype = dtype, .shape = *shape};
    return tn_context_make_dynamic(context, context->step->out[slot], &fact, out_data,
                                   tn_kernel_error(kernel, 0));
}

static tn_status make_temporary(tn_kernel_context *kernel, size_t size_bytes, void **out_data) {
    tn_context *context = kernel->runtime;
    return tn_context_make_temporary(context, size_bytes, out_data, tn_kernel_error(kernel, 0));
}

/* The first worker's error, with the node's name in front. */
static tn_status report_error(const tn_context *context, const tn_step *step, tn_status status,
                              tn_error *err) {
    const tn_session *session = context->session;
    for (uint32_t w = 0; w < session->worker_count; w++) {
        if (context->errors[w].code == TN_OK) continue;
        status = context->errors[w].code;
        if (err != NULL) *err = context->errors[w];
        break;
    }
    if (step->node != TN_NO_NODE) {
        const char *name = context->bound->plan->ir->nodes[step->node].name_text;
        tn_error_prefix(err, name);
        tn_error_set_node(err, name);
    }
    return status;
}

tn_status tn_context_run_tiles(tn_context *context, const tn_step *step, char *shared_scratch,
                               char *worker_scratch, tn_error *err) {
    tn_session *session = context->session;
    tn_kernel_context kernel = {.values = context->values,
                                .in = step->in,
                                .out = step->out,
                                .shared_scratch = shared_scratch,
                                .worker_scratch = worker_scratch,
                                .worker_scratch_stride = step->worker_scratch_stride,
                                .errors = context->errors,
                                .runtime = context,
                                .make_output = make_output,
                                .make_temporary = make_temporary};
    context->step = step;
    tn_status status = TN_OK;
    for (uint32_t w = 0; w < session->worker_count; w++) context->errors[w].code = TN_OK;
    for (kernel.phase = 0; kernel.phase < step->phase_count && status == TN_OK; kernel.phase++) {
        const uint32_t tiles = step->tile_counts[kernel.phase];
        if (session->pool == NULL || tiles == 1) {
            status = step->run(step->record, &kernel, 0, tiles, 0);
            continue;
        }
        tile_job job = {step, &kernel};
        tn_thread_pool_run(session->pool, run_tile, &job, tiles);
        for (uint32_t w = 0; w < session->worker_count && status == TN_OK; w++) {
            status = context->errors[w].code;
        }
    }
    if (context->temporary_count > 0) tn_context_release_temporaries(context);
    return status == TN_OK ? TN_OK : report_error(context, step, status, err);
}

static tn_status run_copy(tn_context *context, const tn_step *step, tn_error *err) {
    const uint32_t from = step->in[0];
    const uint32_t to = step->out[0];
    const tn_fact *fact = tn_context_fact(context, from);
    size_t size_bytes = 0;
    TN_TRY(tn_fact_size_bytes(fact, &size_bytes, err));
    if (context->bound->plan->slots[to].dynamic_index != UINT32_MAX) {
        void *data = NULL;
        TN_TRY(tn_context_make_dynamic(context, to, fact, &data, err));
    }
    if (size_bytes > 0) memcpy(context->values[to], context->values[from], size_bytes);
    context->copies++;
    context->copied_bytes += size_bytes;
    return TN_OK;
}

static tn_status run_step(tn_context *context, const tn_step *step, tn_error *err) {
    if (step->is_dynamic) return tn_context_run_dynamic(context, step, err);
    return tn_context_run_tiles(context, step, context->slab + step->shared_scratch_offset,
                                context->slab + step->worker_scratch_offset, err);
}

static tn_status run_steps(tn_context *context, tn_error *err) {
    const tn_plan *plan = context->bound->plan;
    uint32_t next = 0;
    while (next < plan->step_count) {
        const tn_step *step = &plan->steps[next++];
        switch (step->kind) {
            case TN_STEP_KERNEL:
                TN_TRY(run_step(context, step, err));
                break;
            case TN_STEP_COPY:
                TN_TRY(run_copy(context, step, err));
                break;
            case TN_STEP_ASSIGN:
                TN_TRY(tn_context_assign(context, step, err));
                break;
            case TN_STEP_BRANCH:
                if (*(const uint8_t *)context->values[step->in[0]] == 0) next = step->target;
                break;
            case TN_STEP_JUMP:
                next = step->target;
                break;
        }
        for (uint32_t i = 0; i < step->release_count; i++) {
            tn_context_release_dynamic(context, plan->releases[step->release_first + i]);
        }
    }
    return TN_OK;
}

/* Addresses of everything that does not change from run to run of the bound plan. */
static void set_fixed_values(tn_context *context) {
    const tn_plan *plan = context->bound->plan;
    for (uint32_t v = 0; v < plan->slot_count; v++) {
        const tn_plan_slot *slot = &plan->slots[v];
        const tn_plan_slot *root = &plan->slots[slot->root];
        if (root->place == TN_PLACE_CONSTANT) {
            context->values[v] = (void *)(uintptr_t)slot->data;
        } else if (root->place == TN_PLACE_SLAB) {
            context->values[v] = context->slab + root->slab_offset + slot->root_offset;
        } else {
            context->values[v] = NULL;
        }
    }
}

static tn_status bind_plan(tn_context *context, const tn_run_request *request, tn_error *err) {
    tn_session *session = context->session;
    tn_cached_plan *found = NULL;
    TN_TRY(tn_session_find_plan(session, request->feeds, context->signature, context->bound, &found,
                                err));
    const bool is_same = found == context->bound;
    if (!is_same) {
        const tn_status status = tn_context_reserve_tables(context, found->plan, err);
        if (status != TN_OK) {
            tn_session_unuse_plan(session, found);
            return status;
        }
        if (context->bound != NULL) tn_session_unuse_plan(session, context->bound);
        context->bound = found;
        context->slab = NULL;
    }
    void *slab = NULL;
    TN_TRY(tn_context_reserve_slab(context, found->plan->slab_bytes, &slab, err));
    if (!is_same || slab != context->slab) {
        context->slab = slab;
        set_fixed_values(context);
    }
    return TN_OK;
}

/* A feed that is not dense gets one dense copy in the I/O arena. */
static tn_status stage_input(tn_context *context, size_t index, const tn_tensor *tensor,
                             void **out_data, tn_error *err) {
    const size_t size_bytes = tn_tensor_size_bytes(tensor);
    tn_allocation_handle *handle = &context->staged[index];
    TN_TRY(tn_io_arena_allocate(context->session->io_arena, size_bytes, handle, err));
    tn_tensor_copy_dense(tensor, handle->data);
    context->copies++;
    context->copied_bytes += size_bytes;
    *out_data = handle->data;
    return TN_OK;
}

static tn_status set_inputs(tn_context *context, const tn_run_request *request, tn_error *err) {
    const tn_ir *ir = context->bound->plan->ir;
    for (uint32_t i = 0; i < ir->input_count; i++) {
        const uint32_t value = ir->inputs[i];
        if (ir->values[value].role != TN_IR_INPUT) continue;
        const tn_tensor *tensor = request->feeds[i];
        void *data = tn_tensor_borrow_data(tensor);
        if (!tn_tensor_is_dense(tensor)) {
            TN_TRY(stage_input(context, i, tensor, &data, err));
        }
        context->values[value] = data;
    }
    return TN_OK;
}

static bool overlaps(const tn_tensor *a, const tn_tensor *b) {
    const char *a_data = tn_tensor_borrow_data(a);
    const char *b_data = tn_tensor_borrow_data(b);
    return a_data < b_data + tn_tensor_size_bytes(b) && b_data < a_data + tn_tensor_size_bytes(a);
}

static bool overlaps_any_feed(const tn_context *context, const tn_run_request *request,
                              const tn_tensor *output) {
    for (size_t i = 0; i < context->session->input_count; i++) {
        const tn_tensor *feed = request->feeds[i];
        if (feed != NULL && (!tn_tensor_is_dense(feed) || overlaps(feed, output))) return true;
    }
    return false;
}

static tn_status check_given_output(const tn_context *context, uint32_t index,
                                    const tn_tensor *given, tn_error *err) {
    const tn_plan *plan = context->bound->plan;
    const tn_fact *fact = tn_context_fact(context, plan->outputs[index].value);
    const tn_shape *shape = tn_tensor_borrow_shape(given);
    const char *name = context->session->outputs[index].name;
    char wanted[160];
    char found[160];
    TN_REQUIRE(tn_tensor_is_dense(given), err, TN_INVALID_ARGUMENT,
               "output '%s': the tensor to write into is not dense", name);
    TN_REQUIRE(fact->dtype == tn_tensor_dtype(given) && fact->dtype != TN_DTYPE_STRING, err,
               TN_INVALID_ARGUMENT, "output '%s' is %s, the tensor to write into is %s", name,
               tn_dtype_name(fact->dtype), tn_dtype_name(tn_tensor_dtype(given)));
    const bool is_same =
        !tn_fact_is_sized(fact) ||
        (shape->rank == fact->shape.rank &&
         memcmp(shape->dims, fact->shape.dims, (size_t)shape->rank * sizeof shape->dims[0]) == 0);
    TN_REQUIRE(is_same, err, TN_INVALID_ARGUMENT,
               "output '%s' has shape %s, the tensor to write into has %s", name,
               tn_shape_text(&fact->shape, wanted, sizeof wanted),
               tn_shape_text(shape, found, sizeof found));
    return TN_OK;
}

/* Two outputs in the same bytes: whatever stood there at the end would be wrong for one of them. */
static tn_status check_given_are_apart(const tn_context *context, const tn_run_request *request,
                                       tn_error *err) {
    const uint32_t count = context->bound->plan->output_count;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; request->outputs[i] != NULL && k < i; k++) {
            TN_REQUIRE(
                request->outputs[k] == NULL || !overlaps(request->outputs[i], request->outputs[k]),
                err, TN_INVALID_ARGUMENT,
                "the tensors to write outputs '%s' and '%s' into share memory",
                context->session->outputs[k].name, context->session->outputs[i].name);
        }
    }
    return TN_OK;
}

/* I/O blocks of all outputs of known size; a tensor given by the caller takes a block's place. */
static tn_status set_outputs(tn_context *context, const tn_run_request *request, tn_error *err) {
    const tn_plan *plan = context->bound->plan;
    TN_TRY(check_given_are_apart(context, request, err));
    for (uint32_t i = 0; i < plan->output_count; i++) {
        const tn_tensor *given = request->outputs[i];
        if (given != NULL) TN_TRY(check_given_output(context, i, given, err));
        const uint32_t root = plan->slots[plan->outputs[i].value].root;
        const tn_plan_slot *slot = &plan->slots[root];
        if (slot->place != TN_PLACE_IO) continue;
        if (given != NULL && !overlaps_any_feed(context, request, given)) {
            context->values[root] = tn_tensor_borrow_data(given);
            continue;
        }
        TN_TRY(tn_io_arena_allocate(context->session->io_arena, slot->size_bytes, &context->io[i],
                                    err));
        context->values[root] = context->io[i].data;
    }
    for (uint32_t i = 0; i < plan->late_count; i++) {
        const uint32_t value = plan->late[i];
        const tn_plan_slot *slot = &plan->slots[value];
        context->values[value] = (char *)context->values[slot->root] + slot->root_offset;
    }
    return TN_OK;
}

/* Strings of a result: references and bytes together in one block, so that it outlives all else. */
static tn_status own_strings(tn_context *context, const tn_fact *fact,
                             tn_allocation_handle *inout_handle, tn_error *err) {
    const tn_string *strings = inout_handle->data;
    const size_t count = tn_fact_len_elems(fact);
    size_t size_bytes = count * sizeof *strings;
    for (size_t i = 0; i < count; i++) {
        TN_REQUIRE(tn_size_add(size_bytes, strings[i].size_bytes, &size_bytes), err, TN_OVERFLOW,
                   "%zu strings do not fit in memory", count);
    }
    tn_allocation_handle owned = {0};
    TN_TRY(tn_io_arena_allocate(context->session->io_arena, size_bytes, &owned, err));
    tn_string *copies = owned.data;
    char *bytes = (char *)(copies + count);
    for (size_t i = 0; i < count; i++) {
        if (strings[i].size_bytes > 0) memcpy(bytes, strings[i].data, strings[i].size_bytes);
        copies[i] = (tn_string){bytes, strings[i].size_bytes};
        bytes += strings[i].size_bytes;
    }
    (void)tn_allocation_handle_reset(inout_handle);
    *inout_handle = owned;
    context->copies++;
    context->copied_bytes += size_bytes;
    return TN_OK;
}

/* The block that holds output `i`: its own, or the one made during the run. */
static tn_allocation_handle *handle_of_output(tn_context *context, uint32_t i) {
    const tn_plan *plan = context->bound->plan;
    const uint32_t root = plan->slots[plan->outputs[i].value].root;
    const uint32_t dynamic = plan->slots[root].dynamic_index;
    return plan->slots[root].place == TN_PLACE_DYNAMIC ? &context->dynamic[dynamic].handle
                                                       : &context->io[i];
}

static tn_status write_given(tn_context *context, uint32_t i, tn_tensor *given, tn_error *err) {
    TN_TRY(check_given_output(context, i, given, err));
    const uint32_t value = context->bound->plan->outputs[i].value;
    void *target = tn_tensor_borrow_data(given);
    if (context->values[value] == target) return TN_OK;
    const size_t size_bytes = tn_tensor_size_bytes(given);
    if (size_bytes > 0) memcpy(target, context->values[value], size_bytes);
    context->copies++;
    context->copied_bytes += size_bytes;
    return TN_OK;
}

static tn_status export_output(tn_context *context, uint32_t i, tn_value **out, tn_error *err) {
    tn_session *session = context->session;
    const uint32_t value = context->bound->plan->outputs[i].value;
    const tn_fact *fact = tn_context_fact(context, value);
    tn_allocation_handle *handle = handle_of_output(context, i);
    tn_io_lease *lease = NULL;
    if (fact->dtype == TN_DTYPE_STRING) TN_TRY(own_strings(context, fact, handle, err));
    TN_TRY(tn_io_arena_export(session->io_arena, handle, &lease, err));
    const tn_status status =
        tn_tensor_create_leased(session->io_allocator, fact->dtype, &fact->shape, &lease, out, err);
    tn_io_lease_release(lease); /* NULL once the tensor has it */
    return status;
}

/* All wanted outputs, or none: what was made before a failure is dropped. */
static tn_status export_outputs(tn_context *context, const tn_run_request *request, tn_error *err) {
    const uint32_t count = context->bound->plan->output_count;
    tn_status status = TN_OK;
    uint32_t done = 0;
    for (; done < count && status == TN_OK; done++) {
        if (!request->wanted[done]) continue;
        context->was_given[done] = request->outputs[done] != NULL;
        status = context->was_given[done]
                     ? write_given(context, done, request->outputs[done], err)
                     : export_output(context, done, &request->outputs[done], err);
    }
    if (status == TN_OK) return TN_OK;
    for (uint32_t i = 0; i < done; i++) {
        if (!request->wanted[i] || context->was_given[i]) continue;
        tn_tensor_release(request->outputs[i]);
        request->outputs[i] = NULL;
    }
    return status;
}

static void give_back(tn_context *context) {
    tn_session *session = context->session;
    for (size_t i = 0; i < session->output_count; i++) {
        if (context->io[i].arena != NULL) (void)tn_allocation_handle_reset(&context->io[i]);
    }
    for (size_t i = 0; i < session->input_count; i++) {
        if (context->staged[i].arena == NULL) continue;
        (void)tn_allocation_handle_reset(&context->staged[i]);
    }
    if (context->bound != NULL && context->bound->plan->dynamic_count > 0) {
        tn_context_release_all_dynamic(context);
    }
    if (context->run_bump.used_bytes > 0) tn_bump_reset(&context->run_bump);
}

tn_status tn_context_execute(tn_context *context, const tn_run_request *request, tn_error *err) {
    tn_session *session = context->session;
    tn_status status = TN_OK;
    context->copies = 0;
    context->copied_bytes = 0;
    TN_TRY(tn_context_begin_run(context, err));
    if (session->pool != NULL) tn_thread_pool_begin_run(session->pool);
    TN_TRY_GOTO(bind_plan(context, request, err), cleanup);
    TN_TRY_GOTO(set_inputs(context, request, err), cleanup);
    TN_TRY_GOTO(set_outputs(context, request, err), cleanup);
    TN_TRY_GOTO(run_steps(context, err), cleanup);
    TN_TRY_GOTO(export_outputs(context, request, err), cleanup);

cleanup:
    if (session->pool != NULL) tn_thread_pool_end_run(session->pool);
    give_back(context);
    tn_context_end_run(context);
    return status;
}
