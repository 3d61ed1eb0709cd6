/* Writes small ONNX models for tests: just enough of protobuf to say nodes, inputs and weights.
 *
 *     onnx_model m;
 *     onnx_begin(&m, 13);
 *     onnx_input(&m, "x", 1, 2, (const int64_t[]){2, 3});
 *     onnx_node(&m, "Relu", "x", "y");
 *     onnx_output(&m, "y", 1, 2, (const int64_t[]){2, 3});
 *     onnx_end(&m);               m.data, m.size_bytes is a serialized ModelProto
 *     onnx_free(&m);
 *
 * Out of memory ends the test program: this is test code. */
#ifndef TN_TESTS_ONNX_BUILDER_H
#define TN_TESTS_ONNX_BUILDER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct onnx_bytes {
    unsigned char *data;
    size_t size_bytes, capacity;
} onnx_bytes;

typedef struct onnx_model {
    onnx_bytes graph;
    onnx_bytes functions; /* already with their field keys */
    onnx_bytes imports;   /* further opset imports, with their field keys */
    int64_t opset;
    unsigned char *data; /* after onnx_end */
    size_t size_bytes;
} onnx_model;

static inline void onnx_put(onnx_bytes *out, const void *data, size_t size_bytes) {
    if (out->size_bytes + size_bytes > out->capacity) {
        out->capacity = (out->size_bytes + size_bytes) * 2 + 64;
        out->data = realloc(out->data, out->capacity);
        if (out->data == NULL) abort();
    }
    if (size_bytes > 0) memcpy(out->data + out->size_bytes, data, size_bytes);
    out->size_bytes += size_bytes;
}

static inline void onnx_varint(onnx_bytes *out, uint64_t value) {
    do {
        const unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        onnx_put(out, &byte, 1);
        value >>= 7;
    } while (value != 0);
}

static inline void onnx_int_field(onnx_bytes *out, unsigned field, int64_t value) {
    onnx_varint(out, (uint64_t)field << 3);
    onnx_varint(out, (uint64_t)value);
}

static inline void onnx_bytes_field(onnx_bytes *out, unsigned field, const void *data,
                                    size_t size_bytes) {
    onnx_varint(out, (uint64_t)field << 3 | 2);
    onnx_varint(out, size_bytes);
    onnx_put(out, data, size_bytes);
}

static inline void onnx_text_field(onnx_bytes *out, unsigned field, const char *text) {
    onnx_bytes_field(out, field, text, strlen(text));
}

/* Moves the message `inner` into `out` as `field` and frees it. */
static inline void onnx_message_field(onnx_bytes *out, unsigned field, onnx_bytes *inner) {
    onnx_bytes_field(out, field, inner->data, inner->size_bytes);
    free(inner->data);
    memset(inner, 0, sizeof *inner);
}

static inline void onnx_begin(onnx_model *m, int64_t opset) {
    memset(m, 0, sizeof *m);
    m->opset = opset;
    onnx_text_field(&m->graph, 2, "test");
}

/* ValueInfoProto; a dim of -1 is symbolic "N", rank -1 leaves the shape out. */
static inline void onnx_value_info(onnx_bytes *out, unsigned field, const char *name, int dtype,
                                   int rank, const int64_t *dims) {
    onnx_bytes shape = {0}, tensor = {0}, type = {0}, info = {0};
    for (int i = 0; i < rank; i++) {
        onnx_bytes dim = {0};
        if (dims[i] < 0) {
            onnx_text_field(&dim, 2, "N");
        } else {
            onnx_int_field(&dim, 1, dims[i]);
        }
        onnx_message_field(&shape, 1, &dim);
    }
    onnx_int_field(&tensor, 1, dtype);
    if (rank >= 0) {
        onnx_message_field(&tensor, 2, &shape);
    }
    free(shape.data);
    onnx_message_field(&type, 1, &tensor);
    onnx_text_field(&info, 1, name);
    onnx_message_field(&info, 2, &type);
    onnx_message_field(out, field, &info);
}

static inline void onnx_input(onnx_model *m, const char *name, int dtype, int rank,
                              const int64_t *dims) {
    onnx_value_info(&m->graph, 11, name, dtype, rank, dims);
}

static inline void onnx_output(onnx_model *m, const char *name, int dtype, int rank,
                               const int64_t *dims) {
    onnx_value_info(&m->graph, 12, name, dtype, rank, dims);
}

static inline void onnx_tensor(onnx_bytes *out, unsigned field, const char *name, int dtype,
                               int rank, const int64_t *dims, const void *data, size_t size_bytes) {
    onnx_bytes tensor = {0};
    for (int i = 0; i < rank; i++) onnx_int_field(&tensor, 1, dims[i]);
    onnx_int_field(&tensor, 2, dtype);
    onnx_text_field(&tensor, 8, name);
    onnx_bytes_field(&tensor, 9, data, size_bytes);
    onnx_message_field(out, field, &tensor);
}

static inline void onnx_initializer(onnx_model *m, const char *name, int dtype, int rank,
                                    const int64_t *dims, const void *data, size_t size_bytes) {
    onnx_tensor(&m->graph, 5, name, dtype, rank, dims, data, size_bytes);
}

/* Names separated by spaces; "-" is a left-out one. */
static inline void onnx_names(onnx_bytes *out, unsigned field, const char *names) {
    char copy[512];
    (void)snprintf(copy, sizeof copy, "%s", names);
    char *rest = NULL;
    for (char *name = strtok_r(copy, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest)) {
        onnx_text_field(out, field, strcmp(name, "-") == 0 ? "" : name);
    }
}

/* Starts a node; attributes follow, then onnx_node_end. */
static inline void onnx_node_begin(onnx_bytes *node, const char *op, const char *inputs,
                                   const char *outputs) {
    memset(node, 0, sizeof *node);
    onnx_names(node, 1, inputs);
    onnx_names(node, 2, outputs);
    onnx_text_field(node, 4, op);
    char name[128];
    (void)snprintf(name, sizeof name, "%s_%s", op, outputs);
    onnx_text_field(node, 3, name);
}

static inline void onnx_attribute_int(onnx_bytes *node, const char *name, int64_t value) {
    onnx_bytes attribute = {0};
    onnx_text_field(&attribute, 1, name);
    onnx_int_field(&attribute, 3, value);
    onnx_int_field(&attribute, 20, 2);
    onnx_message_field(node, 5, &attribute);
}

static inline void onnx_attribute_ints(onnx_bytes *node, const char *name, const int64_t *values,
                                       size_t count) {
    onnx_bytes attribute = {0};
    onnx_text_field(&attribute, 1, name);
    for (size_t i = 0; i < count; i++) onnx_int_field(&attribute, 8, values[i]);
    onnx_int_field(&attribute, 20, 7);
    onnx_message_field(node, 5, &attribute);
}

static inline void onnx_attribute_graph(onnx_bytes *node, const char *name, onnx_bytes *graph) {
    onnx_bytes attribute = {0};
    onnx_text_field(&attribute, 1, name);
    onnx_message_field(&attribute, 6, graph);
    onnx_int_field(&attribute, 20, 5);
    onnx_message_field(node, 5, &attribute);
}

/* Ends a node in `graph` (a model's graph or a branch's). */
static inline void onnx_node_end(onnx_bytes *graph, onnx_bytes *node) {
    onnx_message_field(graph, 1, node);
}

static inline void onnx_node_in(onnx_bytes *graph, const char *op, const char *inputs,
                                const char *outputs) {
    onnx_bytes node;
    onnx_node_begin(&node, op, inputs, outputs);
    onnx_node_end(graph, &node);
}

static inline void onnx_node(onnx_model *m, const char *op, const char *inputs,
                             const char *outputs) {
    onnx_node_in(&m->graph, op, inputs, outputs);
}

/* OperatorSetIdProto as `field` of `out`. */
static inline void onnx_import(onnx_bytes *out, unsigned field, const char *domain,
                               int64_t version) {
    onnx_bytes opset = {0};
    if (domain[0] != '\0') onnx_text_field(&opset, 1, domain);
    onnx_int_field(&opset, 2, version);
    onnx_message_field(out, field, &opset);
}

/* A model-local function; `nodes` holds its nodes as field 7 of FunctionProto. */
static inline void onnx_function(onnx_model *m, const char *domain, const char *name,
                                 const char *inputs, const char *outputs, onnx_bytes *nodes) {
    onnx_bytes function = {0};
    onnx_text_field(&function, 1, name);
    onnx_names(&function, 4, inputs);
    onnx_names(&function, 5, outputs);
    onnx_put(&function, nodes->data, nodes->size_bytes);
    free(nodes->data);
    onnx_import(&function, 9, "", m->opset);
    onnx_text_field(&function, 10, domain);
    onnx_message_field(&m->functions, 25, &function);
}

static inline void onnx_end(onnx_model *m) {
    onnx_bytes model = {0};
    onnx_int_field(&model, 1, 7);
    onnx_import(&model, 8, "", m->opset);
    onnx_put(&model, m->imports.data, m->imports.size_bytes);
    onnx_message_field(&model, 7, &m->graph);
    onnx_put(&model, m->functions.data, m->functions.size_bytes);
    free(m->functions.data);
    free(m->imports.data);
    m->data = model.data;
    m->size_bytes = model.size_bytes;
}

static inline void onnx_free(onnx_model *m) {
    free(m->data);
    memset(m, 0, sizeof *m);
}

#endif
