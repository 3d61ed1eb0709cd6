/* Calls between model functions. A function is known by domain, name and overload, joined into one
 * key; its body is all scopes below it, so a call inside a branch counts like any other. The calls
 * form a graph whose order also gives the size of every expanded body: without that bound a small
 * file could describe more nodes than memory holds. */
#include "base/checked_size.h"
#include "base/error.h"
#include "model/label.h"
#include "model/name_table.h"
#include "model/scope_check.h"
#include "model/topological_sort.h"

/* Nodes after all calls are replaced by bodies; far above any model seen, far below harm. */
#define MAX_EXPANDED_NODES (UINT64_C(1) << 24)

typedef struct function_checker {
    const tn_loader *loader;
    const tn_model_info *info;
    tn_record_pool scratch;
    tn_name_table names;
    char *key;           /* [key_capacity], for look-ups */
    size_t key_capacity; /* of the longest function's key: a longer one is no function */
    tn_edge *edges;      /* callee to caller; [edge_count] */
    size_t edge_count;
    uint64_t *node_counts; /* [function_count + 1]: of bodies; the last is the main graph */
} function_checker;

/* Writes the key of a function: the lengths keep parts apart whatever bytes they hold. */
static tn_text write_key(char *key, tn_text domain, tn_text name, tn_text overload) {
    char *next = key;
    const tn_text parts[] = {domain, name, overload};
    for (size_t i = 0; i < TN_COUNTOF(parts); i++) {
        memcpy(next, &parts[i].size_bytes, sizeof parts[i].size_bytes);
        next += sizeof parts[i].size_bytes;
        if (parts[i].size_bytes > 0) memcpy(next, parts[i].data, parts[i].size_bytes);
        next += parts[i].size_bytes;
    }
    return (tn_text){key, (size_t)(next - key)};
}

/* All parts lie in one file, so the sum cannot wrap. */
static size_t key_bytes(tn_text domain, tn_text name, tn_text overload) {
    return 3 * sizeof(size_t) + domain.size_bytes + name.size_bytes + overload.size_bytes;
}

static tn_status add_functions(function_checker *c, tn_error *err) {
    for (uint32_t i = 0; i < c->info->function_count; i++) {
        const tn_graph_function *function = &c->info->functions[i];
        const size_t size_bytes = key_bytes(function->domain, function->name, function->overload);
        bool is_new = false;
        char *key = tn_record_pool_alloc(&c->scratch, size_bytes, 1);
        if (key == NULL) return tn_record_pool_refusal(&c->scratch, size_bytes, 1, err);
        c->key_capacity = tn_size_max(c->key_capacity, size_bytes);
        const tn_text text = write_key(key, function->domain, function->name, function->overload);
        (void)tn_name_table_add(&c->names, 0, text, i, &is_new);
        if (is_new) continue;
        const tn_label label = tn_label_of(function->name);
        (void)tn_error_set(err, TN_INVALID_MODEL, "function %s is defined twice", label.text);
        tn_error_set_node(err, label.text);
        return TN_INVALID_MODEL;
    }
    c->key = tn_record_pool_alloc(&c->scratch, c->key_capacity, 1);
    return c->key != NULL ? TN_OK : tn_record_pool_refusal(&c->scratch, c->key_capacity, 1, err);
}

/* Index of the function that `node` calls, TN_NAME_NONE when it is an operator. */
static uint32_t find_callee(const function_checker *c, const tn_graph_node *node) {
    if (key_bytes(node->domain, node->op_type, node->overload) > c->key_capacity) {
        return TN_NAME_NONE;
    }
    const tn_text key = write_key(c->key, node->domain, node->op_type, node->overload);
    const tn_name_entry *entry = tn_name_table_find(&c->names, 0, key);
    return entry != NULL ? entry->value : TN_NAME_NONE;
}

/* Walks all calls; stores edges when there is room for them, else only counts. */
static void walk_calls(function_checker *c) {
    const uint32_t main_index = (uint32_t)c->info->function_count;
    c->edge_count = 0;
    for (uint32_t index = 0; index < c->loader->scope_count; index++) {
        const tn_scope *scope = &c->loader->scopes[index];
        const bool is_main = scope->root_function == TN_SCOPE_NONE;
        const uint32_t caller = is_main ? main_index : scope->root_function;
        for (size_t i = 0; i < scope->node_count; i++) {
            const uint32_t callee = find_callee(c, &scope->nodes[i]);
            if (c->edges != NULL) c->node_counts[caller]++;
            if (callee == TN_NAME_NONE) continue;
            if (c->edges != NULL) c->edges[c->edge_count] = (tn_edge){callee, caller};
            c->edge_count++;
        }
    }
}

static tn_status function_fault(const function_checker *c, uint32_t index, tn_status code,
                                const char *what, tn_error *err) {
    const bool is_main = index == c->info->function_count;
    const tn_label label =
        is_main ? (tn_label){"main graph"} : tn_label_of(c->info->functions[index].name);
    (void)tn_error_set(err, code, "%s%s %s", is_main ? "" : "function ", label.text, what);
    tn_error_set_node(err, label.text);
    return code;
}

/* Adds every complete body to its callers, callees first. */
static tn_status expand(function_checker *c, const uint32_t *order, tn_error *err) {
    const uint32_t count = (uint32_t)c->info->function_count + 1;
    uint32_t *head = tn_record_pool_alloc(&c->scratch, count, sizeof *head);
    uint32_t *next = tn_record_pool_alloc(&c->scratch, c->edge_count, sizeof *next);
    if (head == NULL || next == NULL) {
        return tn_record_pool_refusal(&c->scratch, c->edge_count + count, sizeof *next, err);
    }
    memset(head, 0xFF, count * sizeof *head);
    for (uint32_t edge = 0; edge < c->edge_count; edge++) {
        next[edge] = head[c->edges[edge].from];
        head[c->edges[edge].from] = edge;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t node_count = c->node_counts[order[i]];
        if (node_count > MAX_EXPANDED_NODES) {
            return function_fault(c, order[i], TN_UNSUPPORTED,
                                  "expands to too many nodes once its calls are replaced", err);
        }
        /* no wrap: a body is bounded before it is added, and edges fit 32 bits */
        for (uint32_t edge = head[order[i]]; edge != TN_VERTEX_NONE; edge = next[edge]) {
            c->node_counts[c->edges[edge].to] += node_count;
        }
    }
    return TN_OK;
}

static tn_status check_calls(function_checker *c, tn_error *err) {
    const size_t count = c->info->function_count + 1;
    uint32_t on_cycle = TN_VERTEX_NONE;
    walk_calls(c);
    c->node_counts = tn_record_pool_alloc(&c->scratch, count, sizeof *c->node_counts);
    uint32_t *order = tn_record_pool_alloc(&c->scratch, count, sizeof *order);
    c->edges = tn_record_pool_alloc(&c->scratch, c->edge_count, sizeof *c->edges);
    if (c->node_counts == NULL || order == NULL || c->edges == NULL) {
        return tn_record_pool_refusal(&c->scratch, 2 * count + c->edge_count, sizeof *c->edges,
                                      err);
    }
    memset(c->node_counts, 0, count * sizeof *c->node_counts);
    walk_calls(c);

    const tn_topological_input input = {(uint32_t)count, c->edge_count, c->edges};
    const tn_status status = tn_topological_sort(&input, &c->scratch, order, &on_cycle, err);
    if (on_cycle != TN_VERTEX_NONE) {
        return function_fault(c, on_cycle, TN_INVALID_MODEL, "calls itself, directly or not", err);
    }
    TN_TRY(status);
    return expand(c, order, err);
}

tn_status tn_function_check(tn_loader *loader, const tn_model_info *info, tn_error *err) {
    tn_status status = TN_OK;
    function_checker c = {.loader = loader, .info = info};
    if (info->function_count == 0) return TN_OK;

    tn_record_pool_init(&c.scratch, loader->allocator);
    TN_TRY_GOTO(tn_name_table_init(&c.names, loader->allocator, info->function_count, err),
                cleanup);
    TN_TRY_GOTO(add_functions(&c, err), cleanup);
    TN_TRY_GOTO(check_calls(&c, err), cleanup);

cleanup:
    tn_name_table_deinit(&c.names);
    tn_record_pool_deinit(&c.scratch);
    return status;
}
