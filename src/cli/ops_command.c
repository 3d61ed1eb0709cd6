/* tenure ops: the operators of this build, or those that a model lacks. */
#include <stdlib.h>
#include <string.h>

#include "cli/format.h"
#include "cli/json.h"
#include "cli/opened.h"

static const cli_option options[] = {
    {"missing", CLI_TEXT, "MODEL",
     "say what MODEL needs and this build lacks; status 3 if anything"},
    {"json", CLI_FLAG, NULL, "print one JSON object and nothing else"},
};

static void span_text(const tn_op_info *op, char *text, size_t text_bytes) {
    if (op->until_version == 0) {
        (void)snprintf(text, text_bytes, "%d-", (int)op->since_version);
    } else {
        (void)snprintf(text, text_bytes, "%d-%d", (int)op->since_version, (int)op->until_version);
    }
}

static void types_text(uint32_t types, char *text, size_t text_bytes) {
    size_t used = 0;
    text[0] = '\0';
    if (types == 0) (void)snprintf(text, text_bytes, "any");
    for (int dtype = 1; dtype < TN_DTYPE_COUNT && used < text_bytes; dtype++) {
        if ((types >> dtype & 1u) == 0) continue;
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", used == 0 ? "" : " ",
                                 tn_dtype_name((tn_dtype)dtype));
    }
}

static int by_name(const void *a, const void *b) {
    const tn_op_info *x = a;
    const tn_op_info *y = b;
    const int domains = strcmp(x->domain, y->domain);
    if (domains != 0) return domains;
    const int names = strcmp(x->name, y->name);
    return names != 0 ? names : x->since_version - y->since_version;
}

static void print_text(const tn_op_info *ops, size_t count) {
    cli_table table;
    cli_table_init(&table, 5, 0);
    cli_table_add(&table,
                  (const char *[]){"operator", "domain", "opsets", "notes", "types of input 0"});
    for (size_t i = 0; i < count; i++) {
        char span[32];
        char types[512];
        span_text(&ops[i], span, sizeof span);
        types_text(ops[i].input_types, types, sizeof types);
        cli_table_add(&table, (const char *[]){ops[i].name,
                                               ops[i].domain[0] == '\0' ? "ai.onnx" : ops[i].domain,
                                               span, ops[i].notes, types});
    }
    cli_table_print(&table, stdout);
    cli_table_deinit(&table);
}

static void print_json(const tn_op_info *ops, size_t count) {
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_open(&json, NULL, '{');
    cli_json_open(&json, "operators", '[');
    for (size_t i = 0; i < count; i++) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "name", ops[i].name);
        cli_json_text(&json, "domain", ops[i].domain);
        cli_json_i64(&json, "since", ops[i].since_version);
        cli_json_i64(&json, "until", ops[i].until_version);
        cli_json_open(&json, "types", '[');
        for (int dtype = 1; dtype < TN_DTYPE_COUNT; dtype++) {
            if ((ops[i].input_types >> dtype & 1u) == 0) continue;
            cli_json_text(&json, NULL, tn_dtype_name((tn_dtype)dtype));
        }
        cli_json_close(&json, ']');
        cli_json_text(&json, "notes", ops[i].notes);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
}

static int list(bool wants_json) {
    const size_t count = tn_op_count();
    tn_op_info *ops = calloc(count + 1, sizeof *ops);
    if (ops == NULL) {
        cli_say_error("ops", NULL, "out of memory");
        return CLI_LIMIT;
    }
    for (size_t i = 0; i < count; i++) {
        ops[i].struct_size = sizeof ops[i];
        if (tn_op_get(i, &ops[i], NULL) != TN_OK) ops[i].name = ops[i].domain = "";
    }
    qsort(ops, count, sizeof *ops, by_name);
    if (wants_json) {
        print_json(ops, count);
    } else {
        print_text(ops, count);
    }
    free(ops);
    return CLI_OK;
}

static int list_missing(const char *path, bool wants_json) {
    tn_error err = {.code = TN_OK};
    tn_environment *environment = NULL;
    tn_model *model = NULL;
    char *text = NULL;
    int code = CLI_OK;
    const tn_environment_options one = {.struct_size = sizeof one, .thread_count = 1};
    if (tn_environment_create(&one, &environment, &err) != TN_OK ||
        tn_environment_load_model(environment, path, &model, &err) != TN_OK) {
        code = cli_fail_load(&err, path);
    } else {
        const size_t needed = tn_model_missing_ops(model, NULL, 0);
        text = malloc(needed);
        if (text != NULL) (void)tn_model_missing_ops(model, text, needed);
        code = text == NULL ? CLI_LIMIT : text[0] == '\0' ? CLI_OK : CLI_REFUSED;
    }
    if (text != NULL && wants_json) {
        cli_json json;
        cli_json_init(&json, stdout);
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "model", path);
        cli_json_text(&json, "missing", text);
        cli_json_close(&json, '}');
    } else if (text != NULL) {
        (void)printf("%s\n", text[0] == '\0' ? "nothing is missing" : text);
    }
    free(text);
    tn_model_release(model);
    tn_environment_release(environment);
    return code;
}

static int ops(const cli_args *args) {
    const char *model = cli_args_text(args, "missing", NULL);
    const bool wants_json = cli_args_has(args, "json");
    return model == NULL ? list(wants_json) : list_missing(model, wants_json);
}

const cli_command cli_ops_command = {
    .name = "ops",
    .summary = "List operators, domains, opset spans and types",
    .operands = "",
    .details = "",
    .example = "tenure ops --missing model.onnx",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .min_operands = 0,
    .max_operands = 0,
    .run = ops,
};
