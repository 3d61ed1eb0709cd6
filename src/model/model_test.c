#include <tenure/model.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "model/graph.h"
#include "model/proto_writer.h"
#include "oom_sweep.h"

enum { PAGE_BYTES = 4096, TENSOR_BYTES = 40000 };

static proto relu_model(void) {
    const proto node = proto_node("Relu", "x", "y");
    proto graph = proto_graph("y");
    proto_put(&graph, 1, &node);
    return proto_model(&graph);
}

/* y = Relu(late), late = If(x){ inner = f.F(x) }, with a function F, all out of order, and tensors
 * of every home: raw, typed, text. */
static proto rich_model(void) {
    proto raw = {.size_bytes = 0};
    proto typed = {.size_bytes = 0};
    proto strings = {.size_bytes = 0};
    proto branch = {.size_bytes = 0};
    proto body = {.size_bytes = 0};
    proto function = {.size_bytes = 0};
    proto pick = proto_node("If", "x", "late");
    proto inner = proto_node("F", "x", "inner");
    proto graph = proto_graph("y");
    const proto relu = proto_node("Relu", "late", "y");
    const proto first = proto_node("Relu", "b", "y");
    const proto second = proto_node("Relu", "x", "b");

    proto_put_text(&inner, 7, "f");
    proto_put(&body, 1, &inner);
    proto_put_text(&body, 2, "body");
    const proto out = proto_float_value("inner");
    proto_put(&body, 12, &out);
    proto_put_text(&branch, 1, "then_branch");
    proto_put_int(&branch, 20, TN_ATTRIBUTE_GRAPH);
    proto_put(&branch, 6, &body);
    proto_put(&pick, 5, &branch);

    proto_put_int(&raw, 1, 1);
    proto_put_int(&raw, 2, TN_DTYPE_F32);
    proto_put_text(&raw, 8, "raw");
    proto_put_bytes(&raw, 9, "\0\0\x80\x3f", 4);
    proto_put_int(&typed, 1, 2);
    proto_put_int(&typed, 2, TN_DTYPE_I64);
    proto_put_text(&typed, 8, "typed");
    proto_put_bytes(&typed, 7, "\x05\x07", 2);
    proto_put_int(&strings, 1, 1);
    proto_put_int(&strings, 2, TN_DTYPE_STRING);
    proto_put_text(&strings, 8, "strings");
    proto_put_text(&strings, 6, "text");

    proto_put(&graph, 1, &relu);
    proto_put(&graph, 1, &pick);
    proto_put(&graph, 5, &raw);
    proto_put(&graph, 5, &typed);
    proto_put(&graph, 5, &strings);

    proto_put_text(&function, 1, "F");
    proto_put_text(&function, 10, "f");
    proto_put_text(&function, 4, "x");
    proto_put_text(&function, 5, "y");
    proto_put(&function, 7, &first);
    proto_put(&function, 7, &second);
    proto model = proto_model(&graph);
    proto_put(&model, 25, &function);
    return model;
}

static tn_allocator *make_root(void) {
    tn_allocator *root = NULL;
    ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));
    return root;
}

static void end_root(tn_allocator *root) {
    assert_int_equal(tn_allocator_charged(root), 0);
    ASSERT_OK(tn_allocator_close(root, NULL));
    tn_allocator_release(root);
}

static tn_status load(tn_allocator *root, const proto *message, tn_model **out, tn_error *err) {
    return tn_model_load_bytes(root, message->data, message->size_bytes, NULL, out, err);
}

/* A folder of its own with files in it. */
typedef struct folder {
    char path[64];
    char model_path[96];
    char data_path[96];
} folder;

static folder make_folder(void) {
    folder f;
    (void)strcpy(f.path, "/tmp/tenure_model_XXXXXX");
    assert_non_null(mkdtemp(f.path));
    (void)snprintf(f.model_path, sizeof f.model_path, "%s/m.onnx", f.path);
    (void)snprintf(f.data_path, sizeof f.data_path, "%s/w.bin", f.path);
    return f;
}

static void end_folder(const folder *f) {
    (void)unlink(f->model_path);
    (void)unlink(f->data_path);
    assert_int_equal(rmdir(f->path), 0);
}

static void write_file(const char *path, const void *data, size_t size_bytes) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size_bytes), size_bytes);
    assert_int_equal(close(fd), 0);
}

static void append_bytes(uint8_t *data, size_t *inout_used, const proto *more) {
    memcpy(data + *inout_used, more->data, more->size_bytes);
    *inout_used += more->size_bytes;
}

/* Writes a model with one initializer of TENSOR_BYTES raw bytes. */
static size_t write_big_model(const char *path) {
    static uint8_t payload[TENSOR_BYTES];
    static uint8_t file[TENSOR_BYTES + 2 * PROTO_CAPACITY];
    proto tensor_head = {.size_bytes = 0};
    proto graph_head = {.size_bytes = 0};
    proto model_head = {.size_bytes = 0};
    const proto whole = relu_model();
    size_t used = 0;
    for (size_t i = 0; i < sizeof payload; i++) payload[i] = (uint8_t)(i % 251);

    /* a second piece of the graph field would be joined, so this one is written whole, by hand */
    const proto node = proto_node("Relu", "x", "y");
    proto rest = proto_graph("y");
    proto_put(&rest, 1, &node);
    proto_put_int(&tensor_head, 1, TENSOR_BYTES);
    proto_put_int(&tensor_head, 2, TN_DTYPE_U8);
    proto_put_text(&tensor_head, 8, "w");
    proto_varint(&tensor_head, 9 << 3 | 2);
    proto_varint(&tensor_head, TENSOR_BYTES);
    proto_varint(&graph_head, 5 << 3 | 2);
    proto_varint(&graph_head, tensor_head.size_bytes + TENSOR_BYTES);
    const size_t graph_bytes =
        rest.size_bytes + graph_head.size_bytes + tensor_head.size_bytes + TENSOR_BYTES;
    const proto empty = {.size_bytes = 0};
    model_head = proto_model(&empty);
    model_head.size_bytes -= 2; /* without the empty graph */
    proto_varint(&model_head, 7 << 3 | 2);
    proto_varint(&model_head, graph_bytes);
    append_bytes(file, &used, &model_head);
    append_bytes(file, &used, &rest);
    append_bytes(file, &used, &graph_head);
    append_bytes(file, &used, &tensor_head);
    memcpy(file + used, payload, sizeof payload);
    used += sizeof payload;
    assert_true(used > whole.size_bytes);
    write_file(path, file, used);
    return used;
}

/* A tensor of `size_bytes` U8 elements at `offset` of w.bin. */
static proto external_tensor(const char *name, size_t offset, size_t size_bytes) {
    proto tensor = {.size_bytes = 0};
    char text[32];
    proto_put_int(&tensor, 1, (int64_t)size_bytes);
    proto_put_int(&tensor, 2, TN_DTYPE_U8);
    proto_put_text(&tensor, 8, name);
    proto_put_int(&tensor, 14, 1);
    proto location = {.size_bytes = 0};
    proto_put_text(&location, 1, "location");
    proto_put_text(&location, 2, "w.bin");
    proto_put(&tensor, 13, &location);
    proto entry = {.size_bytes = 0};
    (void)snprintf(text, sizeof text, "%zu", offset);
    proto_put_text(&entry, 1, "offset");
    proto_put_text(&entry, 2, text);
    proto_put(&tensor, 13, &entry);
    proto length = {.size_bytes = 0};
    (void)snprintf(text, sizeof text, "%zu", size_bytes);
    proto_put_text(&length, 1, "length");
    proto_put_text(&length, 2, text);
    proto_put(&tensor, 13, &length);
    return tensor;
}

/* Writes w.bin and a model with two tensors in it that overlap by half. */
static void write_external_model(const folder *f) {
    static uint8_t payload[TENSOR_BYTES];
    const proto node = proto_node("Relu", "x", "y");
    const proto first = external_tensor("first", 0, TENSOR_BYTES);
    const proto second = external_tensor("second", TENSOR_BYTES / 2, TENSOR_BYTES / 2);
    proto graph = proto_graph("y");
    for (size_t i = 0; i < sizeof payload; i++) payload[i] = (uint8_t)(i % 251);
    proto_put(&graph, 1, &node);
    proto_put(&graph, 5, &first);
    proto_put(&graph, 5, &second);
    const proto model = proto_model(&graph);
    write_file(f->data_path, payload, sizeof payload);
    write_file(f->model_path, model.data, model.size_bytes);
}

static tn_allocator_stats stats_of(const tn_model *model) {
    tn_allocator_stats stats = {.struct_size = sizeof stats};
    tn_allocator_get_stats(tn_model_allocator(model), &stats);
    return stats;
}

static void model_from_bytes_has_graph_and_facts(void **state) {
    (void)state;
    const proto message = relu_model();
    tn_allocator *root = make_root();
    tn_model *model = NULL;

    ASSERT_OK(load(root, &message, &model, NULL));

    const tn_graph *graph = tn_model_graph(model);
    const tn_model_info *info = tn_model_get_info(model);
    assert_int_equal(info->ir_version, 10);
    assert_int_equal(info->opset_count, 1);
    assert_int_equal(info->opsets[0].version, 21);
    assert_int_equal(graph->node_count, 1);
    assert_true(tn_text_equals_literal(graph->nodes[0].op_type, "Relu"));
    assert_true(tn_text_equals_literal(graph->nodes[0].outputs[0], "y"));
    assert_true(tn_text_equals_literal(graph->inputs[0].name, "x"));
    assert_int_equal(graph->inputs[0].type.dtype, TN_DTYPE_F32);
    assert_int_equal(graph->inputs[0].type.rank, -1);
    assert_null(graph->parent);
    assert_string_equal(tn_allocator_name(tn_model_allocator(model)), "shared/bytes");
    tn_model_release(model);
    end_root(root);
}

static void model_out_of_order_is_sorted_everywhere(void **state) {
    (void)state;
    const proto message = rich_model();
    tn_allocator *root = make_root();
    tn_model *model = NULL;

    ASSERT_OK(load(root, &message, &model, NULL));

    const tn_graph *graph = tn_model_graph(model);
    const tn_model_info *info = tn_model_get_info(model);
    assert_true(tn_text_equals_literal(graph->nodes[0].op_type, "If"));
    assert_true(tn_text_equals_literal(graph->nodes[1].op_type, "Relu"));
    assert_int_equal(info->function_count, 1);
    assert_true(tn_text_equals_literal(info->functions[0].nodes[0].outputs[0], "b"));
    const tn_graph_attribute *branch = tn_graph_node_attribute(&graph->nodes[0], "then_branch");
    assert_non_null(branch);
    assert_ptr_equal(branch->graph->parent, graph);
    assert_true(tn_text_equals_literal(branch->graph->nodes[0].domain, "f"));
    assert_null(tn_graph_node_attribute(&graph->nodes[0], "else_branch"));
    tn_model_release(model);
    end_root(root);
}

static void model_tensors_are_dense_and_numbered(void **state) {
    (void)state;
    const proto message = rich_model();
    tn_allocator *root = make_root();
    tn_model *model = NULL;
    ASSERT_OK(load(root, &message, &model, NULL));

    const tn_graph_tensor *tensors = tn_model_graph(model)->initializers;

    float one = 0;
    memcpy(&one, tensors[0].data, sizeof one);
    assert_true(one == 1.0f);
    const int64_t *integers = tensors[1].data;
    assert_int_equal(tensors[1].size_bytes, 16);
    assert_int_equal(integers[0], 5);
    assert_int_equal(integers[1], 7);
    const tn_string *strings = tensors[2].data;
    assert_int_equal(strings[0].size_bytes, 4);
    assert_memory_equal(strings[0].data, "text", 4);
    assert_int_equal(tn_model_get_info(model)->tensor_count, 3);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(tensors[i].id, i);
    tn_model_release(model);
    end_root(root);
}

static void model_initializer_twice_keeps_the_last(void **state) {
    (void)state;
    proto first = {.size_bytes = 0};
    proto graph = proto_graph("y");
    tn_allocator *root = make_root();
    tn_model *model = NULL;
    const proto node = proto_node("Relu", "x", "y");
    proto_put_int(&first, 1, 1);
    proto_put_int(&first, 2, TN_DTYPE_U8);
    proto other = first;
    proto second = first;
    proto_put_bytes(&first, 9, "\1", 1);
    proto_put_text(&first, 8, "w");
    proto_put_bytes(&other, 9, "\2", 1);
    proto_put_text(&other, 8, "v");
    proto_put_bytes(&second, 9, "\3", 1);
    proto_put_text(&second, 8, "w");
    proto_put(&graph, 1, &node);
    proto_put(&graph, 5, &first);
    proto_put(&graph, 5, &other);
    proto_put(&graph, 5, &second);
    const proto message = proto_model(&graph);

    ASSERT_OK(load(root, &message, &model, NULL));

    const tn_graph *loaded = tn_model_graph(model);
    assert_int_equal(loaded->initializer_count, 2);
    assert_true(tn_text_equals_literal(loaded->initializers[0].name, "w"));
    assert_memory_equal(loaded->initializers[0].data, "\3", 1);
    assert_true(tn_text_equals_literal(loaded->initializers[1].name, "v"));
    tn_model_release(model);
    end_root(root);
}

static void model_bytes_are_copied_unless_borrowed(void **state) {
    (void)state;
    const proto message = rich_model();
    const tn_model_options borrow = {.struct_size = sizeof borrow, .borrow_bytes = true};
    tn_allocator *root = make_root();
    tn_model *copied = NULL;
    tn_model *borrowed = NULL;

    ASSERT_OK(load(root, &message, &copied, NULL));
    ASSERT_OK(
        tn_model_load_bytes(root, message.data, message.size_bytes, &borrow, &borrowed, NULL));

    const uint8_t *end = message.data + message.size_bytes;
    const uint8_t *inside = tn_model_graph(borrowed)->initializers[0].data;
    const uint8_t *outside = tn_model_graph(copied)->initializers[0].data;
    assert_true(inside >= message.data && inside < end);
    assert_false(outside >= message.data && outside < end);
    assert_false(tn_model_graph(borrowed)->initializers[0].is_mapped);
    tn_model_release(copied);
    tn_model_release(borrowed);
    end_root(root);
}

static void model_file_is_mapped_and_charged(void **state) {
    (void)state;
    const folder f = make_folder();
    const size_t file_bytes = write_big_model(f.model_path);
    tn_allocator *root = make_root();
    tn_model *model = NULL;

    ASSERT_OK(tn_model_load_file(root, f.model_path, NULL, &model, NULL));

    const tn_allocator_stats stats = stats_of(model);
    const size_t rounded_bytes = (file_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    assert_string_equal(stats.name, "shared/m.onnx");
    assert_int_equal(stats.mapped_bytes, rounded_bytes);
    assert_true(stats.charged_bytes > rounded_bytes);
    assert_true(stats.charged_bytes < rounded_bytes + 4096);
    assert_true(tn_model_graph(model)->initializers[0].is_mapped);
    tn_model_release(model);
    end_root(root);
    end_folder(&f);
}

static void model_file_is_copied_when_asked(void **state) {
    (void)state;
    const folder f = make_folder();
    const tn_model_options options = {.struct_size = sizeof options, .copy_file = true};
    tn_allocator *root = make_root();
    tn_model *model = NULL;
    (void)write_big_model(f.model_path);

    ASSERT_OK(tn_model_load_file(root, f.model_path, &options, &model, NULL));
    assert_int_equal(truncate(f.model_path, 0), 0);

    const tn_graph_tensor *tensor = &tn_model_graph(model)->initializers[0];
    assert_int_equal(stats_of(model).mapped_bytes, 0);
    assert_false(tensor->is_mapped);
    assert_int_equal(((const uint8_t *)tensor->data)[TENSOR_BYTES - 1], (TENSOR_BYTES - 1) % 251);
    tn_model_release(model);
    end_root(root);
    end_folder(&f);
}

static void drop_tensor_takes_its_bytes_out_once(void **state) {
    (void)state;
    const folder f = make_folder();
    tn_allocator *root = make_root();
    tn_model *model = NULL;
    (void)write_big_model(f.model_path);
    ASSERT_OK(tn_model_load_file(root, f.model_path, NULL, &model, NULL));
    const tn_graph_tensor *tensor = &tn_model_graph(model)->initializers[0];
    const tn_allocator_stats before = stats_of(model);

    tn_model_drop_tensor(model, tensor);
    tn_model_drop_tensor(model, tensor);

    const tn_allocator_stats after = stats_of(model);
    assert_int_equal(before.mapped_bytes - after.mapped_bytes, TENSOR_BYTES);
    assert_int_equal(before.charged_bytes - after.charged_bytes, TENSOR_BYTES);
    assert_int_equal(((const uint8_t *)tensor->data)[20000], 20000 % 251); /* still readable */
    tn_model_release(model);
    end_root(root);
    end_folder(&f);
}

static void drop_tensor_of_shared_bytes_never_drops_more_than_there_is(void **state) {
    (void)state;
    const folder f = make_folder();
    tn_allocator *root = make_root();
    tn_model *model = NULL;
    write_external_model(&f);
    ASSERT_OK(tn_model_load_file(root, f.model_path, NULL, &model, NULL));
    const tn_graph_tensor *tensors = tn_model_graph(model)->initializers;
    assert_int_equal(stats_of(model).mapped_bytes, PAGE_BYTES + 10 * PAGE_BYTES);

    tn_model_drop_tensor(model, &tensors[0]);
    tn_model_drop_tensor(model, &tensors[1]);

    assert_int_equal(stats_of(model).mapped_bytes, PAGE_BYTES);
    assert_int_equal(((const uint8_t *)tensors[1].data)[0], TENSOR_BYTES / 2 % 251);
    tn_model_release(model);
    end_root(root);
    end_folder(&f);
}

enum { DROP_THREADS = 4 };

static void *drop_all(void *ctx) {
    const tn_model *model = ctx;
    const tn_graph *graph = tn_model_graph(model);
    for (size_t i = 0; i < graph->initializer_count; i++) {
        tn_model_drop_tensor(model, &graph->initializers[i]);
    }
    return NULL;
}

static void drop_tensor_from_many_threads_counts_once(void **state) {
    (void)state;
    const folder f = make_folder();
    tn_allocator *root = make_root();
    tn_model *model = NULL;
    pthread_t threads[DROP_THREADS];
    const size_t file_bytes = write_big_model(f.model_path);
    ASSERT_OK(tn_model_load_file(root, f.model_path, NULL, &model, NULL));

    for (size_t i = 0; i < DROP_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, drop_all, model), 0);
    }
    for (size_t i = 0; i < DROP_THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);

    const size_t rounded_bytes = (file_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    assert_int_equal(stats_of(model).mapped_bytes, rounded_bytes - TENSOR_BYTES);
    tn_model_release(model);
    end_root(root);
    end_folder(&f);
}

static void drop_tensor_that_is_not_mapped_changes_nothing(void **state) {
    (void)state;
    const proto message = rich_model();
    tn_allocator *root = make_root();
    tn_model *model = NULL;
    ASSERT_OK(load(root, &message, &model, NULL));
    const uint64_t before = tn_allocator_charged(root);

    for (size_t i = 0; i < 3; i++) {
        tn_model_drop_tensor(model, &tn_model_graph(model)->initializers[i]);
    }

    assert_int_equal(tn_allocator_charged(root), before);
    tn_model_release(model);
    end_root(root);
}

static void model_bytes_take_external_data_from_the_folder_given(void **state) {
    (void)state;
    const folder f = make_folder();
    const tn_model_options options = {.struct_size = sizeof options, .external_data_dir = f.path};
    tn_allocator *root = make_root();
    tn_model *model = NULL;
    uint8_t message[PROTO_CAPACITY];
    write_external_model(&f);
    const int fd = open(f.model_path, O_RDONLY);
    const ssize_t size_bytes = read(fd, message, sizeof message);
    assert_true(size_bytes > 0);
    assert_int_equal(close(fd), 0);

    ASSERT_STATUS(TN_UNSUPPORTED,
                  tn_model_load_bytes(root, message, (size_t)size_bytes, NULL, &model, NULL));
    ASSERT_OK(tn_model_load_bytes(root, message, (size_t)size_bytes, &options, &model, NULL));

    assert_true(tn_model_graph(model)->initializers[1].is_mapped);
    tn_model_release(model);

    /* a file may be given another folder too */
    const folder elsewhere = make_folder();
    write_file(elsewhere.model_path, message, (size_t)size_bytes);
    ASSERT_STATUS(TN_IO, tn_model_load_file(root, elsewhere.model_path, NULL, &model, NULL));
    ASSERT_OK(tn_model_load_file(root, elsewhere.model_path, &options, &model, NULL));
    tn_model_release(model);
    end_folder(&elsewhere);
    end_root(root);
    end_folder(&f);
}

static void model_lives_until_the_last_reference(void **state) {
    (void)state;
    const proto message = relu_model();
    tn_allocator *root = make_root();
    tn_model *model = NULL;
    ASSERT_OK(load(root, &message, &model, NULL));

    assert_ptr_equal(tn_model_retain(model), model);
    tn_model_release(model);
    assert_int_equal(tn_model_graph(model)->node_count, 1);
    tn_model_release(model);

    assert_null(tn_model_retain(NULL));
    tn_model_release(NULL);
    end_root(root);
}

static void model_past_limit_returns_limit_and_leaves_no_trace(void **state) {
    (void)state;
    const folder f = make_folder();
    const proto message = rich_model();
    tn_allocator *root = make_root();
    tn_model *model = NULL;
    size_t refused = 0;
    (void)write_big_model(f.model_path);

    for (uint64_t limit = 64; limit < 16384; limit += 64) {
        tn_error err = {0};
        tn_allocator_set_limit(root, limit);
        const tn_status status = load(root, &message, &model, &err);
        if (status == TN_OK) break;
        assert_int_equal(status, TN_LIMIT);
        assert_null(model);
        assert_int_equal(err.limit_bytes, limit);
        assert_int_equal(tn_allocator_charged(root), 0);
        refused++;
    }
    assert_non_null(model);
    assert_true(refused > 10);
    tn_model_release(model);

    tn_allocator_set_limit(root, TENSOR_BYTES);
    ASSERT_STATUS(TN_LIMIT, tn_model_load_file(root, f.model_path, NULL, &model, NULL));
    tn_allocator_set_limit(root, 0);
    end_root(root);
    end_folder(&f);
}

static void model_file_faults_name_the_file(void **state) {
    (void)state;
    const folder f = make_folder();
    tn_allocator *root = make_root();
    tn_model *model = (tn_model *)(uintptr_t)1;
    tn_error err = {0};

    ASSERT_STATUS(TN_IO, tn_model_load_file(root, f.model_path, NULL, &model, &err));
    assert_null(model);
    assert_non_null(strstr(err.message, "m.onnx"));
    ASSERT_STATUS(TN_IO, tn_model_load_file(root, f.path, NULL, &model, &err));
    write_file(f.model_path, "\x08", 1);
    ASSERT_STATUS(TN_INVALID_MODEL, tn_model_load_file(root, f.model_path, NULL, &model, &err));
    assert_non_null(strstr(err.message, "m.onnx: ModelProto field 1"));
    assert_string_equal(err.node, "ModelProto");

    end_root(root);
    end_folder(&f);
}

static void model_file_that_cannot_be_mapped_or_read_is_refused(void **state) {
    (void)state;
    /* regular by its mode, a page long by its size, and neither in truth */
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    const tn_model_options copy = {.struct_size = sizeof copy, .copy_file = true};
    if (access(path, R_OK) != 0) skip();
    tn_allocator *root = make_root();
    tn_model *model = NULL;
    tn_error err = {0};

    ASSERT_STATUS(TN_IO, tn_model_load_file(root, path, NULL, &model, &err));
    assert_non_null(strstr(err.message, "map"));
    ASSERT_STATUS(TN_IO, tn_model_load_file(root, path, &copy, &model, &err));
    assert_non_null(strstr(err.message, "ended after"));

    end_root(root);
}

static void model_before_opsets_imports_the_first(void **state) {
    (void)state;
    const proto node = proto_node("Relu", "x", "y");
    proto graph = proto_graph("y");
    proto message = {.size_bytes = 0};
    tn_allocator *root = make_root();
    tn_model *model = NULL;
    proto_put(&graph, 1, &node);
    proto_put_int(&message, 1, 2);
    proto_put(&message, 7, &graph);

    ASSERT_OK(load(root, &message, &model, NULL));

    const tn_model_info *info = tn_model_get_info(model);
    assert_int_equal(info->opset_count, 1);
    assert_int_equal(info->opsets[0].version, 1);
    assert_int_equal(info->opsets[0].domain.size_bytes, 0);
    tn_model_release(model);
    end_root(root);
}

static void model_bad_arguments_are_refused(void **state) {
    (void)state;
    const tn_model_options tiny = {.struct_size = 3};
    const proto message = relu_model();
    tn_allocator *root = make_root();
    tn_model *model = NULL;

    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_model_load_file(NULL, "x", NULL, &model, NULL));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_model_load_file(root, NULL, NULL, &model, NULL));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_model_load_file(root, "x", NULL, NULL, NULL));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_model_load_bytes(root, NULL, 4, NULL, &model, NULL));
    ASSERT_STATUS(TN_INVALID_ARGUMENT,
                  tn_model_load_bytes(root, message.data, message.size_bytes, &tiny, &model, NULL));
    ASSERT_STATUS(TN_INVALID_MODEL, tn_model_load_bytes(root, NULL, 0, NULL, &model, NULL));

    assert_null(model);
    end_root(root);
}

static void model_no_prefix_is_a_model(void **state) {
    (void)state;
    const proto message = rich_model();
    const size_t without_function = message.size_bytes;
    const tn_model_options borrow = {.struct_size = sizeof borrow, .borrow_bytes = true};
    tn_allocator *root = make_root();
    size_t accepted = 0;

    for (size_t size_bytes = 0; size_bytes < without_function; size_bytes++) {
        tn_model *model = NULL;
        /* a block of exactly this size, so that a sanitizer sees one byte too many */
        uint8_t *prefix = malloc(size_bytes + (size_bytes == 0));
        assert_non_null(prefix);
        memcpy(prefix, message.data, size_bytes);
        const tn_status status =
            tn_model_load_bytes(root, prefix, size_bytes, &borrow, &model, NULL);
        if (status == TN_OK) accepted++;
        tn_model_release(model);
        free(prefix);
        assert_int_equal(tn_allocator_charged(root), 0);
    }

    assert_int_equal(accepted, 1); /* the one that ends just before the function */
    end_root(root);
}

static tn_status load_rich(tn_allocator *root, void *ctx) {
    const proto *message = ctx;
    tn_model *model = NULL;
    tn_error err = {0};
    const tn_status status = load(root, message, &model, &err);
    assert_int_equal(status == TN_OK, model != NULL);
    assert_int_equal(err.code, status);
    tn_model_release(model);
    return status;
}

static void model_load_survives_every_allocation_failure(void **state) {
    (void)state;
    proto message = rich_model();

    assert_true(tn_oom_sweep_run(load_rich, &message, false) > 5);
    assert_true(tn_oom_sweep_run(load_rich, &message, true) > 5);
}

static tn_status load_path(tn_allocator *root, void *ctx) {
    const folder *f = ctx;
    tn_model *model = NULL;
    const tn_status status = tn_model_load_file(root, f->model_path, NULL, &model, NULL);
    assert_int_equal(status == TN_OK, model != NULL);
    tn_model_release(model);
    return status;
}

static void model_file_load_survives_every_allocation_failure(void **state) {
    (void)state;
    folder f = make_folder();
    write_external_model(&f);

    assert_true(tn_oom_sweep_run(load_path, &f, false) > 3);
    assert_true(tn_oom_sweep_run(load_path, &f, true) > 3);
    end_folder(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(model_from_bytes_has_graph_and_facts),
        T(model_out_of_order_is_sorted_everywhere),
        T(model_tensors_are_dense_and_numbered),
        T(model_initializer_twice_keeps_the_last),
        T(model_bytes_are_copied_unless_borrowed),
        T(model_file_is_mapped_and_charged),
        T(model_file_is_copied_when_asked),
        T(drop_tensor_takes_its_bytes_out_once),
        T(drop_tensor_of_shared_bytes_never_drops_more_than_there_is),
        T(drop_tensor_from_many_threads_counts_once),
        T(drop_tensor_that_is_not_mapped_changes_nothing),
        T(model_bytes_take_external_data_from_the_folder_given),
        T(model_lives_until_the_last_reference),
        T(model_past_limit_returns_limit_and_leaves_no_trace),
        T(model_file_faults_name_the_file),
        T(model_file_that_cannot_be_mapped_or_read_is_refused),
        T(model_before_opsets_imports_the_first),
        T(model_bad_arguments_are_refused),
        T(model_no_prefix_is_a_model),
        T(model_load_survives_every_allocation_failure),
        T(model_file_load_survives_every_allocation_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
