/* Feeds bytes to the loader as a model, and reads everything that a loaded one offers, so that a
 * span that leaves the input is seen by the sanitizer. Everything must be returned at the end. */
#include <stdio.h>
#include <stdlib.h>

#include <tenure/model.h>

#include "model/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Graphs still to be visited, and a sum that keeps the reads alive. */
typedef struct visitor {
    const tn_graph **graphs;
    size_t count;
    size_t capacity;
    uint64_t sum;
} visitor;

static void require(bool condition, const char *what) {
    if (condition) return;
    (void)fprintf(stderr, "model_fuzz: %s\n", what);
    abort();
}

static void add_graph(visitor *v, const tn_graph *graph) {
    if (v->count == v->capacity) {
        v->capacity = v->capacity * 2 + 16;
        v->graphs = realloc(v->graphs, v->capacity * sizeof *v->graphs);
        require(v->graphs != NULL, "no memory");
    }
    v->graphs[v->count++] = graph;
}

static void visit_bytes(visitor *v, const void *data, size_t size_bytes) {
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size_bytes; i++) v->sum = v->sum * 31 + bytes[i];
}

static void visit_text(visitor *v, tn_text text) {
    visit_bytes(v, text.data, text.size_bytes);
}

static void visit_texts(visitor *v, const tn_text *texts, size_t count) {
    for (size_t i = 0; i < count; i++) visit_text(v, texts[i]);
}

static void visit_tensor(visitor *v, const tn_graph_tensor *tensor, uint32_t tensor_count) {
    size_t size_bytes = 0;
    require(tensor->id < tensor_count, "tensor id");
    require(tn_shape_size_bytes(&tensor->shape, tensor->dtype, &size_bytes, NULL) == TN_OK,
            "shape of a tensor");
    require(size_bytes == tensor->size_bytes, "size of a tensor");
    visit_text(v, tensor->name);
    if (tensor->dtype != TN_DTYPE_STRING) {
        visit_bytes(v, tensor->data, size_bytes);
        return;
    }
    const tn_string *strings = tensor->data;
    for (size_t i = 0; i < size_bytes / sizeof *strings; i++) {
        visit_bytes(v, strings[i].data, strings[i].size_bytes);
    }
}

static void visit_type(visitor *v, const tn_graph_type *type) {
    for (; type != NULL; type = type->element) {
        for (int32_t axis = 0; axis < type->rank; axis++) visit_text(v, type->dims[axis].symbol);
    }
}

static void visit_attribute(visitor *v, const tn_graph_attribute *a, uint32_t tensor_count) {
    visit_text(v, a->name);
    visit_text(v, a->s);
    if (a->graph != NULL) add_graph(v, a->graph);
    for (size_t i = 0; i < a->count; i++) {
        if (a->graphs != NULL) add_graph(v, a->graphs[i]);
        if (a->tensor != NULL) visit_tensor(v, &a->tensor[i], tensor_count);
        if (a->sparse_tensor != NULL) {
            visit_tensor(v, &a->sparse_tensor[i].values, tensor_count);
            visit_tensor(v, &a->sparse_tensor[i].indices, tensor_count);
        }
        if (a->type_proto != NULL) visit_type(v, &a->type_proto[i]);
        if (a->ints != NULL) v->sum += (uint64_t)a->ints[i];
        if (a->floats != NULL) visit_bytes(v, &a->floats[i], sizeof a->floats[i]);
        if (a->strings != NULL) visit_text(v, a->strings[i]);
    }
}

static void visit_nodes(visitor *v, const tn_graph_node *nodes, size_t count,
                        uint32_t tensor_count) {
    for (size_t i = 0; i < count; i++) {
        require(nodes[i].op_type.size_bytes > 0, "operator of a node");
        visit_text(v, nodes[i].name);
        visit_text(v, nodes[i].op_type);
        visit_text(v, nodes[i].domain);
        visit_texts(v, nodes[i].inputs, nodes[i].input_count);
        visit_texts(v, nodes[i].outputs, nodes[i].output_count);
        for (size_t j = 0; j < nodes[i].attribute_count; j++) {
            visit_attribute(v, &nodes[i].attributes[j], tensor_count);
        }
    }
}

static void visit_infos(visitor *v, const tn_graph_value_info *infos, size_t count) {
    for (size_t i = 0; i < count; i++) {
        visit_text(v, infos[i].name);
        visit_type(v, &infos[i].type);
    }
}

static void visit_graph(visitor *v, const tn_graph *graph, uint32_t tensor_count) {
    visit_infos(v, graph->inputs, graph->input_count);
    visit_infos(v, graph->outputs, graph->output_count);
    visit_infos(v, graph->value_infos, graph->value_info_count);
    for (size_t i = 0; i < graph->initializer_count; i++) {
        visit_tensor(v, &graph->initializers[i], tensor_count);
    }
    for (size_t i = 0; i < graph->sparse_initializer_count; i++) {
        visit_tensor(v, &graph->sparse_initializers[i].values, tensor_count);
        visit_tensor(v, &graph->sparse_initializers[i].indices, tensor_count);
    }
    visit_nodes(v, graph->nodes, graph->node_count, tensor_count);
}

static void visit_model(visitor *v, const tn_model *model) {
    const tn_model_info *info = tn_model_get_info(model);
    for (size_t i = 0; i < info->opset_count; i++) visit_text(v, info->opsets[i].domain);
    for (size_t i = 0; i < info->property_count; i++) visit_text(v, info->properties[i].value);
    for (size_t i = 0; i < info->function_count; i++) {
        const tn_graph_function *function = &info->functions[i];
        visit_texts(v, function->inputs, function->input_count);
        visit_texts(v, function->outputs, function->output_count);
        visit_texts(v, function->attribute_names, function->attribute_count);
        visit_infos(v, function->value_infos, function->value_info_count);
        visit_nodes(v, function->nodes, function->node_count, info->tensor_count);
        for (size_t j = 0; j < function->attribute_default_count; j++) {
            visit_attribute(v, &function->attribute_defaults[j], info->tensor_count);
        }
    }
    add_graph(v, tn_model_graph(model));
    for (size_t next = 0; next < v->count; next++) {
        visit_graph(v, v->graphs[next], info->tensor_count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const tn_model_options options = {.struct_size = sizeof options, .borrow_bytes = true};
    tn_allocator *root = NULL;
    tn_model *model = NULL;
    tn_error err = {0};
    visitor v = {.graphs = NULL};
    require(tn_allocator_create_root(NULL, &root, NULL) == TN_OK, "no root");

    const tn_status status = tn_model_load_bytes(root, data, size, &options, &model, &err);
    if (status == TN_OK) {
        visit_model(&v, model);
    } else {
        require(err.code == status && err.message[0] != '\0' && err.node[0] != '\0',
                "an error without words");
        require(status != TN_INTERNAL && status != TN_OUT_OF_MEMORY, "an error of our own");
    }
    free(v.graphs);
    tn_model_release(model);
    require(tn_allocator_charged(root) == 0, "bytes left behind");
    tn_allocator_release(root);
    return 0;
}
