/* tenure run: one run, and what came out of it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/compare.h"
#include "cli/feeds.h"
#include "cli/format.h"
#include "cli/host.h"
#include "cli/json.h"
#include "cli/npy.h"
#include "cli/opened.h"

#define FIRST_VALUES 5
#define PATH_BYTES 4096

static const cli_option options[] = {
    CLI_FEED_OPTIONS,
    {"output", CLI_TEXT, "DIR", "write every output to DIR/NAME.npy"},
    CLI_SESSION_OPTIONS,
    {"json", CLI_FLAG, NULL, "print one JSON object and nothing else"},
};

typedef struct summary {
    double min, max, mean;
    size_t count, nan_count;
} summary;

static summary summarise(const tn_value *value) {
    summary s = {.min = INFINITY, .max = -INFINITY};
    double sum = 0;
    if (tn_shape_len_elems(tn_tensor_borrow_shape(value), &s.count, NULL) != TN_OK) return s;
    if (tn_tensor_dtype(value) == TN_DTYPE_STRING) return s;
    for (size_t i = 0; i < s.count; i++) {
        const double x = cli_element(value, i);
        if (isnan(x)) {
            s.nan_count++;
            continue;
        }
        if (x < s.min) s.min = x;
        if (x > s.max) s.max = x;
        sum += x;
    }
    s.mean = sum / (double)(s.count - s.nan_count);
    return s;
}

static void print_first(const tn_value *value, size_t count, char *text, size_t text_bytes) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && i < FIRST_VALUES && used < text_bytes; i++) {
        const char *space = i == 0 ? "" : " ";
        int written = 0;
        if (tn_tensor_dtype(value) == TN_DTYPE_STRING) {
            const tn_string *s = (const tn_string *)tn_tensor_borrow_data(value) + i;
            written = snprintf(text + used, text_bytes - used, "%s'%.*s'", space,
                               s->size_bytes > 40 ? 40 : (int)s->size_bytes, s->data);
        } else {
            written =
                snprintf(text + used, text_bytes - used, "%s%.6g", space, cli_element(value, i));
        }
        used += (size_t)written;
    }
    if (count > FIRST_VALUES && used < text_bytes) {
        (void)snprintf(text + used, text_bytes - used, " ...");
    }
}

static void print_outputs(const tn_session *session, tn_value *const *values, size_t count) {
    cli_table table;
    cli_table_init(&table, 7, 1u << 3 | 1u << 4 | 1u << 5);
    cli_table_add(
        &table, (const char *[]){"output", "type", "shape", "min", "max", "mean", "first values"});
    for (size_t i = 0; i < count; i++) {
        tn_value_info info = {.struct_size = sizeof info, .name = ""};
        char shape[160];
        char numbers[3][32] = {"", "", ""};
        char first[256];
        const tn_shape *s = tn_tensor_borrow_shape(values[i]);
        if (tn_session_output_info(session, i, &info, NULL) != TN_OK) continue;
        const summary sum = summarise(values[i]);
        if (sum.count > sum.nan_count && tn_tensor_dtype(values[i]) != TN_DTYPE_STRING) {
            const double figures[] = {sum.min, sum.max, sum.mean};
            for (size_t n = 0; n < 3; n++) {
                (void)snprintf(numbers[n], sizeof numbers[n], "%.6g", figures[n]);
            }
        }
        print_first(values[i], sum.count, first, sizeof first);
        cli_table_add(&table,
                      (const char *[]){info.name, tn_dtype_name(tn_tensor_dtype(values[i])),
                                       cli_shape_text(s->rank, s->dims, NULL, shape, sizeof shape),
                                       numbers[0], numbers[1], numbers[2], first});
    }
    cli_table_print(&table, stdout);
    cli_table_deinit(&table);
}

static void write_output_json(cli_json *json, const char *name, const tn_value *value) {
    const tn_shape *shape = tn_tensor_borrow_shape(value);
    const summary sum = summarise(value);
    const bool is_string = tn_tensor_dtype(value) == TN_DTYPE_STRING;
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "name", name);
    cli_json_text(json, "type", tn_dtype_name(tn_tensor_dtype(value)));
    cli_json_open(json, "shape", '[');
    for (int32_t d = 0; d < shape->rank; d++) cli_json_i64(json, NULL, shape->dims[d]);
    cli_json_close(json, ']');
    cli_json_u64(json, "bytes", tn_tensor_size_bytes(value));
    cli_json_real(json, "min", is_string ? NAN : sum.min);
    cli_json_real(json, "max", is_string ? NAN : sum.max);
    cli_json_real(json, "mean", is_string ? NAN : sum.mean);
    cli_json_u64(json, "nan_count", sum.nan_count);
    cli_json_open(json, "first", '[');
    for (size_t i = 0; i < sum.count && i < FIRST_VALUES; i++) {
        if (is_string) {
            const tn_string *s = (const tn_string *)tn_tensor_borrow_data(value) + i;
            cli_json_text_n(json, NULL, s->data, s->size_bytes);
        } else {
            cli_json_real(json, NULL, cli_element(value, i));
        }
    }
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

static void print_json(const cli_opened *opened, tn_value *const *values, size_t count,
                       uint64_t run_ns) {
    cli_json json;
    tn_session_stats stats = {.struct_size = sizeof stats};
    tn_session_get_stats(opened->session, &stats);
    cli_json_init(&json, stdout);
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "model", opened->path);
    cli_json_u64(&json, "load_ns", opened->load_ns);
    cli_json_u64(&json, "run_ns", run_ns);
    cli_json_u64(&json, "predicted_peak", stats.predicted_peak_bytes);
    cli_json_u64(&json, "measured_peak", stats.measured_peak_bytes);
    cli_json_open(&json, "outputs", '[');
    for (size_t i = 0; i < count; i++) {
        tn_value_info info = {.struct_size = sizeof info, .name = ""};
        if (tn_session_output_info(opened->session, i, &info, NULL) != TN_OK) continue;
        write_output_json(&json, info.name, values[i]);
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
}

/* Output names may hold anything; files get what is safe everywhere. */
static void make_file_path(char path[PATH_BYTES], const char *folder, const char *name) {
    char safe[256];
    size_t length = 0;
    for (; name[length] != '\0' && length + 1 < sizeof safe; length++) {
        const char c = name[length];
        const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                              (c == '.' && length > 0);
        safe[length] = is_plain ? c : '_';
    }
    safe[length] = '\0';
    (void)snprintf(path, PATH_BYTES, "%s/%s.npy", folder, safe);
}

static int write_outputs(const tn_session *session, tn_value *const *values, size_t count,
                         const char *folder) {
    tn_error err = {.code = TN_OK};
    char path[PATH_BYTES];
    if (folder == NULL) return CLI_OK;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        cli_say_error("run", folder, strerror(errno));
        return CLI_FAILED;
    }
    for (size_t i = 0; i < count; i++) {
        tn_value_info info = {.struct_size = sizeof info};
        if (tn_session_output_info(session, i, &info, &err) != TN_OK) {
            return cli_fail_run(&err, folder);
        }
        make_file_path(path, folder, info.name);
        if (cli_write_npy(values[i], path, &err) != TN_OK) return cli_fail_run(&err, path);
    }
    return CLI_OK;
}

static int run_and_print(const cli_args *args, cli_opened *opened, const cli_feeds *feeds,
                         tn_value **values, size_t count) {
    tn_error err = {.code = TN_OK};
    const uint64_t start = cli_now_ns();
    if (tn_session_run(opened->session, feeds->feeds, feeds->count, NULL, count, values, &err) !=
        TN_OK) {
        return cli_fail_run(&err, opened->path);
    }
    const uint64_t run_ns = cli_now_ns() - start;
    if (cli_args_has(args, "json")) {
        print_json(opened, values, count, run_ns);
    } else {
        char load_text[CLI_TEXT_BYTES];
        char run_text[CLI_TEXT_BYTES];
        print_outputs(opened->session, values, count);
        (void)printf("\nloaded in %s, ran in %s\n", cli_time_text(opened->load_ns, load_text),
                     cli_time_text(run_ns, run_text));
    }
    return write_outputs(opened->session, values, count, cli_args_text(args, "output", NULL));
}

static int run(const cli_args *args) {
    tn_error err = {.code = TN_OK};
    cli_opened opened;
    cli_feeds feeds = {0};
    tn_value **values = NULL;
    size_t count = 0;
    int code = cli_opened_create(args, &opened);
    if (code != CLI_OK) goto cleanup;
    if (cli_feeds_create(opened.session, opened.inputs, args, NULL, &feeds, &err) != TN_OK) {
        cli_say_error("run", opened.path, err.message);
        code = CLI_USAGE;
        goto cleanup;
    }
    count = tn_session_output_count(opened.session);
    values = calloc(count + 1, sizeof *values);
    if (values == NULL) {
        cli_say_error("run", opened.path, "out of memory");
        code = CLI_LIMIT;
        goto cleanup;
    }
    code = run_and_print(args, &opened, &feeds, values, count);

cleanup:
    for (size_t i = 0; i < count && values != NULL; i++) tn_tensor_release(values[i]);
    free(values);
    cli_feeds_deinit(&feeds);
    cli_opened_deinit(&opened);
    return code;
}

const cli_command cli_run_command = {
    .name = "run",
    .summary = "Run a model once and print its outputs",
    .operands = "MODEL",
    .details =
        "Inputs that are not named get random numbers (floating point) or ones.\n"
        "Symbolic dimensions that are not named become 1.",
    .example = "tenure run model.onnx --input image=photo.npy --dim batch=1 --output results",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
