/* From ONNX messages to the intermediate form.
 *
 * One explicit stack of frames walks the main graph, branches and inlined function bodies, so depth
 * costs no machine stack. Names are resolved here, once: a scope maps texts to value numbers, sees
 * its outer scopes inside a graph and nothing outside a function. */
#include "plan/ir.h"

#include <stdio.h>
#include <string.h>

#include "base/checked_size.h"
#include "plan/constant.h"

#define MAX_FRAMES 256
#define MAX_SYMBOLS 64
#define MAX_INLINED_NODES 2000000u

typedef struct scope {
    const struct scope *outer;
    uint32_t mask; /* table size - 1 */
    uint32_t *ids; /* [mask + 1] value ids, TN_NO_VALUE when free */
    tn_text *names;
} scope;

/* Attributes that a function body's `ref_name`s refer to. */
typedef struct binding {
    const tn_graph_node *caller; /* attributes already bound */
    const tn_graph_function *function;
} binding;

typedef struct frame {
    const tn_graph_node *nodes;
    size_t node_count;
    size_t next;
    scope *scope;
    uint32_t block;
    const tn_opset_import *opsets;
    size_t opset_count;
    const binding *binding; /* NULL outside functions */

    const tn_graph *graph;             /* a branch: its outputs become the block's */
    const tn_graph_function *function; /* an inlined body: its outputs become the call's */
    const tn_graph_node *call;
    scope *call_scope;
} frame;

typedef struct builder {
    tn_ir *ir;
    tn_bump scratch; /* scopes, frames: gone after the build */
    const tn_model_info *info;
    const tn_ir_options *options;
    frame frames[MAX_FRAMES];
    uint32_t frame_count;
    tn_text symbols[MAX_SYMBOLS];
    uint32_t symbol_count;
    char faults[TN_ERROR_MESSAGE_BYTES - 256]; /* texts of unsupported nodes */
    size_t fault_bytes;
    uint32_t fault_count;
    tn_error *err;
} builder;

static uint32_t hash_text(tn_text text) {
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < text.size_bytes; i++) {
        hash = (hash ^ (uint8_t)text.data[i]) * 16777619u;
    }
    return hash;
}

static tn_status no_memory(builder *b) {
    return tn_ir_no_memory(b->ir, b->err);
}

static scope *scope_create(builder *b, size_t name_count, const scope *outer) {
    uint32_t size = 16;
    while (size < name_count * 2 && size < (1u << 30)) size *= 2;
    scope *s = tn_bump_get(&b->scratch, sizeof *s);
    if (s == NULL) return NULL;
    s->outer = outer;
    s->mask = size - 1;
    s->ids = tn_bump_array(&b->scratch, size, sizeof *s->ids);
    s->names = tn_bump_array(&b->scratch, size, sizeof *s->names);
    if (s->ids == NULL || s->names == NULL) return NULL;
    memset(s->ids, 0xff, (size_t)size * sizeof *s->ids);
    return s;
}

/* Defines or redefines `name` in `s`; the table has twice the room that its names need. */
static void scope_define(scope *s, tn_text name, uint32_t id) {
    uint32_t slot = hash_text(name) & s->mask;
    while (s->ids[slot] != TN_NO_VALUE && !tn_text_equals(s->names[slot], name)) {
        slot = (slot + 1) & s->mask;
    }
    s->ids[slot] = id;
    s->names[slot] = name;
}

static uint32_t scope_find(const scope *s, tn_text name) {
    for (; s != NULL; s = s->outer) {
        uint32_t slot = hash_text(name) & s->mask;
        while (s->ids[slot] != TN_NO_VALUE) {
            if (tn_text_equals(s->names[slot], name)) return s->ids[slot];
            slot = (slot + 1) & s->mask;
        }
    }
    return TN_NO_VALUE;
}

static int64_t symbol_number(builder *b, tn_text symbol) {
    if (tn_text_is_empty(symbol)) return TN_DIM_UNKNOWN;
    for (uint32_t i = 0; i < b->symbol_count; i++) {
        if (tn_text_equals(b->symbols[i], symbol)) return -2 - (int64_t)i;
    }
    if (b->symbol_count == MAX_SYMBOLS) return TN_DIM_UNKNOWN;
    b->symbols[b->symbol_count] = symbol;
    return -2 - (int64_t)b->symbol_count++;
}

static void declare_type(builder *b, tn_fact *fact, const tn_graph_type *type) {
    fact->kind = type->kind == TN_KIND_UNKNOWN ? TN_KIND_TENSOR : type->kind;
    fact->dtype = type->dtype;
    fact->shape.rank = type->rank;
    for (int32_t i = 0; i < type->rank; i++) {
        const tn_graph_dim *dim = &type->dims[i];
        fact->shape.dims[i] = dim->value >= 0 ? dim->value : symbol_number(b, dim->symbol);
    }
}

static tn_status add_constant(builder *b, scope *s, tn_text name, const tn_graph_tensor *tensor) {
    const uint32_t id = tn_ir_add_value(b->ir, name, TN_IR_CONSTANT);
    if (id == TN_NO_VALUE) return no_memory(b);
    TN_TRY(tn_constant_from_tensor(b->ir, id, tensor, b->err));
    scope_define(s, name, id);
    return TN_OK;
}

static tn_status add_initializers(builder *b, scope *s, const tn_graph *graph) {
    for (size_t i = 0; i < graph->initializer_count; i++) {
        const tn_graph_tensor *tensor = &graph->initializers[i];
        TN_TRY(add_constant(b, s, tensor->name, tensor));
    }
    for (size_t i = 0; i < graph->sparse_initializer_count; i++) {
        const tn_graph_sparse_tensor *sparse = &graph->sparse_initializers[i];
        const uint32_t id = tn_ir_add_value(b->ir, sparse->values.name, TN_IR_CONSTANT);
        if (id == TN_NO_VALUE) return no_memory(b);
        TN_TRY(tn_constant_from_sparse(b->ir, id, sparse, b->err));
        scope_define(s, sparse->values.name, id);
    }
    return TN_OK;
}

/* Names that one scope may define: what its table must hold. */
static size_t name_count_of(const tn_graph_node *nodes, size_t node_count) {
    size_t count = 0;
    for (size_t i = 0; i < node_count; i++) count += nodes[i].output_count;
    return count;
}

static tn_status push_frame(builder *b, const frame *next) {
    TN_REQUIRE(b->frame_count < MAX_FRAMES, b->err, TN_INVALID_MODEL,
               "functions and branches are nested deeper than %d", MAX_FRAMES);
    b->frames[b->frame_count++] = *next;
    return TN_OK;
}

static tn_status push_graph(builder *b, const tn_graph *graph, const frame *outer, uint32_t block) {
    const size_t names = name_count_of(graph->nodes, graph->node_count) + graph->initializer_count +
                         graph->sparse_initializer_count + graph->input_count;
    scope *s = scope_create(b, names, outer == NULL ? NULL : outer->scope);
    if (s == NULL) return no_memory(b);
    TN_TRY(add_initializers(b, s, graph));
    const frame next = {.nodes = graph->nodes,
                        .node_count = graph->node_count,
                        .scope = s,
                        .block = block,
                        .opsets = outer == NULL ? b->info->opsets : outer->opsets,
                        .opset_count = outer == NULL ? b->info->opset_count : outer->opset_count,
                        .binding = outer == NULL ? NULL : outer->binding,
                        .graph = graph};
    return push_frame(b, &next);
}

static int64_t opset_of(const frame *f, tn_text domain) {
    for (size_t i = 0; i < f->opset_count; i++) {
        if (tn_text_equals(f->opsets[i].domain, domain)) return f->opsets[i].version;
    }
    return 1;
}

static const tn_graph_function *find_function(const builder *b, const tn_graph_node *node) {
    for (size_t i = 0; i < b->info->function_count; i++) {
        const tn_graph_function *f = &b->info->functions[i];
        if (tn_text_equals(f->name, node->op_type) && tn_text_equals(f->domain, node->domain) &&
            tn_text_equals(f->overload, node->overload)) {
            return f;
        }
    }
    return NULL;
}

static const tn_graph_attribute *bound_attribute(const binding *bound, tn_text ref_name) {
    for (size_t i = 0; i < bound->caller->attribute_count; i++) {
        const tn_graph_attribute *attribute = &bound->caller->attributes[i];
        if (tn_text_equals(attribute->name, ref_name)) return attribute;
    }
    for (size_t i = 0; i < bound->function->attribute_default_count; i++) {
        const tn_graph_attribute *attribute = &bound->function->attribute_defaults[i];
        if (tn_text_equals(attribute->name, ref_name)) return attribute;
    }
    return NULL;
}

/* `node` with every ref_name replaced by what the caller gave; an attribute that nobody gave is
 * left out. The node itself when it refers to none. */
static tn_status bind_attributes(builder *b, const frame *f, const tn_graph_node *node,
                                 const tn_graph_node **out) {
    *out = node;
    size_t ref_count = 0;
    for (size_t i = 0; i < node->attribute_count; i++) {
        ref_count += !tn_text_is_empty(node->attributes[i].ref_name);
    }
    if (ref_count == 0) return TN_OK;
    TN_REQUIRE(f->binding != NULL, b->err, TN_INVALID_MODEL,
               "an attribute refers to a function's attribute outside any function");
    tn_graph_node *copy = tn_bump_get(&b->ir->bump, sizeof *copy);
    tn_graph_attribute *attributes =
        tn_bump_array(&b->ir->bump, node->attribute_count, sizeof *attributes);
    if (copy == NULL || attributes == NULL) return no_memory(b);
    size_t count = 0;
    for (size_t i = 0; i < node->attribute_count; i++) {
        const tn_graph_attribute *attribute = &node->attributes[i];
        const tn_graph_attribute *source = attribute;
        if (!tn_text_is_empty(attribute->ref_name)) {
            source = bound_attribute(f->binding, attribute->ref_name);
        }
        if (source == NULL) continue;
        attributes[count] = *source;
        attributes[count].name = attribute->name;
        attributes[count].ref_name = (tn_text){NULL, 0};
        count++;
    }
    *copy = *node;
    copy->attributes = attributes;
    copy->attribute_count = count;
    *out = copy;
    return TN_OK;
}

static tn_status push_function(builder *b, const frame *f, const tn_graph_node *node,
                               const tn_graph_function *function) {
    const size_t names =
        name_count_of(function->nodes, function->node_count) + function->input_count;
    scope *s = scope_create(b, names, NULL);
    binding *bound = tn_bump_get(&b->scratch, sizeof *bound);
    if (s == NULL || bound == NULL) return no_memory(b);
    *bound = (binding){node, function};
    for (size_t i = 0; i < function->input_count && i < node->input_count; i++) {
        if (tn_text_is_empty(node->inputs[i])) continue;
        const uint32_t id = scope_find(f->scope, node->inputs[i]);
        if (id != TN_NO_VALUE) scope_define(s, function->inputs[i], id);
    }
    const frame next = {.nodes = function->nodes,
                        .node_count = function->node_count,
                        .scope = s,
                        .block = f->block,
                        .opsets = function->opsets,
                        .opset_count = function->opset_count,
                        .binding = bound,
                        .function = function,
                        .call = node,
                        .call_scope = f->scope};
    return push_frame(b, &next);
}

/* Collects one line about a node that cannot run; the build goes on to find the others. */
static void add_fault(builder *b, const tn_graph_node *node, const char *why) {
    b->fault_count++;
    if (b->fault_bytes >= sizeof b->faults - 1) return;
    const int wrote = snprintf(b->faults + b->fault_bytes, sizeof b->faults - b->fault_bytes,
                               "%snode '%.*s' (%.*s): %s", b->fault_bytes == 0 ? "" : "; ",
                               tn_text_width(node->name), node->name.data,
                               tn_text_width(node->op_type), node->op_type.data, why);
    if (wrote > 0) b->fault_bytes += (size_t)wrote;
    if (b->fault_bytes > sizeof b->faults - 1) b->fault_bytes = sizeof b->faults - 1;
}

static const char *make_name_text(builder *b, const tn_graph_node *node, uint32_t number) {
    char text[160];
    if (tn_text_is_empty(node->name)) {
        (void)snprintf(text, sizeof text, "%.*s_%u", tn_text_width(node->op_type),
                       node->op_type.data, number);
    } else {
        (void)snprintf(text, sizeof text, "%.*s", tn_text_width(node->name), node->name.data);
    }
    char *copy = tn_bump_get(&b->ir->bump, strlen(text) + 1);
    if (copy != NULL) memcpy(copy, text, strlen(text) + 1);
    return copy;
}

static tn_status check_node(builder *b, const tn_graph_node *node, tn_ir_node *made) {
    bool *present =
        tn_bump_array(&b->scratch, node->input_count + node->output_count + 1, sizeof *present);
    if (present == NULL) return no_memory(b);
    for (size_t i = 0; i < node->input_count; i++) present[i] = made->inputs[i] != TN_NO_VALUE;
    for (size_t i = 0; i < node->output_count; i++) {
        present[node->input_count + i] = made->outputs[i] != TN_NO_VALUE;
    }
    const tn_op_def *op = made->op;
    tn_error fault;
    const uint32_t max_outputs = op->max_outputs == 0 ? op->min_outputs : op->max_outputs;
    /* of a list, none may be left out: only named optional inputs may */
    const bool is_list = op->max_inputs == TN_VARIADIC;
    const size_t required =
        is_list ? tn_size_max(op->min_inputs, node->input_count) : op->min_inputs;
    for (uint32_t i = 0; i < required; i++) {
        if (i < node->input_count && present[i]) continue;
        char why[64];
        (void)snprintf(why, sizeof why, "input %u is missing", i);
        add_fault(b, node, why);
        return TN_OK;
    }
    /* but for lists, the first output is what kernels always write */
    if (op->min_outputs > 0 && max_outputs != TN_VARIADIC &&
        (node->output_count == 0 || !present[node->input_count])) {
        add_fault(b, node, "output 0 is missing");
        return TN_OK;
    }
    if ((op->max_inputs != TN_VARIADIC && node->input_count > op->max_inputs) ||
        (max_outputs != TN_VARIADIC && node->output_count > max_outputs)) {
        add_fault(b, node, "more inputs or outputs than the operator has");
        return TN_OK;
    }
    const tn_check_context ctx = {.node = node,
                                  .opset = made->opset,
                                  .input_count = made->input_count,
                                  .output_count = made->output_count,
                                  .input_present = present,
                                  .output_present = present + node->input_count,
                                  .err = &fault};
    if (op->check == NULL) return TN_OK;
    const tn_status status = op->check(&ctx, made->params);
    if (status == TN_OUT_OF_MEMORY || status == TN_LIMIT) {
        if (b->err != NULL) *b->err = fault;
        return status;
    }
    if (status != TN_OK) add_fault(b, node, fault.message);
    return TN_OK;
}

static tn_status connect_node(builder *b, const frame *f, const tn_graph_node *node,
                              uint32_t index) {
    tn_ir *ir = b->ir;
    for (size_t i = 0; i < node->input_count; i++) {
        if (tn_text_is_empty(node->inputs[i])) continue;
        const uint32_t id = scope_find(f->scope, node->inputs[i]);
        /* a function's optional input that the caller left out is left out here too */
        if (id == TN_NO_VALUE && f->binding != NULL) continue;
        TN_REQUIRE(id != TN_NO_VALUE, b->err, TN_INVALID_MODEL,
                   "node '%.*s' reads '%.*s', which nothing makes", tn_text_width(node->name),
                   node->name.data, tn_text_width(node->inputs[i]), node->inputs[i].data);
        ir->nodes[index].inputs[i] = id;
    }
    for (size_t i = 0; i < node->output_count; i++) {
        if (tn_text_is_empty(node->outputs[i])) continue;
        const uint32_t id = tn_ir_add_value(ir, node->outputs[i], TN_IR_NODE);
        if (id == TN_NO_VALUE) return no_memory(b);
        ir->values[id].producer = index;
        ir->nodes[index].outputs[i] = id;
        scope_define(f->scope, node->outputs[i], id);
    }
    return TN_OK;
}

/* Branches of a control node, pushed so that they are built next. */
static tn_status push_branches(builder *b, const tn_graph_node *node, uint32_t index) {
    static const char *const branch_names[] = {"then_branch", "else_branch"};
    const frame outer = b->frames[b->frame_count - 1];
    for (uint32_t i = 0; i < TN_COUNTOF(branch_names); i++) {
        const tn_graph_attribute *attribute = tn_graph_node_attribute(node, branch_names[i]);
        TN_REQUIRE(attribute != NULL && attribute->graph != NULL, b->err, TN_INVALID_MODEL,
                   "node '%.*s' lacks attribute %s", tn_text_width(node->name), node->name.data,
                   branch_names[i]);
        const uint32_t block = tn_ir_add_block(b->ir);
        if (block == TN_NO_BLOCK) return no_memory(b);
        b->ir->nodes[index].blocks[i] = block;
        b->ir->nodes[index].block_count = i + 1;
        TN_TRY(push_graph(b, attribute->graph, &outer, block));
    }
    return TN_OK;
}

static tn_status build_constant(builder *b, const frame *f, const tn_graph_node *node) {
    TN_REQUIRE(node->output_count == 1, b->err, TN_INVALID_MODEL, "a constant node has %zu outputs",
               node->output_count);
    const uint32_t id = tn_ir_add_value(b->ir, node->outputs[0], TN_IR_CONSTANT);
    if (id == TN_NO_VALUE) return no_memory(b);
    TN_TRY(tn_constant_from_attributes(b->ir, id, node, b->err));
    scope_define(f->scope, node->outputs[0], id);
    return TN_OK;
}

static tn_status build_node(builder *b, const tn_graph_node *raw) {
    frame *f = &b->frames[b->frame_count - 1];
    const tn_graph_node *node = NULL;
    TN_TRY(bind_attributes(b, f, raw, &node));
    const tn_graph_function *function = find_function(b, node);
    if (function != NULL) return push_function(b, f, node, function);

    const int64_t opset = opset_of(f, node->domain);
    const tn_op_def *op =
        tn_op_tables_find(b->ir->tables, b->ir->table_count, node->domain, node->op_type, opset);
    if (op == NULL) {
        char why[96];
        (void)snprintf(why, sizeof why, "operator of domain '%.*s' opset %lld is not supported",
                       (int)(node->domain.size_bytes < 32 ? node->domain.size_bytes : 32),
                       node->domain.size_bytes == 0 ? "" : node->domain.data, (long long)opset);
        add_fault(b, node, why);
    } else if ((op->flags & TN_OP_CONSTANT) != 0) {
        return build_constant(b, f, node);
    }
    /* an unknown operator still defines its outputs, so that the other faults are found too */
    static const tn_op_def unknown_op = {.name = "?", .max_inputs = TN_VARIADIC};
    TN_REQUIRE(b->ir->node_count < MAX_INLINED_NODES, b->err, TN_INVALID_MODEL,
               "more than %u nodes after inlining functions", MAX_INLINED_NODES);
    const uint32_t index =
        tn_ir_add_node(b->ir, op == NULL ? &unknown_op : op, (uint32_t)node->input_count,
                       (uint32_t)node->output_count);
    if (index == TN_NO_NODE) return no_memory(b);
    tn_ir_node *made = &b->ir->nodes[index];
    made->name = node->name;
    made->opset = opset;
    made->name_text = make_name_text(b, node, index);
    if (made->name_text == NULL) return no_memory(b);
    TN_TRY(connect_node(b, f, node, index));
    if (!tn_ir_block_append(b->ir, f->block, index)) return no_memory(b);
    if (op == NULL) return TN_OK;
    TN_TRY(check_node(b, node, &b->ir->nodes[index]));
    return (op->flags & TN_OP_CONTROL) != 0 ? push_branches(b, node, index) : TN_OK;
}

static tn_status finish_graph(builder *b, const frame *f) {
    tn_ir_block *block = &b->ir->blocks[f->block];
    block->output_count = (uint32_t)f->graph->output_count;
    block->outputs = tn_bump_array(&b->ir->bump, f->graph->output_count, sizeof *block->outputs);
    if (block->outputs == NULL) return no_memory(b);
    for (size_t i = 0; i < f->graph->output_count; i++) {
        const tn_text name = f->graph->outputs[i].name;
        block->outputs[i] = scope_find(f->scope, name);
        TN_REQUIRE(block->outputs[i] != TN_NO_VALUE, b->err, TN_INVALID_MODEL,
                   "output '%.*s' is made by no node", tn_text_width(name), name.data);
    }
    return TN_OK;
}

/* The call's output names now stand for what the body made. */
static void finish_function(const frame *f) {
    for (size_t i = 0; i < f->function->output_count && i < f->call->output_count; i++) {
        if (tn_text_is_empty(f->call->outputs[i])) continue;
        const uint32_t id = scope_find(f->scope, f->function->outputs[i]);
        if (id != TN_NO_VALUE) scope_define(f->call_scope, f->call->outputs[i], id);
    }
}

static tn_status build_frames(builder *b) {
    while (b->frame_count > 0) {
        frame *f = &b->frames[b->frame_count - 1];
        if (f->next < f->node_count) {
            const tn_graph_node *node = &f->nodes[f->next++];
            TN_TRY(build_node(b, node));
            continue;
        }
        if (f->graph != NULL) TN_TRY(finish_graph(b, f));
        if (f->function != NULL) finish_function(f);
        b->frame_count--;
    }
    return TN_OK;
}

/* Inputs of the main graph; one that has a default is a constant unless this plan is fed it. */
static tn_status add_inputs(builder *b, const tn_graph *graph, scope *s) {
    tn_ir *ir = b->ir;
    ir->input_count = (uint32_t)graph->input_count;
    ir->inputs = tn_bump_array(&ir->bump, graph->input_count, sizeof *ir->inputs);
    ir->input_has_default =
        tn_bump_array(&ir->bump, graph->input_count, sizeof *ir->input_has_default);
    if (ir->inputs == NULL || ir->input_has_default == NULL) return no_memory(b);
    for (uint32_t i = 0; i < ir->input_count; i++) {
        const tn_graph_value_info *info = &graph->inputs[i];
        const uint32_t initializer = scope_find(s, info->name);
        ir->input_has_default[i] = initializer != TN_NO_VALUE;
        ir->inputs[i] = initializer;
        const bool is_fed = b->options->fed_inputs != NULL && b->options->fed_inputs[i];
        if (initializer != TN_NO_VALUE && !is_fed) continue;
        const uint32_t id = tn_ir_add_value(ir, info->name, TN_IR_INPUT);
        if (id == TN_NO_VALUE) return no_memory(b);
        ir->values[id].input_index = i;
        declare_type(b, &ir->values[id].fact, &info->type);
        ir->inputs[i] = id;
        scope_define(s, info->name, id);
    }
    return TN_OK;
}

static tn_status report_faults(builder *b) {
    if (b->fault_count == 0) return TN_OK;
    return tn_error_set(b->err, TN_UNSUPPORTED, "%u node%s cannot run: %s", b->fault_count,
                        b->fault_count == 1 ? "" : "s", b->faults);
}

static tn_status build(builder *b) {
    const tn_graph *graph = tn_model_graph(b->ir->model);
    b->ir->main_block = tn_ir_add_block(b->ir);
    if (b->ir->main_block == TN_NO_BLOCK) return no_memory(b);
    TN_TRY(push_graph(b, graph, NULL, b->ir->main_block));
    TN_TRY(add_inputs(b, graph, b->frames[0].scope));
    TN_TRY(build_frames(b));
    return report_faults(b);
}

tn_status tn_ir_create(const tn_model *model, const tn_ir_options *options, tn_ir **out,
                       tn_error *err) {
    tn_status status = TN_OK;
    tn_ir *ir = NULL;
    builder *b = NULL;
    *out = NULL;

    ir = tn_allocator_calloc(options->allocator, 1, sizeof *ir);
    b = tn_allocator_calloc(options->allocator, 1, sizeof *b);
    TN_REQUIRE_GOTO(ir != NULL && b != NULL, cleanup, err, TN_OUT_OF_MEMORY,
                    "a plan needs %zu bytes to begin with", sizeof *ir + sizeof *b);
    ir->bump.allocator = options->allocator;
    ir->data.allocator = options->weights_allocator;
    ir->model = model;
    ir->tables = options->tables;
    ir->table_count = options->table_count;
    ir->cpu = options->cpu;
    ir->worker_count = options->worker_count;
    b->ir = ir;
    b->scratch.allocator = options->allocator;
    b->info = tn_model_get_info(model);
    b->options = options;
    b->err = err;
    TN_TRY_GOTO(build(b), cleanup);

    *out = ir;
    ir = NULL;

cleanup:
    if (b != NULL) tn_bump_deinit(&b->scratch);
    tn_allocator_free(options->allocator, b);
    tn_ir_destroy(ir);
    return status;
}

void tn_ir_destroy(tn_ir *ir) {
    if (ir == NULL) return;
    tn_allocator *allocator = ir->bump.allocator;
    tn_bump_deinit(&ir->data);
    tn_bump_deinit(&ir->bump);
    tn_allocator_free(allocator, ir);
}
