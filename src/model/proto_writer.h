/* Writes protobuf messages for tests: each field is appended to a buffer of fixed size. A message
 * in a message is written on its own first and then put as bytes. */
#ifndef TN_MODEL_PROTO_WRITER_H
#define TN_MODEL_PROTO_WRITER_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/span.h"

#define PROTO_CAPACITY 4096

typedef struct proto {
    uint8_t data[PROTO_CAPACITY];
    size_t size_bytes;
} proto;

static inline tn_bytes proto_bytes(const proto *p) {
    return (tn_bytes){p->data, p->size_bytes};
}

static inline void proto_raw(proto *p, const void *data, size_t size_bytes) {
    assert(size_bytes <= PROTO_CAPACITY - p->size_bytes);
    if (size_bytes > 0) memcpy(p->data + p->size_bytes, data, size_bytes);
    p->size_bytes += size_bytes;
}

static inline void proto_varint(proto *p, uint64_t value) {
    do {
        const uint8_t byte = (uint8_t)((value & 0x7F) | (value > 0x7F ? 0x80 : 0));
        proto_raw(p, &byte, 1);
        value >>= 7;
    } while (value != 0);
}

static inline void proto_put_int(proto *p, uint32_t number, int64_t value) {
    proto_varint(p, (uint64_t)number << 3);
    proto_varint(p, (uint64_t)value);
}

static inline void proto_put_bytes(proto *p, uint32_t number, const void *data, size_t size_bytes) {
    proto_varint(p, (uint64_t)number << 3 | 2);
    proto_varint(p, size_bytes);
    proto_raw(p, data, size_bytes);
}

static inline void proto_put_text(proto *p, uint32_t number, const char *text) {
    proto_put_bytes(p, number, text, strlen(text));
}

static inline void proto_put(proto *p, uint32_t number, const proto *message) {
    proto_put_bytes(p, number, message->data, message->size_bytes);
}

static inline void proto_put_float(proto *p, uint32_t number, float value) {
    proto_varint(p, (uint64_t)number << 3 | 5);
    proto_raw(p, &value, sizeof value);
}

/* A node with one input and one output; an empty text leaves the part out. */
static inline proto proto_node(const char *op_type, const char *input, const char *output) {
    proto node = {.size_bytes = 0};
    if (input[0] != '\0') proto_put_text(&node, 1, input);
    if (output[0] != '\0') proto_put_text(&node, 2, output);
    proto_put_text(&node, 4, op_type);
    return node;
}

/* A float tensor value of unknown shape. */
static inline proto proto_float_value(const char *name) {
    proto tensor = {.size_bytes = 0};
    proto type = {.size_bytes = 0};
    proto info = {.size_bytes = 0};
    proto_put_int(&tensor, 1, 1);
    proto_put(&type, 1, &tensor);
    proto_put_text(&info, 1, name);
    proto_put(&info, 2, &type);
    return info;
}

/* A graph with an input "x" and an output `output`. */
static inline proto proto_graph(const char *output) {
    const proto input = proto_float_value("x");
    const proto result = proto_float_value(output);
    proto graph = {.size_bytes = 0};
    proto_put_text(&graph, 2, "g");
    proto_put(&graph, 11, &input);
    proto_put(&graph, 12, &result);
    return graph;
}

/* A model of format version 10 and opset 21 around `graph`. */
static inline proto proto_model(const proto *graph) {
    proto opset = {.size_bytes = 0};
    proto model = {.size_bytes = 0};
    proto_put_int(&opset, 2, 21);
    proto_put_int(&model, 1, 10);
    proto_put(&model, 8, &opset);
    proto_put(&model, 7, graph);
    return model;
}

#endif
