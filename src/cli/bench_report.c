/* The result as a table or as JSON, and what --max-* and --assert-* make of it. */
#include <stdlib.h>
#include <string.h>

#include "cli/bench_state.h"
#include "cli/format.h"
#include "cli/host.h"
#include "cli/json.h"

typedef struct latencies {
    uint64_t min, p50, p90, p99, max, mean;
} latencies;

static int compare_u64(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the samples; nearest rank. */
static latencies summarise(uint64_t *samples, uint64_t count) {
    latencies result = {0};
    double sum = 0;
    if (count == 0) return result;
    qsort(samples, count, sizeof *samples, compare_u64);
    for (uint64_t i = 0; i < count; i++) sum += (double)samples[i];
    result.min = samples[0];
    result.p50 = samples[(count - 1) / 2];
    result.p90 = samples[(count - 1) * 90 / 100];
    result.p99 = samples[(count - 1) * 99 / 100];
    result.max = samples[count - 1];
    result.mean = (uint64_t)(sum / (double)count);
    return result;
}

static void write_bytes_json(cli_json *json, const bench_state *state) {
    const tn_session_stats *s = &state->stats;
    cli_json_open(json, "bytes", '{');
    cli_json_u64(json, "weights", s->weights_bytes + s->shared_bytes);
    cli_json_u64(json, "weights_mapped", s->weights_mapped_bytes);
    cli_json_u64(json, "execution_live", s->execution_live_bytes);
    cli_json_u64(json, "execution_peak", s->execution_peak_bytes);
    cli_json_u64(json, "workspace_peak", s->workspace_peak_bytes);
    cli_json_u64(json, "execution_retained", s->execution_retained_bytes);
    cli_json_u64(json, "io_live", s->io_live_bytes);
    cli_json_u64(json, "io_peak", s->io_peak_bytes);
    cli_json_u64(json, "io_leased", s->io_leased_bytes);
    cli_json_u64(json, "io_retained", s->io_retained_bytes);
    cli_json_u64(json, "plan_metadata", s->plan_metadata_bytes);
    cli_json_u64(json, "slack", state->slack_bytes);
    cli_json_u64(json, "predicted_peak", s->predicted_peak_bytes);
    cli_json_bool(json, "prediction_complete", s->prediction_complete);
    cli_json_u64(json, "measured_peak", s->measured_peak_bytes);
    cli_json_u64(json, "execution_lower_bound", s->execution_lower_bound_bytes);
    cli_json_close(json, '}');
}

static void write_rss_json(cli_json *json, const bench_rss *rss) {
    cli_json_open(json, "rss", '{');
    cli_json_u64(json, "start", rss->start);
    cli_json_u64(json, "loaded", rss->loaded);
    cli_json_u64(json, "first_run", rss->first_run);
    cli_json_u64(json, "peak", rss->peak);
    cli_json_u64(json, "end", rss->end);
    cli_json_u64(json, "trimmed", rss->trimmed);
    cli_json_u64(json, "closed", rss->closed);
    cli_json_close(json, '}');
}

static void print_json(const bench_state *state, const char *path, uint32_t threads,
                       const latencies *l) {
    const bench_counters *c = &state->steady;
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "model", path);
    cli_json_u64(&json, "runs", state->run_count);
    cli_json_u64(&json, "threads", threads);
    cli_json_u64(&json, "concurrency", state->concurrency);
    cli_json_open(&json, "latency_ns", '{');
    cli_json_u64(&json, "min", l->min);
    cli_json_u64(&json, "p50", l->p50);
    cli_json_u64(&json, "p90", l->p90);
    cli_json_u64(&json, "p99", l->p99);
    cli_json_u64(&json, "max", l->max);
    cli_json_u64(&json, "mean", l->mean);
    cli_json_close(&json, '}');
    cli_json_u64(&json, "load_ns", state->opened.load_ns);
    cli_json_u64(&json, "first_run_ns", state->first_run_ns);
    cli_json_open(&json, "steady", '{');
    cli_json_u64(&json, "minor_faults", c->minor_faults);
    cli_json_u64(&json, "system_allocations", c->system_allocations);
    cli_json_u64(&json, "system_frees", c->system_frees);
    cli_json_u64(&json, "heap_allocations", c->heap_allocations);
    cli_json_u64(&json, "payload_copies", c->payload_copies);
    cli_json_u64(&json, "copied_bytes", c->copied_bytes);
    cli_json_close(&json, '}');
    write_bytes_json(&json, state);
    write_rss_json(&json, &state->rss);
    cli_json_bool(&json, "heap_counted", cli_heap_is_counted());
    cli_json_u64(&json, "trimmed_bytes", state->trimmed_bytes);
    cli_json_close(&json, '}');
}

typedef struct bytes_row {
    const char *label;
    uint64_t size_bytes;
} bytes_row;

static void print_rows(const char *title, const bytes_row *rows, size_t count) {
    cli_table table;
    cli_table_init(&table, 2, 1u << 1);
    for (size_t i = 0; i < count; i++) {
        char text[CLI_TEXT_BYTES];
        char label[64];
        (void)snprintf(label, sizeof label, "  %s", rows[i].label);
        cli_table_add(&table, (const char *[]){label, cli_bytes_text(rows[i].size_bytes, text)});
    }
    (void)printf("\n%s\n", title);
    cli_table_print(&table, stdout);
    cli_table_deinit(&table);
}

static void print_steady(const bench_counters *c) {
    cli_table table;
    const uint64_t numbers[] = {c->minor_faults, c->system_allocations, c->system_frees,
                                c->heap_allocations, c->payload_copies};
    static const char *const labels[] = {"  minor faults", "  system allocations", "  system frees",
                                         "  heap allocations", "  payload copies"};
    cli_table_init(&table, 2, 1u << 1);
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)numbers[i]);
        cli_table_add(&table, (const char *[]){labels[i], text});
    }
    (void)printf("\nin all measured runs\n");
    cli_table_print(&table, stdout);
    cli_table_deinit(&table);
}

static void print_text(const bench_state *state, const char *path, uint32_t threads,
                       const latencies *l) {
    char t[6][CLI_TEXT_BYTES];
    const tn_session_stats *s = &state->stats;
    const bytes_row bytes[] = {{"weights", s->weights_bytes + s->shared_bytes},
                               {"execution peak", s->execution_peak_bytes},
                               {"  lower bound", s->execution_lower_bound_bytes},
                               {"  workspace", s->workspace_peak_bytes},
                               {"execution retained", s->execution_retained_bytes},
                               {"outputs peak", s->io_peak_bytes},
                               {"outputs leased", s->io_leased_bytes},
                               {"outputs retained", s->io_retained_bytes},
                               {"plan", s->plan_metadata_bytes},
                               {"predicted peak", s->predicted_peak_bytes},
                               {"measured peak", s->measured_peak_bytes}};
    const bytes_row rss[] = {{"start", state->rss.start},
                             {"loaded", state->rss.loaded},
                             {"first run", state->rss.first_run},
                             {"peak", state->rss.peak},
                             {"end", state->rss.end},
                             {"trimmed", state->rss.trimmed},
                             {"closed", state->rss.closed}};
    (void)printf("%s: %llu runs, %u threads, %u at once\n", path,
                 (unsigned long long)state->run_count, threads, state->concurrency);
    (void)printf("latency  min %s  p50 %s  p90 %s  p99 %s  max %s  mean %s\n",
                 cli_time_text(l->min, t[0]), cli_time_text(l->p50, t[1]),
                 cli_time_text(l->p90, t[2]), cli_time_text(l->p99, t[3]),
                 cli_time_text(l->max, t[4]), cli_time_text(l->mean, t[5]));
    (void)printf("load %s, first run %s\n", cli_time_text(state->opened.load_ns, t[0]),
                 cli_time_text(state->first_run_ns, t[1]));
    print_steady(&state->steady);
    print_rows("memory of the session", bytes, sizeof bytes / sizeof bytes[0]);
    print_rows("resident memory of the process", rss, sizeof rss / sizeof rss[0]);
}

static int broke(const char *what, uint64_t count, const char *unit, uint64_t run) {
    char why[160];
    int used =
        snprintf(why, sizeof why, "%llu %s in the measured runs", (unsigned long long)count, unit);
    if (run != UINT64_MAX && used > 0 && (size_t)used < sizeof why) {
        (void)snprintf(why + used, sizeof why - (size_t)used, ", the first in run %llu",
                       (unsigned long long)run + 1);
    }
    cli_say_error("bench", what, why);
    return CLI_FAILED;
}

/* The process has other pages: a few faults are not the library's. Two per 100 runs are also far
 * below one per 256 KiB of payload, as soon as a run has that much. */
static bool has_faulted(const bench_state *state) {
    return state->steady.minor_faults * 100 > state->run_count * 2;
}

static int check_assertions(const bench_state *state) {
    const cli_args *args = state->args;
    const bench_counters *c = &state->steady;
    int code = CLI_OK;
    if (cli_args_has(args, "assert-no-alloc") && !cli_heap_is_counted()) {
        cli_say_error("bench", "--assert-no-alloc", "this build cannot count heap allocations");
        code = CLI_FAILED;
    }
    const uint64_t allocations = c->heap_allocations + c->system_allocations;
    if (cli_args_has(args, "assert-no-alloc") && allocations > 0) {
        code = broke("--assert-no-alloc", allocations, "allocations", state->first_allocating_run);
    }
    if (cli_args_has(args, "assert-no-faults") && has_faulted(state)) {
        code =
            broke("--assert-no-faults", c->minor_faults, "page faults", state->first_faulting_run);
    }
    if (cli_args_has(args, "assert-no-copies") && c->payload_copies > 0) {
        code = broke("--assert-no-copies", c->payload_copies, "payload copies",
                     state->first_copying_run);
    }
    return code;
}

static int check_most(const cli_args *args, const char *option, uint64_t got_bytes) {
    char where[32];
    char why[160];
    const uint64_t most = cli_args_number(args, option, UINT64_MAX);
    if (got_bytes <= most) return CLI_OK;
    (void)snprintf(where, sizeof where, "--%s", option);
    (void)snprintf(why, sizeof why, "%llu bytes, allowed are %llu", (unsigned long long)got_bytes,
                   (unsigned long long)most);
    cli_say_error("bench", where, why);
    return CLI_FAILED;
}

/* Runs as events of a Chrome trace; times in microseconds since the first. */
static int write_profile(const bench_state *state) {
    const char *path = cli_args_text(state->args, "profile", NULL);
    if (path == NULL) return CLI_OK;
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        cli_say_error("bench", path, "cannot be written");
        return CLI_FAILED;
    }
    (void)fprintf(file, "{\"traceEvents\": [");
    for (uint64_t i = 0; i < state->run_count; i++) {
        (void)fprintf(file,
                      "%s\n{\"name\": \"run %llu\", \"ph\": \"X\", \"pid\": 1, \"tid\": %u, "
                      "\"ts\": %.3f, \"dur\": %.3f}",
                      i == 0 ? "" : ",", (unsigned long long)i + 1,
                      (unsigned)(i * state->concurrency / state->run_count),
                      (double)(state->starts_ns[i] - state->starts_ns[0]) / 1000,
                      (double)state->latencies_ns[i] / 1000);
    }
    (void)fprintf(file, "\n]}\n");
    if (fclose(file) == 0) return CLI_OK;
    cli_say_error("bench", path, "writing failed");
    return CLI_FAILED;
}

int bench_report(bench_state *state) {
    const char *path = cli_args_operand(state->args, 0);
    const uint32_t threads = cli_thread_count(state->args);
    int code = write_profile(state); /* before the samples are sorted */
    const latencies l = summarise(state->latencies_ns, state->run_count);
    if (cli_args_has(state->args, "json")) {
        print_json(state, path, threads, &l);
    } else {
        print_text(state, path, threads, &l);
    }
    const int checks[] = {code, check_assertions(state),
                          check_most(state->args, "max-peak", state->stats.measured_peak_bytes),
                          check_most(state->args, "max-rss", state->rss.peak)};
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (checks[i] != CLI_OK) code = checks[i];
    }
    return code;
}
