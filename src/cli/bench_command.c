/* tenure bench: many runs, their time, and what they ask of the system once they are warm. */
#include <stdlib.h>
#include <string.h>

#include "cli/bench_state.h"
#include "cli/host.h"

#define MOST_RUNS 200000
#define DEFAULT_WARMUP 3
#define DEFAULT_SHARED_RUNS 200 /* per thread, with --concurrency and no --runs */

static const cli_option options[] = {
    {"runs", CLI_COUNT, "N", "measured runs (at least 50, and at least one second)"},
    {"warmup", CLI_COUNT, "N", "runs before measuring, of every shape set (3)"},
    {"concurrency", CLI_COUNT, "C", "threads that call run on one session at once (1)"},
    CLI_FEED_OPTIONS,
    {"alternate", CLI_TEXT, "SETS", "shape sets used in turn: x=1x8;n=4,x=1x9;n=5"},
    {"hold-outputs", CLI_FLAG, NULL, "keep every output to the end"},
    CLI_SESSION_OPTIONS,
    {"trim-after", CLI_FLAG, NULL, "give retained memory back after the last run"},
    {"max-peak", CLI_SIZE, "SIZE", "fail when the session's peak is larger"},
    {"max-rss", CLI_SIZE, "SIZE", "fail when the process's resident peak is larger"},
    {"assert-no-alloc", CLI_FLAG, NULL, "fail when a measured run allocates"},
    {"assert-no-faults", CLI_FLAG, NULL, "fail when measured runs fault pages in"},
    {"assert-no-copies", CLI_FLAG, NULL, "fail when a measured run copies payload"},
    {"profile", CLI_TEXT, "FILE", "write start and length of every run as a Chrome trace"},
    {"json", CLI_FLAG, NULL, "print one JSON object and nothing else"},
};

static int complain(const char *where, const char *why) {
    cli_say_error("bench", where, why);
    return CLI_USAGE;
}

/* One set of inputs, or one per item of --alternate. */
static int make_sets(bench_state *state) {
    tn_error err = {.code = TN_OK};
    const char *list = cli_args_text(state->args, "alternate", NULL);
    size_t most = 1;
    for (const char *c = list; c != NULL && *c != '\0'; c++) most += *c == ',';
    state->sets = calloc(most, sizeof *state->sets);
    char *copy = strdup(list == NULL ? "" : list);
    int code = CLI_OK;
    if (state->sets == NULL || copy == NULL) code = complain(NULL, "out of memory");
    char *at = copy;
    for (size_t i = 0; i < most && code == CLI_OK; i++) {
        char *set = strsep(&at, ",");
        const tn_status status =
            cli_feeds_create(state->opened.session, state->opened.inputs, state->args,
                             list == NULL ? NULL : set, &state->sets[i], &err);
        if (status != TN_OK) code = complain(state->opened.path, err.message);
        if (status == TN_OK) state->set_count++;
    }
    free(copy);
    return code;
}

static int make_room(bench_state *state) {
    const cli_args *args = state->args;
    state->run_goal = cli_args_number(args, "runs", 0);
    if (cli_args_has(args, "runs") && state->run_goal == 0) {
        return complain("--runs", "at least one run is needed");
    }
    if (state->concurrency > 1 && state->run_goal == 0) {
        state->run_goal = (uint64_t)DEFAULT_SHARED_RUNS * state->concurrency;
    }
    state->run_capacity = state->run_goal > 0 ? state->run_goal : MOST_RUNS;
    const bool holds = cli_args_has(args, "hold-outputs");
    if (holds && state->run_goal == 0) state->run_capacity = state->run_goal = 50;
    if (state->run_capacity > UINT64_C(100000000)) return complain("--runs", "too many runs");
    state->latencies_ns = malloc(state->run_capacity * sizeof *state->latencies_ns);
    bool is_whole = state->latencies_ns != NULL;
    if (cli_args_has(args, "profile")) {
        state->starts_ns = malloc(state->run_capacity * sizeof *state->starts_ns);
        is_whole = is_whole && state->starts_ns != NULL;
    }
    if (holds) {
        state->held = calloc(state->run_capacity * (state->output_count + 1), sizeof *state->held);
        is_whole = is_whole && state->held != NULL;
    }
    if (!is_whole) return complain("--runs", "out of memory for the samples");
    /* touched now, so that measuring does not fault these pages in */
    memset(state->latencies_ns, 1, state->run_capacity * sizeof *state->latencies_ns);
    if (state->starts_ns != NULL) {
        memset(state->starts_ns, 1, state->run_capacity * sizeof *state->starts_ns);
    }
    for (size_t i = 0; holds && i < state->run_capacity * state->output_count; i++) {
        *(tn_value *volatile *)&state->held[i] = NULL;
    }
    return CLI_OK;
}

static int warm_up(bench_state *state) {
    tn_error err = {.code = TN_OK};
    const uint64_t rounds = cli_args_number(state->args, "warmup", DEFAULT_WARMUP);
    const uint64_t runs = rounds * state->set_count;
    tn_value **values = calloc(state->output_count + 1, sizeof(tn_value *));
    tn_status status = values == NULL ? TN_OUT_OF_MEMORY : TN_OK;
    for (uint64_t i = 0; i < runs && status == TN_OK; i++) {
        const cli_feeds *set = &state->sets[i % state->set_count];
        const uint64_t start = cli_now_ns();
        status = tn_session_run(state->opened.session, set->feeds, set->count, NULL,
                                state->output_count, values, &err);
        if (i == 0) {
            state->first_run_ns = cli_now_ns() - start;
            state->rss.first_run = cli_rss_bytes();
        }
        for (size_t o = 0; o < state->output_count; o++) {
            tn_tensor_release(values[o]);
            values[o] = NULL;
        }
    }
    free(values);
    return status == TN_OK ? CLI_OK : cli_fail_run(&err, state->opened.path);
}

static void take_figures(bench_state *state) {
    tn_allocator_stats tree = {.struct_size = sizeof tree};
    state->stats.struct_size = sizeof state->stats;
    tn_session_get_stats(state->opened.session, &state->stats);
    tn_allocator_get_stats(tn_environment_allocator(state->opened.environment), &tree);
    state->slack_bytes = tree.slack_bytes;
    state->rss.peak = cli_peak_rss_bytes();
    state->rss.end = cli_rss_bytes();
    state->rss.trimmed = state->rss.end;
}

static void release_held(bench_state *state) {
    for (size_t i = 0; state->held != NULL && i < state->run_count * state->output_count; i++) {
        tn_tensor_release(state->held[i]);
    }
    free(state->held);
    state->held = NULL;
}

static int run_bench(bench_state *state) {
    int code = make_sets(state);
    if (code == CLI_OK) code = make_room(state);
    if (code == CLI_OK) code = warm_up(state);
    if (code == CLI_OK) code = bench_measure(state);
    if (code != CLI_OK) return code;
    if (state->first_run_ns == 0) { /* --warmup 0: the first measured run was the first at all */
        state->first_run_ns = state->latencies_ns[0];
        state->rss.first_run = cli_rss_bytes();
    }
    take_figures(state);
    if (cli_args_has(state->args, "trim-after")) {
        state->trimmed_bytes = tn_session_trim(state->opened.session, TN_TRIM_HARD);
        state->rss.trimmed = cli_rss_bytes();
    }
    return CLI_OK;
}

/* Everything goes back before the report, so that it can say what remains. */
static void close_all(bench_state *state) {
    const uint64_t load_ns = state->opened.load_ns;
    release_held(state);
    for (size_t i = 0; i < state->set_count; i++) cli_feeds_deinit(&state->sets[i]);
    cli_opened_deinit(&state->opened);
    state->opened.load_ns = load_ns;
    state->rss.closed = cli_rss_bytes();
}

static int bench(const cli_args *args) {
    bench_state state = {.args = args,
                         .concurrency = (uint32_t)cli_args_number(args, "concurrency", 1),
                         .first_allocating_run = UINT64_MAX,
                         .first_faulting_run = UINT64_MAX,
                         .first_copying_run = UINT64_MAX};
    if (state.concurrency == 0 || cli_args_number(args, "concurrency", 1) > 1024) {
        return complain("--concurrency", "a number from 1 to 1024 is needed");
    }
    state.rss.start = cli_rss_bytes();
    int code = cli_opened_create(args, &state.opened);
    if (code == CLI_OK) {
        state.rss.loaded = cli_rss_bytes();
        state.output_count = tn_session_output_count(state.opened.session);
        code = run_bench(&state);
    }
    close_all(&state);
    if (code == CLI_OK) code = bench_report(&state);
    free(state.sets);
    free(state.latencies_ns);
    free(state.starts_ns);
    return code;
}

const cli_command cli_bench_command = {
    .name = "bench",
    .summary = "Measure repeated runs: time, memory, faults, allocations, copies",
    .operands = "MODEL",
    .details =
        "Up to 2 page faults per 100 runs count as none: the process has other pages.\n"
        "Allocations must be exactly none.",
    .example = "tenure bench model.onnx --runs 500 --assert-no-alloc --max-peak 64MiB --json",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .min_operands = 1,
    .max_operands = 1,
    .run = bench,
};
