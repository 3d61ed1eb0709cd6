/* tenure plan: what a run with given shapes will need, without running. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/feeds.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/opened.h"
#include "cli/plan_html.h"

static const cli_option options[] = {
    CLI_FEED_OPTIONS,
    CLI_SESSION_OPTIONS,
    {"csv", CLI_FLAG, NULL, "print id,lower,upper,size,offset of every value in the slab"},
    {"html", CLI_TEXT, "FILE", "write a picture of the slab over time"},
    {"json", CLI_FLAG, NULL, "print one JSON object and nothing else"},
};

static const char *arena_name(const tn_plan_value *value) {
    static const char *const names[] = {
        [TN_PLAN_EXECUTION] = "execution", [TN_PLAN_IO] = "io",
        [TN_PLAN_INPUT] = "input",         [TN_PLAN_WEIGHT] = "weight",
        [TN_PLAN_ALIAS] = "alias",         [TN_PLAN_DYNAMIC] = "dynamic"};
    return value->is_workspace ? "workspace" : names[value->arena];
}

static void write_values(cli_json *json, const tn_plan_report *report, size_t count) {
    cli_json_open(json, "values", '[');
    for (size_t i = 0; i < count; i++) {
        tn_plan_value value = {.struct_size = sizeof value};
        if (tn_plan_report_value(report, i, &value, NULL) != TN_OK) continue;
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", value.name);
        cli_json_text(json, "arena", arena_name(&value));
        cli_json_text(json, "type", tn_dtype_name(value.dtype));
        cli_json_open(json, "shape", '[');
        for (int32_t d = 0; d < value.shape.rank; d++) {
            cli_json_i64(json, NULL, value.shape.dims[d]);
        }
        cli_json_close(json, ']');
        cli_json_u64(json, "size", value.size_bytes);
        cli_json_u64(json, "birth", value.birth);
        cli_json_u64(json, "death", value.death);
        cli_json_u64(json, "offset", value.offset_bytes);
        cli_json_u64(json, "layout_block", value.layout_block);
        cli_json_text(json, "alias_of", value.alias_of);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void write_steps(cli_json *json, const tn_plan_report *report, size_t count) {
    static const char *const classes[] = {"exact", "reassociated", "approximate"};
    cli_json_open(json, "steps", '[');
    for (size_t i = 0; i < count; i++) {
        tn_plan_step step = {.struct_size = sizeof step};
        if (tn_plan_report_step(report, i, &step, NULL) != TN_OK) continue;
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "node", step.name);
        cli_json_text(json, "op", step.op);
        cli_json_text(json, "kernel", step.variant);
        cli_json_text(json, "rewrite", classes[step.rewrite_class]);
        cli_json_u64(json, "workspace", step.workspace_bytes);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void print_json(const tn_plan_report *report, const char *path) {
    cli_json json;
    tn_plan_summary s = {.struct_size = sizeof s};
    tn_plan_report_summary(report, &s);
    cli_json_init(&json, stdout);
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "model", path);
    cli_json_u64(&json, "predicted_peak", s.predicted_peak_bytes);
    cli_json_bool(&json, "prediction_complete", s.is_complete);
    cli_json_u64(&json, "execution", s.execution_bytes);
    cli_json_u64(&json, "lower_bound", s.lower_bound_bytes);
    cli_json_u64(
        &json, "waste",
        s.execution_bytes > s.lower_bound_bytes ? s.execution_bytes - s.lower_bound_bytes : 0);
    cli_json_u64(&json, "workspace_peak", s.workspace_peak_bytes);
    cli_json_u64(&json, "io", s.io_bytes);
    cli_json_u64(&json, "weights", s.weights_bytes);
    cli_json_u64(&json, "plan_metadata", s.metadata_bytes);
    cli_json_u64(&json, "copies", s.copy_count);
    write_values(&json, report, s.value_count);
    write_steps(&json, report, s.step_count);
    cli_json_close(&json, '}');
}

typedef size_t (*text_fn)(const tn_plan_report *, char *, size_t);

static int print_report_text(const tn_plan_report *report, text_fn write) {
    const size_t needed = write(report, NULL, 0);
    char *text = malloc(needed);
    if (text == NULL) {
        cli_say_error("plan", NULL, "out of memory");
        return CLI_LIMIT;
    }
    (void)write(report, text, needed);
    (void)fputs(text, stdout);
    free(text);
    return CLI_OK;
}

static int write_html(const tn_plan_report *report, const cli_args *args) {
    const char *path = cli_args_text(args, "html", NULL);
    if (path == NULL) return CLI_OK;
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        cli_say_error("plan", path, strerror(errno));
        return CLI_FAILED;
    }
    cli_write_plan_html(report, cli_args_operand(args, 0), file);
    if (fclose(file) == 0) return CLI_OK;
    cli_say_error("plan", path, "writing failed");
    return CLI_FAILED;
}

/* Inputs whose contents may decide shapes are handed over with their data. */
static tn_status make_plan(const cli_opened *opened, const cli_feeds *feeds, tn_plan_report **out,
                           tn_error *err) {
    tn_plan_shape *shapes = calloc(feeds->count + 1, sizeof *shapes);
    if (shapes == NULL) return cli_set_error(err, TN_OUT_OF_MEMORY, "no memory for shapes");
    for (size_t i = 0; i < feeds->count; i++) {
        const tn_value *value = feeds->feeds[i].value;
        const tn_dtype dtype = tn_tensor_dtype(value);
        const bool is_integer = dtype == TN_DTYPE_I64 || dtype == TN_DTYPE_I32;
        shapes[i] = (tn_plan_shape){.input_name = feeds->feeds[i].name,
                                    .shape = *tn_tensor_borrow_shape(value),
                                    .data = is_integer ? tn_tensor_borrow_data(value) : NULL};
    }
    const tn_status status = tn_session_plan(opened->session, shapes, feeds->count, out, err);
    free(shapes);
    return status;
}

static int plan(const cli_args *args) {
    tn_error err = {.code = TN_OK};
    cli_opened opened;
    cli_feeds feeds = {0};
    tn_plan_report *report = NULL;
    int code = cli_opened_create(args, &opened);
    if (code != CLI_OK) goto cleanup;
    if (cli_feeds_create(opened.session, opened.inputs, args, NULL, &feeds, &err) != TN_OK) {
        cli_say_error("plan", opened.path, err.message);
        code = CLI_USAGE;
        goto cleanup;
    }
    if (make_plan(&opened, &feeds, &report, &err) != TN_OK) {
        code = cli_fail_run(&err, opened.path);
        goto cleanup;
    }
    if (cli_args_has(args, "json")) {
        print_json(report, opened.path);
    } else {
        code = print_report_text(
            report, cli_args_has(args, "csv") ? tn_plan_report_csv : tn_plan_report_text);
    }
    if (code == CLI_OK) code = write_html(report, args);

cleanup:
    tn_plan_report_destroy(report);
    cli_feeds_deinit(&feeds);
    cli_opened_deinit(&opened);
    return code;
}

const cli_command cli_plan_command = {
    .name = "plan",
    .summary = "Say what a run with given shapes will need, without running it",
    .operands = "MODEL",
    .details = "",
    .example = "tenure plan model.onnx --shape image=8x3x224x224 --html plan.html",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .min_operands = 1,
    .max_operands = 1,
    .run = plan,
};
