/* tenure mem: the allocator tree at the points of a session's life that people ask about. */
#include <stdlib.h>
#include <string.h>

#include "cli/feeds.h"
#include "cli/format.h"
#include "cli/host.h"
#include "cli/json.h"
#include "cli/opened.h"

#define DEFAULT_RUNS 20

static const cli_option options[] = {
    CLI_FEED_OPTIONS,
    CLI_SESSION_OPTIONS,
    {"runs", CLI_COUNT, "N", "runs before the third picture (20)"},
    {"json", CLI_FLAG, NULL, "print one JSON object and nothing else"},
};

static int print_tree(const tn_allocator *allocator, const char *title) {
    char rss[CLI_TEXT_BYTES];
    const size_t needed = tn_allocator_report(allocator, NULL, 0);
    char *text = malloc(needed);
    if (text == NULL) {
        cli_say_error("mem", NULL, "out of memory");
        return CLI_LIMIT;
    }
    (void)tn_allocator_report(allocator, text, needed);
    (void)printf("%s (process resident %s)\n%s\n", title, cli_bytes_text(cli_rss_bytes(), rss),
                 text);
    free(text);
    return CLI_OK;
}

typedef struct json_walk {
    cli_json *json;
    int depth; /* nodes that are open */
} json_walk;

static bool write_node(void *ctx, const tn_allocator *allocator, int depth) {
    json_walk *walk = ctx;
    tn_allocator_stats s = {.struct_size = sizeof s};
    tn_allocator_get_stats(allocator, &s);
    for (; walk->depth > depth; walk->depth--) {
        cli_json_close(walk->json, ']');
        cli_json_close(walk->json, '}');
    }
    cli_json_open(walk->json, depth == 0 ? "tree" : NULL, '{');
    cli_json_text(walk->json, "name", s.name);
    cli_json_u64(walk->json, "limit", s.limit_bytes);
    cli_json_u64(walk->json, "reservation", s.reservation_bytes);
    cli_json_u64(walk->json, "charged", s.charged_bytes);
    cli_json_u64(walk->json, "slack", s.slack_bytes);
    cli_json_u64(walk->json, "mapped", s.mapped_bytes);
    cli_json_u64(walk->json, "peak", s.peak_bytes);
    cli_json_u64(walk->json, "live", s.live_bytes);
    cli_json_u64(walk->json, "live_capacity", s.live_capacity_bytes);
    cli_json_u64(walk->json, "retained", s.retained_bytes);
    cli_json_u64(walk->json, "leased", s.leased_bytes);
    cli_json_open(walk->json, "children", '[');
    walk->depth = depth + 1;
    return true;
}

static void write_tree(cli_json *json, const tn_allocator *allocator, const char *title) {
    json_walk walk = {json, 0};
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "when", title);
    cli_json_u64(json, "rss", cli_rss_bytes());
    tn_allocator_visit(allocator, write_node, &walk);
    for (; walk.depth > 0; walk.depth--) {
        cli_json_close(json, ']');
        cli_json_close(json, '}');
    }
    cli_json_close(json, '}');
}

static int show(const cli_opened *opened, cli_json *json, const char *title) {
    const tn_allocator *allocator = tn_environment_allocator(opened->environment);
    if (json == NULL) return print_tree(allocator, title);
    write_tree(json, allocator, title);
    return CLI_OK;
}

static int run_some(const cli_opened *opened, const cli_feeds *feeds, uint64_t runs) {
    tn_error err = {.code = TN_OK};
    const size_t count = tn_session_output_count(opened->session);
    tn_value **values = calloc(count + 1, sizeof *values);
    tn_status status = values == NULL ? cli_set_error(&err, TN_OUT_OF_MEMORY, "no memory") : TN_OK;
    for (uint64_t i = 0; i < runs && status == TN_OK; i++) {
        status =
            tn_session_run(opened->session, feeds->feeds, feeds->count, NULL, count, values, &err);
        for (size_t o = 0; o < count; o++) {
            tn_tensor_release(values[o]);
            values[o] = NULL;
        }
    }
    free(values);
    return status == TN_OK ? CLI_OK : cli_fail_run(&err, opened->path);
}

static int show_life(const cli_args *args, const cli_opened *opened, const cli_feeds *feeds,
                     cli_json *json) {
    char title[64];
    const uint64_t runs = cli_args_number(args, "runs", DEFAULT_RUNS);
    int code = show(opened, json, "after load");
    if (code == CLI_OK) code = run_some(opened, feeds, 1);
    if (code == CLI_OK) code = show(opened, json, "after the first run");
    if (code == CLI_OK) code = run_some(opened, feeds, runs > 0 ? runs - 1 : 0);
    (void)snprintf(title, sizeof title, "after %llu runs", (unsigned long long)runs);
    if (code == CLI_OK) code = show(opened, json, title);
    if (code != CLI_OK) return code;
    const uint64_t given_bytes = tn_session_trim(opened->session, TN_TRIM_HARD);
    if (json == NULL) {
        (void)printf("trim gave %llu bytes back\n\n", (unsigned long long)given_bytes);
    }
    return show(opened, json, "after trim");
}

static int mem(const cli_args *args) {
    tn_error err = {.code = TN_OK};
    cli_opened opened;
    cli_feeds feeds = {0};
    cli_json json;
    const bool wants_json = cli_args_has(args, "json");
    int code = cli_opened_create(args, &opened);
    if (code == CLI_OK &&
        cli_feeds_create(opened.session, opened.inputs, args, NULL, &feeds, &err) != TN_OK) {
        cli_say_error("mem", opened.path, err.message);
        code = CLI_USAGE;
    }
    if (code == CLI_OK && wants_json) {
        cli_json_init(&json, stdout);
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "model", opened.path);
        cli_json_open(&json, "points", '[');
    }
    if (code == CLI_OK) {
        code = show_life(args, &opened, &feeds, wants_json ? &json : NULL);
        if (wants_json) {
            cli_json_close(&json, ']');
            cli_json_close(&json, '}');
        }
    }
    cli_feeds_deinit(&feeds);
    cli_opened_deinit(&opened);
    return code;
}

const cli_command cli_mem_command = {
    .name = "mem",
    .summary = "Show the allocator tree after load, after runs and after trim",
    .operands = "MODEL",
    .details = "",
    .example = "tenure mem model.onnx --runs 100",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .min_operands = 1,
    .max_operands = 1,
    .run = mem,
};
