/* Names and order. One table holds the names of all scopes; a use is looked up in its scope and
 * then outwards. A use inside a graph that a node holds makes that node depend on the producer, so
 * edges are made in the scope of the producer. Files in order (nearly all) pass with one walk and
 * no edge stored; only scopes found out of order get edges and are sorted. */
#include "model/scope_check.h"

#include <stdio.h>

#include "base/error.h"
#include "model/label.h"
#include "model/name_table.h"
#include "model/topological_sort.h"

/* Values of the table: a node's index, or one of these. */
#define IS_INPUT (UINT32_MAX - 1)
#define IS_SPARSE_INITIALIZER (UINT32_MAX - 2)
#define INITIALIZER_FLAG (UINT32_C(1) << 31)

/* What the walk learns about one scope. */
typedef struct scope_state {
    bool is_unsorted;
    size_t edge_count; /* met in this walk */
    tn_edge *edges;    /* second walk, unsorted scopes: [edge_count of the first walk] */
} scope_state;

typedef struct checker {
    tn_loader *loader;
    tn_record_pool scratch;
    tn_name_table names;
    scope_state *states; /* [scope_count] */
} checker;

/* A place that uses or makes a value, for lookups and messages. */
typedef struct use_site {
    uint32_t scope;
    uint32_t node; /* TN_SCOPE_NONE: an output of the scope */
} use_site;

/* Says in which function scope `index` lies, if in one: its node names repeat in every call. */
static void add_function_context(const tn_loader *loader, uint32_t index, tn_error *err) {
    while (index != TN_SCOPE_NONE && loader->scopes[index].function == NULL) {
        index = loader->scopes[index].parent;
    }
    if (index == TN_SCOPE_NONE) return;
    char context[TN_LABEL_BYTES + 16];
    const tn_label label = tn_label_of(loader->scopes[index].function->name);
    (void)snprintf(context, sizeof context, "function %s", label.text);
    tn_error_prefix(err, context);
}

static tn_status name_fault(const checker *c, use_site site, tn_text value, const char *what,
                            tn_error *err) {
    const tn_scope *scope = &c->loader->scopes[site.scope];
    const tn_label value_label = tn_label_of(value);
    tn_label at = {"graph output"};
    if (site.node != TN_SCOPE_NONE) {
        const tn_graph_node *node = &scope->nodes[site.node];
        at = tn_label_of_node(node->name, node->op_type, site.node);
    }
    (void)tn_error_set(err, TN_INVALID_MODEL, "%s: value %s %s", at.text, value_label.text, what);
    tn_error_set_node(err, at.text);
    add_function_context(c->loader, site.scope, err);
    return TN_INVALID_MODEL;
}

static size_t count_names(const tn_loader *loader) {
    size_t count = 0; /* each name took bytes of the file: the sum cannot wrap */
    for (uint32_t index = 0; index < loader->scope_count; index++) {
        const tn_scope *scope = &loader->scopes[index];
        if (scope->graph != NULL) {
            count += scope->graph->input_count + scope->graph->initializer_count +
                     scope->graph->sparse_initializer_count;
        } else {
            count += scope->function->input_count;
        }
        for (size_t node = 0; node < scope->node_count; node++) {
            count += scope->nodes[node].output_count;
        }
    }
    return count;
}

static tn_status add_input(checker *c, uint32_t scope, tn_text name, tn_error *err) {
    bool is_new = false;
    TN_REQUIRE(!tn_text_is_empty(name), err, TN_INVALID_MODEL, "an input has no name");
    (void)tn_name_table_add(&c->names, scope, name, IS_INPUT, &is_new);
    if (is_new) return TN_OK;
    const tn_label label = tn_label_of(name);
    (void)tn_error_set(err, TN_INVALID_MODEL, "input %s is declared twice", label.text);
    tn_error_set_node(err, label.text);
    return TN_INVALID_MODEL;
}

/* Enters the initializers; of several with one name the last takes the place of the first. */
static tn_status add_initializers(checker *c, uint32_t scope, tn_error *err) {
    const tn_scope *around = &c->loader->scopes[scope];
    tn_graph *graph = around->graph;
    size_t kept = 0;
    TN_REQUIRE(graph->initializer_count < INITIALIZER_FLAG / 2, err, TN_UNSUPPORTED,
               "GraphProto has %zu initializers", graph->initializer_count);
    for (size_t i = 0; i < graph->initializer_count; i++) {
        bool is_new = false;
        const uint32_t value = INITIALIZER_FLAG | (uint32_t)kept;
        tn_name_entry *entry =
            tn_name_table_add(&c->names, scope, around->initializers[i].name, value, &is_new);
        if (is_new || entry->value == IS_INPUT) {
            entry->value = value;
            around->initializers[kept++] = around->initializers[i];
        } else {
            around->initializers[entry->value & ~INITIALIZER_FLAG] = around->initializers[i];
        }
    }
    graph->initializer_count = kept;
    for (size_t i = 0; i < graph->sparse_initializer_count; i++) {
        bool is_new = false;
        const tn_text name = graph->sparse_initializers[i].values.name;
        tn_name_entry *entry =
            tn_name_table_add(&c->names, scope, name, IS_SPARSE_INITIALIZER, &is_new);
        TN_REQUIRE(is_new || entry->value == IS_INPUT, err, TN_INVALID_MODEL,
                   "sparse initializer %s is given twice", tn_label_of(name).text);
        entry->value = IS_SPARSE_INITIALIZER;
    }
    return TN_OK;
}

static tn_status add_outputs(checker *c, uint32_t scope, tn_error *err) {
    const tn_scope *around = &c->loader->scopes[scope];
    for (uint32_t node = 0; node < around->node_count; node++) {
        for (size_t i = 0; i < around->nodes[node].output_count; i++) {
            bool is_new = false;
            const tn_text name = around->nodes[node].outputs[i];
            if (tn_text_is_empty(name)) continue;
            (void)tn_name_table_add(&c->names, scope, name, node, &is_new);
            if (!is_new) {
                return name_fault(c, (use_site){scope, node}, name, "is made a second time", err);
            }
        }
    }
    return TN_OK;
}

static tn_status add_names(checker *c, tn_error *err) {
    for (uint32_t index = 0; index < c->loader->scope_count; index++) {
        const tn_scope *scope = &c->loader->scopes[index];
        if (scope->graph != NULL) {
            for (size_t i = 0; i < scope->graph->input_count; i++) {
                TN_TRY(add_input(c, index, scope->graph->inputs[i].name, err));
            }
            TN_TRY(add_initializers(c, index, err));
        } else {
            for (size_t i = 0; i < scope->function->input_count; i++) {
                TN_TRY(add_input(c, index, scope->function->inputs[i], err));
            }
        }
        TN_TRY(add_outputs(c, index, err));
    }
    return TN_OK;
}

/* Notes that `to` comes after `from`, both nodes of `scope`. */
static void add_edge(checker *c, uint32_t scope, uint32_t from, uint32_t to) {
    scope_state *state = &c->states[scope];
    if (from >= to) state->is_unsorted = true;
    if (state->edges != NULL) state->edges[state->edge_count] = (tn_edge){from, to};
    state->edge_count++;
}

/* Finds the producer of `value`, used at `site`, from the inside out. */
static tn_status resolve(checker *c, use_site site, tn_text value, tn_error *err) {
    uint32_t scope = site.scope;
    uint32_t node = site.node;
    while (scope != TN_SCOPE_NONE) {
        const tn_name_entry *entry = tn_name_table_find(&c->names, scope, value);
        if (entry != NULL) {
            const bool is_node = entry->value < INITIALIZER_FLAG;
            if (is_node && node != TN_SCOPE_NONE) add_edge(c, scope, entry->value, node);
            return TN_OK;
        }
        node = c->loader->scopes[scope].owner_node;
        scope = c->loader->scopes[scope].parent;
    }
    return name_fault(c, site, value, "is produced nowhere", err);
}

static tn_status resolve_output(checker *c, uint32_t scope, tn_text name, tn_error *err) {
    TN_REQUIRE(!tn_text_is_empty(name), err, TN_INVALID_MODEL, "an output has no name");
    return resolve(c, (use_site){scope, TN_SCOPE_NONE}, name, err);
}

static tn_status resolve_scope(checker *c, uint32_t index, tn_error *err) {
    const tn_scope *scope = &c->loader->scopes[index];
    for (uint32_t node = 0; node < scope->node_count; node++) {
        for (size_t i = 0; i < scope->nodes[node].input_count; i++) {
            const tn_text name = scope->nodes[node].inputs[i];
            if (!tn_text_is_empty(name)) TN_TRY(resolve(c, (use_site){index, node}, name, err));
        }
    }
    if (scope->graph != NULL) {
        for (size_t i = 0; i < scope->graph->output_count; i++) {
            TN_TRY(resolve_output(c, index, scope->graph->outputs[i].name, err));
        }
        return TN_OK;
    }
    for (size_t i = 0; i < scope->function->output_count; i++) {
        TN_TRY(resolve_output(c, index, scope->function->outputs[i], err));
    }
    return TN_OK;
}

static tn_status resolve_all(checker *c, tn_error *err) {
    for (uint32_t index = 0; index < c->loader->scope_count; index++) {
        TN_TRY(resolve_scope(c, index, err));
    }
    return TN_OK;
}

/* Walks again to store the edges of the scopes that are out of order. */
static tn_status collect_edges(checker *c, bool *out_is_needed, tn_error *err) {
    *out_is_needed = false;
    for (uint32_t index = 0; index < c->loader->scope_count; index++) {
        scope_state *state = &c->states[index];
        if (state->is_unsorted) {
            state->edges =
                tn_record_pool_alloc(&c->scratch, state->edge_count, sizeof *state->edges);
            if (state->edges == NULL) {
                return tn_record_pool_refusal(&c->scratch, state->edge_count, sizeof *state->edges,
                                              err);
            }
            *out_is_needed = true;
        }
        state->edge_count = 0;
    }
    return *out_is_needed ? resolve_all(c, err) : TN_OK;
}

static tn_status sort_scope(checker *c, uint32_t index, tn_error *err) {
    const tn_scope *scope = &c->loader->scopes[index];
    const scope_state *state = &c->states[index];
    const size_t count = scope->node_count;
    const tn_topological_input input = {(uint32_t)count, state->edge_count, state->edges};
    uint32_t on_cycle = TN_VERTEX_NONE;
    uint32_t *order = tn_record_pool_alloc(&c->scratch, count, sizeof *order);
    tn_graph_node *unsorted = tn_record_pool_alloc(&c->scratch, count, sizeof *unsorted);
    if (order == NULL || unsorted == NULL) {
        return tn_record_pool_refusal(&c->scratch, count, sizeof *unsorted, err);
    }
    const tn_status status = tn_topological_sort(&input, &c->scratch, order, &on_cycle, err);
    if (on_cycle != TN_VERTEX_NONE) {
        const tn_graph_node *node = &scope->nodes[on_cycle];
        const tn_label label = tn_label_of_node(node->name, node->op_type, on_cycle);
        (void)tn_error_set(err, TN_INVALID_MODEL, "%s: needs its own result (cycle of nodes)",
                           label.text);
        tn_error_set_node(err, label.text);
        add_function_context(c->loader, index, err);
    }
    TN_TRY(status);
    memcpy(unsorted, scope->nodes, count * sizeof *unsorted);
    for (size_t i = 0; i < count; i++) scope->nodes[i] = unsorted[order[i]];
    return TN_OK;
}

tn_status tn_scope_check(tn_loader *loader, tn_error *err) {
    tn_status status = TN_OK;
    checker c = {.loader = loader};
    bool is_sort_needed = false;
    const size_t scope_count = loader->scope_count;

    tn_record_pool_init(&c.scratch, loader->allocator);
    TN_TRY_GOTO(tn_name_table_init(&c.names, loader->allocator, count_names(loader), err), cleanup);
    c.states = tn_record_pool_alloc(&c.scratch, scope_count, sizeof *c.states);
    if (c.states == NULL) {
        status = tn_record_pool_refusal(&c.scratch, scope_count, sizeof *c.states, err);
        goto cleanup;
    }
    memset(c.states, 0, scope_count * sizeof *c.states);
    TN_TRY_GOTO(add_names(&c, err), cleanup);
    TN_TRY_GOTO(resolve_all(&c, err), cleanup);
    TN_TRY_GOTO(collect_edges(&c, &is_sort_needed, err), cleanup);
    for (uint32_t index = 0; is_sort_needed && index < scope_count; index++) {
        if (c.states[index].is_unsorted) TN_TRY_GOTO(sort_scope(&c, index, err), cleanup);
    }

cleanup:
    tn_name_table_deinit(&c.names);
    tn_record_pool_deinit(&c.scratch);
    return status;
}
