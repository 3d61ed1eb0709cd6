/* Loads model files for tests that are written in Python, and says what happened.
 *
 *   model_probe check FILE     one line: status, elapsed us, growth of peak RSS in KiB, bytes
 * charged after everything is released, node or field, message model_probe dump           reads
 * file names from stdin; prints every model as text lines
 *
 * The dump is plain enough to be made from the onnx package too; texts are escaped, payloads appear
 * as CRC-32. Exit status 0 unless the tool itself is at fault. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/graph.h"

#define FIELD_SEPARATOR '\t'

static uint32_t crc32_add(uint32_t crc, const void *data, size_t size_bytes) {
    const uint8_t *bytes = data;
    crc = ~crc;
    for (size_t i = 0; i < size_bytes; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (UINT32_C(0xEDB88320) & (0u - (crc & 1)));
    }
    return ~crc;
}

static void print_text(tn_text text) {
    putchar('\'');
    for (size_t i = 0; i < text.size_bytes; i++) {
        const uint8_t byte = (uint8_t)text.data[i];
        if (byte > 0x20 && byte < 0x7F && byte != '%' && byte != '\'') {
            putchar(byte);
        } else {
            printf("%%%02x", byte);
        }
    }
    putchar('\'');
}

static void print_texts(const char *what, size_t count, const tn_text *texts) {
    printf(" %s", what);
    for (size_t i = 0; i < count; i++) {
        putchar(' ');
        print_text(texts[i]);
    }
}

static void print_tensor(const tn_graph_tensor *tensor) {
    uint32_t crc = 0;
    print_text(tensor->name);
    printf(" %s [", tn_dtype_name(tensor->dtype));
    for (int32_t axis = 0; axis < tensor->shape.rank; axis++) {
        printf("%s%" PRId64, axis > 0 ? "," : "", tensor->shape.dims[axis]);
    }
    if (tensor->dtype == TN_DTYPE_STRING) {
        const tn_string *strings = tensor->data;
        for (size_t i = 0; i < tensor->size_bytes / sizeof *strings; i++) {
            const uint64_t size_bytes = strings[i].size_bytes;
            crc = crc32_add(crc, &size_bytes, sizeof size_bytes);
            crc = crc32_add(crc, strings[i].data, strings[i].size_bytes);
        }
    } else {
        crc = crc32_add(crc, tensor->data, tensor->size_bytes);
    }
    printf("] %zu %08" PRIx32, tensor->size_bytes, crc);
}

static void print_sparse(const tn_graph_sparse_tensor *sparse) {
    print_tensor(&sparse->values);
    putchar(' ');
    print_tensor(&sparse->indices);
    for (int32_t axis = 0; axis < sparse->shape.rank; axis++) {
        printf(" %" PRId64, sparse->shape.dims[axis]);
    }
}

static void print_type(const tn_graph_type *type) {
    static const char *const kinds[] = {"unknown",  "tensor",   "sparse",
                                        "sequence", "optional", "map"};
    for (; type != NULL; type = type->element) {
        printf(" %s", kinds[type->kind]);
        if (type->dtype != TN_DTYPE_NONE) printf(" %s", tn_dtype_name(type->dtype));
        if (type->rank >= 0) printf(" rank %d", (int)type->rank);
        for (int32_t axis = 0; axis < type->rank; axis++) {
            printf(" %" PRId64, type->dims[axis].value);
            print_text(type->dims[axis].symbol);
        }
    }
}

static void print_infos(const char *what, size_t count, const tn_graph_value_info *infos) {
    for (size_t i = 0; i < count; i++) {
        printf("%s ", what);
        print_text(infos[i].name);
        print_type(&infos[i].type);
        putchar('\n');
    }
}

static void print_attribute(const tn_graph_attribute *a) {
    printf("attribute ");
    print_text(a->name);
    putchar(' ');
    print_text(a->ref_name);
    printf(" %d", (int)a->type);
    uint32_t bits = 0;
    const bool has_value = tn_text_is_empty(a->ref_name);
    memcpy(&bits, &a->f, sizeof bits);
    if (has_value && a->type == TN_ATTRIBUTE_FLOAT) printf(" %08" PRIx32, bits);
    if (has_value && a->type == TN_ATTRIBUTE_INT) printf(" %" PRId64, a->i);
    if (has_value && a->type == TN_ATTRIBUTE_STRING) print_text(a->s);
    for (size_t i = 0; a->floats != NULL && i < a->count; i++) {
        memcpy(&bits, &a->floats[i], sizeof bits);
        printf(" %08" PRIx32, bits);
    }
    for (size_t i = 0; a->ints != NULL && i < a->count; i++) printf(" %" PRId64, a->ints[i]);
    if (a->strings != NULL) print_texts("strings", a->count, a->strings);
    for (size_t i = 0; a->tensor != NULL && i < a->count; i++) print_tensor(&a->tensor[i]);
    for (size_t i = 0; a->sparse_tensor != NULL && i < a->count; i++) {
        print_sparse(&a->sparse_tensor[i]);
    }
    for (size_t i = 0; a->type_proto != NULL && i < a->count; i++) print_type(&a->type_proto[i]);
    putchar('\n');
}

/* Graphs met in attributes wait here, so that the walk needs no recursion. */
typedef struct graph_queue {
    const tn_graph **graphs;
    size_t count;
    size_t capacity;
} graph_queue;

static void enqueue(graph_queue *queue, const tn_graph *graph) {
    if (queue->count == queue->capacity) {
        queue->capacity = queue->capacity == 0 ? 16 : queue->capacity * 2;
        queue->graphs = realloc(queue->graphs, queue->capacity * sizeof *queue->graphs);
        if (queue->graphs == NULL) abort();
    }
    queue->graphs[queue->count++] = graph;
}

static void print_nodes(graph_queue *queue, size_t count, const tn_graph_node *nodes) {
    for (size_t i = 0; i < count; i++) {
        const tn_graph_node *node = &nodes[i];
        printf("node ");
        print_text(node->op_type);
        print_text(node->domain);
        print_text(node->overload);
        print_text(node->name);
        print_texts("in", node->input_count, node->inputs);
        print_texts("out", node->output_count, node->outputs);
        putchar('\n');
        for (size_t j = 0; j < node->attribute_count; j++) {
            const tn_graph_attribute *attribute = &node->attributes[j];
            print_attribute(attribute);
            if (attribute->graph != NULL) enqueue(queue, attribute->graph);
            for (size_t k = 0; attribute->graphs != NULL && k < attribute->count; k++) {
                enqueue(queue, attribute->graphs[k]);
            }
        }
    }
}

static void print_graph(graph_queue *queue, const tn_graph *graph) {
    printf("graph ");
    print_text(graph->name);
    putchar('\n');
    print_infos("input", graph->input_count, graph->inputs);
    print_infos("output", graph->output_count, graph->outputs);
    print_infos("value", graph->value_info_count, graph->value_infos);
    for (size_t i = 0; i < graph->initializer_count; i++) {
        printf("initializer ");
        print_tensor(&graph->initializers[i]);
        putchar('\n');
    }
    for (size_t i = 0; i < graph->sparse_initializer_count; i++) {
        printf("sparse ");
        print_sparse(&graph->sparse_initializers[i]);
        putchar('\n');
    }
    print_nodes(queue, graph->node_count, graph->nodes);
}

static void print_opsets(size_t count, const tn_opset_import *opsets) {
    for (size_t i = 0; i < count; i++) {
        printf("opset ");
        print_text(opsets[i].domain);
        printf(" %" PRId64 "\n", opsets[i].version);
    }
}

static void print_function(graph_queue *queue, const tn_graph_function *function) {
    printf("function ");
    print_text(function->name);
    print_text(function->domain);
    print_text(function->overload);
    print_texts("in", function->input_count, function->inputs);
    print_texts("out", function->output_count, function->outputs);
    print_texts("attributes", function->attribute_count, function->attribute_names);
    putchar('\n');
    for (size_t i = 0; i < function->attribute_default_count; i++) {
        print_attribute(&function->attribute_defaults[i]);
    }
    print_opsets(function->opset_count, function->opsets);
    print_infos("value", function->value_info_count, function->value_infos);
    print_nodes(queue, function->node_count, function->nodes);
}

static void print_model(const tn_model *model) {
    const tn_model_info *info = tn_model_get_info(model);
    graph_queue queue = {NULL, 0, 0};
    printf("ir %" PRId64 " version %" PRId64 " ", info->ir_version, info->model_version);
    print_text(info->producer_name);
    print_text(info->producer_version);
    print_text(info->domain);
    putchar('\n');
    print_opsets(info->opset_count, info->opsets);
    for (size_t i = 0; i < info->property_count; i++) {
        printf("property ");
        print_text(info->properties[i].key);
        print_text(info->properties[i].value);
        putchar('\n');
    }
    enqueue(&queue, tn_model_graph(model));
    for (size_t i = 0; i < info->function_count; i++) print_function(&queue, &info->functions[i]);
    for (size_t next = 0; next < queue.count; next++) print_graph(&queue, queue.graphs[next]);
    free(queue.graphs);
}

/* "VmHWM" or "VmRSS" of this process in KiB. */
static long status_kib(const char *key) {
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    if (file == NULL) return -1;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) value = strtol(line + strlen(key) + 1, NULL, 10);
    }
    (void)fclose(file);
    return value;
}

static int64_t now_us(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int check(const char *path) {
    tn_allocator *root = NULL;
    tn_model *model = NULL;
    tn_error err = {0};
    if (tn_allocator_create_root(NULL, &root, &err) != TN_OK) return 1;
    const long before_kib = status_kib("VmHWM");
    const int64_t start_us = now_us();
    const tn_status status = tn_model_load_file(root, path, NULL, &model, &err);
    const int64_t elapsed_us = now_us() - start_us;
    tn_model_release(model);
    const long growth_kib = status_kib("VmHWM") - before_kib;
    printf("%s%c%" PRId64 "%c%ld%c%" PRIu64 "%c%s%c%s\n", tn_status_name(status), FIELD_SEPARATOR,
           elapsed_us, FIELD_SEPARATOR, growth_kib, FIELD_SEPARATOR, tn_allocator_charged(root),
           FIELD_SEPARATOR, err.node, FIELD_SEPARATOR, err.message);
    tn_allocator_release(root);
    return 0;
}

static int dump_all(void) {
    char path[4096];
    tn_allocator *root = NULL;
    if (tn_allocator_create_root(NULL, &root, NULL) != TN_OK) return 1;
    while (fgets(path, sizeof path, stdin) != NULL) {
        tn_model *model = NULL;
        tn_error err = {0};
        path[strcspn(path, "\n")] = '\0';
        printf("file %s\n", path);
        if (tn_model_load_file(root, path, NULL, &model, &err) != TN_OK) {
            printf("%s: %s: %s\n", tn_status_name(err.code), err.node, err.message);
            continue;
        }
        print_model(model);
        tn_model_release(model);
    }
    printf("end %" PRIu64 "\n", tn_allocator_charged(root));
    tn_allocator_release(root);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "check") == 0) return check(argv[2]);
    if (argc == 2 && strcmp(argv[1], "dump") == 0) return dump_all();
    (void)fprintf(stderr, "usage: model_probe check FILE | model_probe dump < FILES\n");
    return 2;
}
