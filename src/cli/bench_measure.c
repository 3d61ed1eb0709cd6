/* The measured runs. Everything that is written while measuring was allocated and touched before,
 * so that what is counted comes from the library. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench_state.h"
#include "cli/format.h"
#include "cli/host.h"

#define LEAST_RUNS 50
#define LEAST_TIME_NS UINT64_C(1000000000)
#define PROGRESS_AFTER_NS UINT64_C(2000000000)

void bench_read_counters(const bench_state *state, bench_counters *out) {
    tn_session_stats session = {.struct_size = sizeof session};
    tn_page_source_stats source = {.struct_size = sizeof source};
    tn_session_get_stats(state->opened.session, &session);
    tn_allocator_get_page_source_stats(tn_environment_allocator(state->opened.environment),
                                       &source);
    *out = (bench_counters){.minor_faults = cli_minor_faults(),
                            .system_allocations = source.alloc_count,
                            .system_frees = source.free_count,
                            .heap_allocations = cli_heap_allocations(),
                            .payload_copies = session.payload_copies,
                            .copied_bytes = session.copied_bytes};
}

static void note_run(bench_state *state, const bench_counters *before, uint64_t run) {
    bench_counters now;
    bench_read_counters(state, &now);
    const bool has_allocated = now.heap_allocations > before->heap_allocations ||
                               now.system_allocations > before->system_allocations;
    if (has_allocated && state->first_allocating_run == UINT64_MAX) {
        state->first_allocating_run = run;
    }
    if (now.minor_faults > before->minor_faults && state->first_faulting_run == UINT64_MAX) {
        state->first_faulting_run = run;
    }
    if (now.payload_copies > before->payload_copies && state->first_copying_run == UINT64_MAX) {
        state->first_copying_run = run;
    }
}

static bool asserts_anything(const cli_args *args) {
    return cli_args_has(args, "assert-no-alloc") || cli_args_has(args, "assert-no-faults") ||
           cli_args_has(args, "assert-no-copies");
}

/* One run into `values`, which are released again unless outputs are held. */
static tn_status run_once(bench_state *state, uint64_t run, tn_value **values, tn_error *err) {
    const cli_feeds *set = &state->sets[run % state->set_count];
    const uint64_t start = cli_now_ns();
    const tn_status status = tn_session_run(state->opened.session, set->feeds, set->count, NULL,
                                            state->output_count, values, err);
    state->latencies_ns[run] = cli_now_ns() - start;
    if (state->starts_ns != NULL) state->starts_ns[run] = start;
    for (size_t i = 0; i < state->output_count && state->held == NULL; i++) {
        tn_tensor_release(values[i]);
        values[i] = NULL;
    }
    return status;
}

static bool is_enough(const bench_state *state, uint64_t run, uint64_t start_ns) {
    if (run >= state->run_capacity) return true;
    if (state->run_goal > 0) return run >= state->run_goal;
    return run >= LEAST_RUNS && cli_now_ns() - start_ns >= LEAST_TIME_NS;
}

static void show_progress(const bench_state *state, uint64_t run, uint64_t *next_ns,
                          uint64_t start_ns) {
    char text[CLI_TEXT_BYTES];
    const uint64_t now = cli_now_ns();
    if (now < *next_ns || !isatty(STDERR_FILENO)) return;
    *next_ns = now + PROGRESS_AFTER_NS / 4;
    (void)dprintf(STDERR_FILENO, "\r%llu runs, %s ", (unsigned long long)run,
                  cli_time_text(now - start_ns, text));
    if (state->run_goal > 0) {
        (void)dprintf(STDERR_FILENO, "of %llu ", (unsigned long long)state->run_goal);
    }
}

static tn_status measure_alone(bench_state *state, tn_value **scratch, tn_error *err) {
    const bool has_assertions = asserts_anything(state->args);
    const uint64_t start_ns = cli_now_ns();
    uint64_t next_ns = start_ns + PROGRESS_AFTER_NS;
    bench_counters before = {0};
    uint64_t run = 0;
    for (; !is_enough(state, run, start_ns); run++) {
        tn_value **values = state->held == NULL ? scratch : &state->held[run * state->output_count];
        if (has_assertions) bench_read_counters(state, &before);
        const tn_status status = run_once(state, run, values, err);
        if (has_assertions) note_run(state, &before, run);
        if (status != TN_OK) return status;
        show_progress(state, run, &next_ns, start_ns);
    }
    if (next_ns > start_ns + PROGRESS_AFTER_NS) (void)dprintf(STDERR_FILENO, "\r%40s\r", "");
    state->run_count = run;
    return TN_OK;
}

typedef struct bench_worker {
    bench_state *state;
    pthread_t thread;
    bool is_started;
    uint64_t first_run, run_count; /* its part of latencies_ns */
    tn_value **values;             /* [output_count], owned */
    pthread_barrier_t *barrier;    /* all start together */
    tn_status status;
    tn_error err;
} bench_worker;

static void *work(void *argument) {
    bench_worker *worker = argument;
    bench_state *state = worker->state;
    (void)pthread_barrier_wait(worker->barrier);
    for (uint64_t i = 0; i < worker->run_count && worker->status == TN_OK; i++) {
        const uint64_t run = worker->first_run + i;
        tn_value **values =
            state->held == NULL ? worker->values : &state->held[run * state->output_count];
        worker->status = run_once(state, run, values, &worker->err);
    }
    (void)pthread_barrier_wait(worker->barrier);
    return NULL;
}

/* Starts the threads and lets them wait, then counts from the common start to the common end. */
static tn_status measure_workers(bench_state *state, bench_worker *workers,
                                 pthread_barrier_t *barrier, bench_counters *before,
                                 tn_error *err) {
    const uint64_t share = state->run_goal / state->concurrency;
    for (uint32_t w = 0; w < state->concurrency; w++) {
        bench_worker *worker = &workers[w];
        worker->state = state;
        worker->barrier = barrier;
        worker->first_run = share * w;
        worker->run_count = w + 1 == state->concurrency ? state->run_goal - share * w : share;
        worker->values = calloc(state->output_count + 1, sizeof(tn_value *));
        worker->is_started =
            worker->values != NULL && pthread_create(&worker->thread, NULL, work, worker) == 0;
        if (!worker->is_started) {
            /* the others wait for a start that cannot come; the process ends with this error */
            return cli_set_error(err, TN_OUT_OF_MEMORY, "thread %u of %u did not start", w + 1,
                                 state->concurrency);
        }
    }
    bench_read_counters(state, before);
    (void)pthread_barrier_wait(barrier);
    (void)pthread_barrier_wait(barrier);
    return TN_OK;
}

static tn_status measure_together(bench_state *state, bench_counters *before, tn_error *err) {
    pthread_barrier_t barrier;
    bench_worker *workers = calloc(state->concurrency, sizeof *workers);
    if (workers == NULL) return cli_set_error(err, TN_OUT_OF_MEMORY, "no memory for threads");
    (void)pthread_barrier_init(&barrier, NULL, state->concurrency + 1);
    tn_status status = measure_workers(state, workers, &barrier, before, err);
    if (status != TN_OK) return status; /* `workers` stays: threads may still look at it */
    state->run_count = state->run_goal;
    for (uint32_t w = 0; w < state->concurrency; w++) {
        (void)pthread_join(workers[w].thread, NULL);
        free(workers[w].values);
        if (workers[w].status == TN_OK || status != TN_OK) continue;
        status = workers[w].status;
        *err = workers[w].err;
    }
    (void)pthread_barrier_destroy(&barrier);
    free(workers);
    return status;
}

static void subtract(bench_counters *from, const bench_counters *before) {
    from->minor_faults -= before->minor_faults;
    from->system_allocations -= before->system_allocations;
    from->system_frees -= before->system_frees;
    from->heap_allocations -= before->heap_allocations;
    from->payload_copies -= before->payload_copies;
    from->copied_bytes -= before->copied_bytes;
}

int bench_measure(bench_state *state) {
    tn_error err = {.code = TN_OK};
    bench_counters before;
    tn_value **scratch = calloc(state->output_count + 1, sizeof(tn_value *));
    if (scratch == NULL) return CLI_FAILED;
    tn_session_reset_counters(state->opened.session);
    cli_reset_peak_rss();
    bench_read_counters(state, &before);
    const tn_status status = state->concurrency > 1 ? measure_together(state, &before, &err)
                                                    : measure_alone(state, scratch, &err);
    bench_read_counters(state, &state->steady);
    subtract(&state->steady, &before);
    free(scratch);
    if (status != TN_OK) return cli_fail_run(&err, state->opened.path);
    return CLI_OK;
}
