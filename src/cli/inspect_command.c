/* tenure inspect: what a model is made of, without running it. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/opened.h"

static const cli_option options[] = {
    {"nodes", CLI_FLAG, NULL, "list every node"},
    {"json", CLI_FLAG, NULL, "print one JSON object and nothing else"},
};

typedef struct op_total {
    char name[128]; /* with the domain in front when it is not ONNX's own */
    size_t count;
} op_total;

typedef struct inspection {
    cli_opened opened; /* session NULL when the model cannot be run */
    op_total *totals;  /* [total_count], owned, most frequent first */
    size_t total_count;
    char *missing; /* owned; "" when everything is supported */
} inspection;

static void label_of(const tn_node_info *info, char *text, size_t text_bytes) {
    (void)snprintf(text, text_bytes, "%.*s%s%.*s", (int)info->domain_bytes,
                   info->domain_bytes > 0 ? info->domain : "", info->domain_bytes > 0 ? ":" : "",
                   (int)info->op_type_bytes, info->op_type);
}

static void add_total(inspection *it, const char *label) {
    for (size_t i = 0; i < it->total_count; i++) {
        if (strcmp(it->totals[i].name, label) != 0) continue;
        it->totals[i].count++;
        return;
    }
    op_total *total = &it->totals[it->total_count++];
    (void)snprintf(total->name, sizeof total->name, "%s", label);
    total->count = 1;
}

static int by_count(const void *a, const void *b) {
    const op_total *x = a;
    const op_total *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->name, y->name);
}

static bool count_nodes(inspection *it) {
    const size_t count = tn_model_node_count(it->opened.model);
    it->totals = calloc(count + 1, sizeof *it->totals);
    if (it->totals == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        tn_node_info info = {.struct_size = sizeof info};
        char label[128];
        if (tn_model_node_info(it->opened.model, i, &info, NULL) != TN_OK) return false;
        label_of(&info, label, sizeof label);
        add_total(it, label);
    }
    qsort(it->totals, it->total_count, sizeof *it->totals, by_count);
    return true;
}

static bool find_missing(inspection *it) {
    const size_t needed = tn_model_missing_ops(it->opened.model, NULL, 0);
    it->missing = malloc(needed);
    if (it->missing == NULL) return false;
    (void)tn_model_missing_ops(it->opened.model, it->missing, needed);
    return true;
}

typedef tn_status (*info_fn)(const tn_session *, size_t, tn_value_info *, tn_error *);

static const char *kind_text(const tn_value_info *info) {
    switch (info->kind) {
        case TN_KIND_TENSOR:
            return info->dtype == TN_DTYPE_NONE ? "any type" : tn_dtype_name(info->dtype);
        case TN_KIND_SEQUENCE:
            return "sequence";
        case TN_KIND_OPTIONAL:
            return "optional";
        case TN_KIND_MAP:
            return "map";
        case TN_KIND_SPARSE_TENSOR:
            return "sparse tensor";
        case TN_KIND_UNKNOWN:
            break;
    }
    return "unknown";
}

static void add_values(cli_table *table, const char *role, const tn_session *session, size_t count,
                       info_fn get) {
    for (size_t i = 0; i < count; i++) {
        tn_value_info info = {.struct_size = sizeof info};
        char shape[256];
        if (get(session, i, &info, NULL) != TN_OK) continue;
        cli_table_add(table, (const char *[]){role, info.name, kind_text(&info),
                                              cli_shape_text(info.rank, info.dims, info.dim_symbols,
                                                             shape, sizeof shape)});
    }
}

static void print_head(const inspection *it) {
    char text[CLI_TEXT_BYTES];
    const tn_session *session = it->opened.session;
    (void)printf("model    %s\n", it->opened.path);
    (void)printf("nodes    %zu\n", tn_model_node_count(it->opened.model));
    (void)printf("weights  %llu bytes (%s)\n",
                 (unsigned long long)tn_model_weight_bytes(it->opened.model),
                 cli_bytes_text(tn_model_weight_bytes(it->opened.model), text));
    if (session == NULL) return;
    tn_model_meta meta = {.struct_size = sizeof meta};
    tn_session_meta(session, &meta);
    (void)printf("graph    %s\n", meta.graph_name);
    (void)printf("producer %s %s, IR version %lld\n", meta.producer_name, meta.producer_version,
                 (long long)meta.ir_version);
    (void)printf("opsets  ");
    for (size_t i = 0; i < meta.opset_count; i++) {
        const char *domain = meta.opset_domains[i];
        (void)printf(" %s %lld", domain[0] == '\0' ? "ai.onnx" : domain,
                     (long long)meta.opset_versions[i]);
    }
    (void)printf("\n\n");
    cli_table table;
    cli_table_init(&table, 4, 0);
    add_values(&table, "input", session, tn_session_input_count(session), tn_session_input_info);
    add_values(&table, "output", session, tn_session_output_count(session), tn_session_output_info);
    cli_table_print(&table, stdout);
    cli_table_deinit(&table);
}

static void print_nodes(const tn_model *model) {
    cli_table table;
    cli_table_init(&table, 5, 1u << 0 | 1u << 3 | 1u << 4);
    cli_table_add(&table, (const char *[]){"node", "operator", "name", "inputs", "outputs"});
    for (size_t i = 0; i < tn_model_node_count(model); i++) {
        tn_node_info info = {.struct_size = sizeof info};
        char index[24], label[128], name[256], inputs[24], outputs[24];
        if (tn_model_node_info(model, i, &info, NULL) != TN_OK) continue;
        label_of(&info, label, sizeof label);
        (void)snprintf(index, sizeof index, "%zu", i);
        (void)snprintf(name, sizeof name, "%.*s", (int)info.name_bytes,
                       info.name_bytes > 0 ? info.name : "");
        (void)snprintf(inputs, sizeof inputs, "%zu", info.input_count);
        (void)snprintf(outputs, sizeof outputs, "%zu", info.output_count);
        cli_table_add(&table, (const char *[]){index, label, name, inputs, outputs});
    }
    (void)printf("\n");
    cli_table_print(&table, stdout);
    cli_table_deinit(&table);
}

static void print_text(const inspection *it, bool wants_nodes) {
    cli_table table;
    print_head(it);
    cli_table_init(&table, 2, 1u << 0);
    for (size_t i = 0; i < it->total_count; i++) {
        char count[24];
        (void)snprintf(count, sizeof count, "%zu", it->totals[i].count);
        cli_table_add(&table, (const char *[]){count, it->totals[i].name});
    }
    (void)printf("\n");
    cli_table_print(&table, stdout);
    cli_table_deinit(&table);
    if (it->missing[0] != '\0') (void)printf("\nnot supported:\n%s\n", it->missing);
    if (wants_nodes) print_nodes(it->opened.model);
}

static void write_values(cli_json *json, const char *key, const tn_session *session, size_t count,
                         info_fn get) {
    cli_json_open(json, key, '[');
    for (size_t i = 0; i < count; i++) {
        tn_value_info info = {.struct_size = sizeof info};
        if (get(session, i, &info, NULL) != TN_OK) continue;
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", info.name);
        cli_json_text(json, "type", kind_text(&info));
        cli_json_open(json, "shape", '[');
        for (int32_t d = 0; d < info.rank; d++) {
            if (info.dims[d] >= 0) {
                cli_json_i64(json, NULL, info.dims[d]);
            } else {
                cli_json_text(json, NULL, info.dim_symbols[d]);
            }
        }
        cli_json_close(json, ']');
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void write_session(cli_json *json, const tn_session *session) {
    tn_model_meta meta = {.struct_size = sizeof meta};
    tn_session_meta(session, &meta);
    cli_json_text(json, "graph", meta.graph_name);
    cli_json_text(json, "producer", meta.producer_name);
    cli_json_text(json, "producer_version", meta.producer_version);
    cli_json_i64(json, "ir_version", meta.ir_version);
    cli_json_open(json, "opsets", '{');
    for (size_t i = 0; i < meta.opset_count; i++) {
        const char *domain = meta.opset_domains[i];
        cli_json_i64(json, domain[0] == '\0' ? "ai.onnx" : domain, meta.opset_versions[i]);
    }
    cli_json_close(json, '}');
    write_values(json, "inputs", session, tn_session_input_count(session), tn_session_input_info);
    write_values(json, "outputs", session, tn_session_output_count(session),
                 tn_session_output_info);
}

static void write_nodes(cli_json *json, const tn_model *model) {
    cli_json_open(json, "nodes", '[');
    for (size_t i = 0; i < tn_model_node_count(model); i++) {
        tn_node_info info = {.struct_size = sizeof info};
        if (tn_model_node_info(model, i, &info, NULL) != TN_OK) continue;
        cli_json_open(json, NULL, '{');
        cli_json_text_n(json, "name", info.name, info.name_bytes);
        cli_json_text_n(json, "op_type", info.op_type, info.op_type_bytes);
        cli_json_text_n(json, "domain", info.domain, info.domain_bytes);
        cli_json_u64(json, "inputs", info.input_count);
        cli_json_u64(json, "outputs", info.output_count);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void print_json(const inspection *it, bool wants_nodes) {
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "model", it->opened.path);
    if (it->opened.session != NULL) write_session(&json, it->opened.session);
    cli_json_u64(&json, "node_count", tn_model_node_count(it->opened.model));
    cli_json_u64(&json, "weights_bytes", tn_model_weight_bytes(it->opened.model));
    cli_json_open(&json, "operators", '{');
    for (size_t i = 0; i < it->total_count; i++) {
        cli_json_u64(&json, it->totals[i].name, it->totals[i].count);
    }
    cli_json_close(&json, '}');
    cli_json_text(&json, "unsupported", it->missing);
    if (wants_nodes) write_nodes(&json, it->opened.model);
    cli_json_close(&json, '}');
}

/* A model that lacks operators here is still described. */
static int open_session(inspection *it) {
    tn_error err = {.code = TN_OK};
    const tn_session_options session = {.struct_size = sizeof session, .thread_count = 1};
    const tn_status status = tn_session_create(it->opened.environment, it->opened.model, &session,
                                               &it->opened.session, &err);
    if (status == TN_OK || status == TN_UNSUPPORTED) return CLI_OK;
    return cli_fail_load(&err, it->opened.path);
}

static int inspect(const cli_args *args) {
    inspection it = {.totals = NULL};
    int code = cli_opened_model(args, &it.opened);
    if (code == CLI_OK) code = open_session(&it);
    if (code == CLI_OK && (!count_nodes(&it) || !find_missing(&it))) {
        cli_say_error("inspect", it.opened.path, "out of memory");
        code = CLI_LIMIT;
    }
    if (code == CLI_OK && cli_args_has(args, "json")) {
        print_json(&it, cli_args_has(args, "nodes"));
    } else if (code == CLI_OK) {
        print_text(&it, cli_args_has(args, "nodes"));
    }
    free(it.totals);
    free(it.missing);
    cli_opened_deinit(&it.opened);
    return code;
}

const cli_command cli_inspect_command = {
    .name = "inspect",
    .summary = "Show inputs, outputs, operators, weights, and what is not supported",
    .operands = "MODEL",
    .details = "",
    .example = "tenure inspect model.onnx --nodes",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .min_operands = 1,
    .max_operands = 1,
    .run = inspect,
};
