/* A model: the file's bytes, the records that describe them, and the account of both. It is built
 * in one go, immutable afterwards, and shared by count. The one thing that changes later is how
 * many of the mapped bytes are still wanted; a lock guards that. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "base/ref_count.h"
#include "model/onnx_messages.h"
#include "model/scope_check.h"

struct tn_model {
    tn_ref_count refs;
    tn_allocator *allocator; /* one reference; holds this record too */
    tn_record_pool records;
    tn_file_map *files; /* owned list: the model file, external data */
    tn_buffer copy;     /* owned: models from bytes; else zero */
    tn_model_info info;
    const tn_graph *graph; /* in records */
    pthread_mutex_t drop_lock;
    uint64_t *dropped; /* owned, a bit for each tensor id; guarded by drop_lock, with files */
    bool has_drop_lock;
};

/* What the two ways of loading hand to the common part. */
typedef struct load_source {
    tn_bytes bytes;
    bool is_mapped;
    tn_text external_folder; /* data NULL: none */
} load_source;

static tn_status read_options(const tn_model_options *options, tn_model_options *out,
                              tn_error *err) {
    *out = (tn_model_options){.struct_size = sizeof *out};
    if (options == NULL) return TN_OK;
    const size_t given_bytes = options->struct_size != 0 ? options->struct_size : sizeof *out;
    TN_REQUIRE(given_bytes >= sizeof options->struct_size, err, TN_INVALID_ARGUMENT,
               "tn_model_options.struct_size is %zu", given_bytes);
    memcpy(out, options, tn_size_min(given_bytes, sizeof *out));
    return TN_OK;
}

static tn_status create_model(tn_allocator *parent, const char *base_name, tn_model **out,
                              tn_error *err) {
    tn_status status = TN_OK;
    tn_allocator *allocator = NULL;
    tn_model *model = NULL;
    char name[64];
    *out = NULL;

    (void)snprintf(name, sizeof name, "shared/%.50s", base_name);
    const tn_allocator_options options = {.struct_size = sizeof options, .name = name};
    TN_TRY_GOTO(tn_allocator_create_child(parent, &options, &allocator, err), cleanup);
    model = tn_allocator_calloc(allocator, 1, sizeof *model);
    if (model == NULL) {
        status = tn_record_refusal(allocator, sizeof *model, err);
        goto cleanup;
    }
    tn_ref_count_init(&model->refs, 1);
    tn_record_pool_init(&model->records, allocator);
    TN_REQUIRE_GOTO(pthread_mutex_init(&model->drop_lock, NULL) == 0, cleanup, err,
                    TN_OUT_OF_MEMORY, "no lock for the model");
    model->has_drop_lock = true;
    model->allocator = allocator;
    allocator = NULL;
    *out = model;
    model = NULL;

cleanup:
    if (model != NULL) tn_allocator_free(allocator, model);
    tn_allocator_release(allocator);
    return status;
}

static void destroy_model(tn_model *model) {
    if (model == NULL) return;
    tn_allocator *allocator = model->allocator;
    tn_allocator_free(allocator, model->dropped);
    tn_record_pool_deinit(&model->records);
    while (model->files != NULL) {
        tn_file_map *file = model->files;
        model->files = file->next;
        tn_file_map_destroy(file);
    }
    if (model->copy.ledger != NULL) (void)tn_buffer_release(&model->copy);
    if (model->has_drop_lock) (void)pthread_mutex_destroy(&model->drop_lock);
    tn_allocator_free(allocator, model);
    tn_allocator_release(allocator);
}

static tn_status add_drop_bits(tn_model *model, tn_error *err) {
    const size_t word_count = model->info.tensor_count / 64 + 1;
    model->dropped = tn_allocator_calloc(model->allocator, word_count, sizeof *model->dropped);
    if (model->dropped != NULL) return TN_OK;
    return tn_record_refusal(model->allocator, word_count * sizeof *model->dropped, err);
}

static tn_status read_messages(tn_model *model, const load_source *source,
                               const tn_model_options *options, tn_error *err) {
    tn_status status = TN_OK;
    tn_loader loader = {.allocator = model->allocator,
                        .records = &model->records,
                        .file = source->bytes,
                        .is_file_mapped = source->is_mapped,
                        .external = {.allocator = model->allocator,
                                     .folder = source->external_folder,
                                     .copy_file = options->copy_file,
                                     .allow_links = options->allow_external_links,
                                     .folder_fd = -1,
                                     .files = &model->files}};

    TN_TRY_GOTO(tn_onnx_read_model(&loader, &model->info, &model->graph, err), cleanup);
    TN_TRY_GOTO(tn_scope_check(&loader, err), cleanup);
    TN_TRY_GOTO(tn_function_check(&loader, &model->info, err), cleanup);
    TN_TRY_GOTO(add_drop_bits(model, err), cleanup);

cleanup:
    /* what no reader named is a fault of the message at the top */
    if (status != TN_OK) tn_error_set_node(err, "ModelProto");
    tn_external_data_deinit(&loader.external);
    tn_allocator_free(model->allocator, loader.scopes);
    return status;
}

/* The folder part of `path`, without the last slash; "." when there is none. */
static tn_text folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (slash == NULL) return (tn_text){".", 1};
    return (tn_text){path, slash == path ? 1 : (size_t)(slash - path)};
}

static const char *base_name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static tn_status open_model_file(tn_model *model, const char *path, const tn_model_options *options,
                                 tn_error *err) {
    tn_status status = TN_OK;
    /* a pipe must not block the open: it is refused once it can be looked at */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        (void)tn_error_set(err, TN_IO, "%.200s: open: %s", path, strerror(errno));
        tn_error_set_node(err, path);
        return TN_IO;
    }
    const tn_file_source source = {.fd = fd, .label = path, .copy_file = options->copy_file};
    TN_TRY_GOTO(tn_file_map_create(model->allocator, &source, &model->files, err), cleanup);

cleanup:
    (void)close(fd);
    return status;
}

tn_status tn_model_load_file(tn_allocator *allocator, const char *path,
                             const tn_model_options *options, tn_model **out, tn_error *err) {
    tn_status status = TN_OK;
    tn_model *model = NULL;
    tn_model_options known;
    TN_REQUIRE(out != NULL, err, TN_INVALID_ARGUMENT, "out is NULL");
    *out = NULL;
    TN_REQUIRE(allocator != NULL && path != NULL, err, TN_INVALID_ARGUMENT,
               "allocator or path is NULL");

    TN_TRY_GOTO(read_options(options, &known, err), cleanup);
    TN_TRY_GOTO(create_model(allocator, base_name_of(path), &model, err), cleanup);
    TN_TRY_GOTO(open_model_file(model, path, &known, err), cleanup);
    const load_source source = {
        .bytes = model->files->bytes,
        .is_mapped = model->files->is_mapped,
        .external_folder = known.external_data_dir != NULL
                               ? (tn_text){known.external_data_dir, strlen(known.external_data_dir)}
                               : folder_of(path)};
    status = read_messages(model, &source, &known, err);
    if (status != TN_OK) tn_error_prefix(err, base_name_of(path));
    if (status != TN_OK) goto cleanup;
    *out = model;
    model = NULL;

cleanup:
    destroy_model(model);
    return status;
}

tn_status tn_model_load_bytes(tn_allocator *allocator, const void *data, size_t size_bytes,
                              const tn_model_options *options, tn_model **out, tn_error *err) {
    tn_status status = TN_OK;
    tn_model *model = NULL;
    tn_model_options known;
    TN_REQUIRE(out != NULL, err, TN_INVALID_ARGUMENT, "out is NULL");
    *out = NULL;
    TN_REQUIRE(allocator != NULL && (data != NULL || size_bytes == 0), err, TN_INVALID_ARGUMENT,
               "allocator or data is NULL");

    TN_TRY_GOTO(read_options(options, &known, err), cleanup);
    TN_TRY_GOTO(create_model(allocator, "bytes", &model, err), cleanup);
    load_source source = {.bytes = {data, size_bytes}};
    if (known.external_data_dir != NULL) {
        source.external_folder =
            (tn_text){known.external_data_dir, strlen(known.external_data_dir)};
    }
    if (!known.borrow_bytes && size_bytes > 0) {
        TN_TRY_GOTO(tn_buffer_create(model->allocator, size_bytes, 0, &model->copy, err), cleanup);
        memcpy(model->copy.data, data, size_bytes);
        source.bytes.data = model->copy.data;
    }
    TN_TRY_GOTO(read_messages(model, &source, &known, err), cleanup);
    *out = model;
    model = NULL;

cleanup:
    destroy_model(model);
    return status;
}

tn_model *tn_model_retain(tn_model *model) {
    if (model != NULL) (void)tn_ref_count_retain(&model->refs);
    return model;
}

void tn_model_release(tn_model *model) {
    bool was_last = false;
    if (model == NULL) return;
    if (tn_ref_count_release(&model->refs, &was_last) && was_last) destroy_model(model);
}

tn_allocator *tn_model_allocator(const tn_model *model) {
    return model->allocator;
}

const tn_graph *tn_model_graph(const tn_model *model) {
    return model->graph;
}

const tn_model_info *tn_model_get_info(const tn_model *model) {
    return &model->info;
}

static tn_file_map *find_file(const tn_model *model, const tn_graph_tensor *tensor) {
    const uint8_t *data = tensor->data;
    for (tn_file_map *file = model->files; file != NULL; file = file->next) {
        const tn_bytes bytes = file->bytes;
        if (bytes.size_bytes > 0 && data >= bytes.data && data < bytes.data + bytes.size_bytes) {
            return file;
        }
    }
    return NULL;
}

void tn_model_drop_tensor(const tn_model *shared, const tn_graph_tensor *tensor) {
    /* nothing that a reader of the model can see changes; the lock makes it safe to share */
    tn_model *model = (tn_model *)(uintptr_t)shared;
    if (!tensor->is_mapped || tensor->id >= model->info.tensor_count) return;
    const uint64_t bit = UINT64_C(1) << (tensor->id % 64);
    uint64_t *word = &model->dropped[tensor->id / 64];

    (void)pthread_mutex_lock(&model->drop_lock);
    tn_file_map *file = find_file(model, tensor);
    if (file != NULL && (*word & bit) == 0) {
        *word |= bit;
        tn_file_map_drop(file, tensor->data, tensor->size_bytes);
    }
    (void)pthread_mutex_unlock(&model->drop_lock);
}

uint32_t tn_model_ref_count(const tn_model *model) {
    return tn_ref_count_get(&model->refs);
}
