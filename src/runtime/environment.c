/* Environments: options and variables read once, one root, one pool, the models that sessions
 * share. There is no global: two environments know nothing of each other. */
#include "runtime/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "memory/fault.h"
#include "memory/tree.h"
#include "model/graph.h"

#define MAX_THREADS TN_MAX_WORKERS

static void *base_alloc(void *ctx, size_t size_bytes) {
    return tn_allocator_malloc(ctx, size_bytes);
}

static void base_free(void *ctx, void *data) {
    tn_allocator_free(ctx, data);
}

static bool may_start(void *ctx) {
    const tn_allocator *allocator = ctx;
    return !tn_fault_hits(allocator->root->fault, TN_FAULT_THREAD);
}

tn_base_alloc tn_environment_base_alloc(tn_allocator *allocator) {
    return (tn_base_alloc){
        .ctx = allocator, .alloc = base_alloc, .free = base_free, .may_start_thread = may_start};
}

/* "64MiB", "1.5G" is not read: digits and one of K, M, G, with or without iB or B. */
static tn_status read_size(const char *name, const char *text, uint64_t *out, tn_error *err) {
    char *end = NULL;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    uint64_t unit = 1;
    if (*end == 'K' || *end == 'k') unit = (uint64_t)1 << 10;
    if (*end == 'M' || *end == 'm') unit = (uint64_t)1 << 20;
    if (*end == 'G' || *end == 'g') unit = (uint64_t)1 << 30;
    if (unit > 1) end++;
    if (strcmp(end, "iB") == 0) end += 2;
    if (strcmp(end, "B") == 0) end += 1;
    const bool is_number = text[0] >= '0' && text[0] <= '9' && errno == 0 && *end == '\0';
    TN_REQUIRE(is_number && !__builtin_mul_overflow((uint64_t)number, unit, out), err,
               TN_INVALID_ARGUMENT, "%s='%s' is not a size such as 512MiB", name, text);
    return TN_OK;
}

static tn_status read_threads(const char *text, uint32_t *out, tn_error *err) {
    char *end = NULL;
    const unsigned long number = strtoul(text, &end, 10);
    TN_REQUIRE(
        text[0] >= '0' && text[0] <= '9' && *end == '\0' && number >= 1 && number <= MAX_THREADS,
        err, TN_INVALID_ARGUMENT, "TENURE_NUM_THREADS='%s' is not a number from 1 to %d", text,
        MAX_THREADS);
    *out = (uint32_t)number;
    return TN_OK;
}

/* Options win over variables; what is neither given nor set gets its default. */
static tn_status complete_options(tn_environment_options *options, tn_error *err) {
    const char *limit = getenv("TENURE_MEMORY_LIMIT");
    const char *threads = getenv("TENURE_NUM_THREADS");
    if (options->memory_limit_bytes == 0 && limit != NULL) {
        TN_TRY(read_size("TENURE_MEMORY_LIMIT", limit, &options->memory_limit_bytes, err));
    }
    if (options->thread_count == 0 && threads != NULL) {
        TN_TRY(read_threads(threads, &options->thread_count, err));
    }
    if (options->thread_count == 0) {
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        options->thread_count = online < 1 ? 1 : (uint32_t)online;
        if (options->thread_count > MAX_THREADS) options->thread_count = MAX_THREADS;
    }
    const char *level = getenv("TENURE_LOG");
    if (options->log_level == TN_LOG_DEFAULT) {
        options->log_level = TN_LOG_WARN;
        if (level != NULL) TN_TRY(tn_log_level_parse(level, &options->log_level, err));
    }
    TN_REQUIRE(options->thread_count <= MAX_THREADS, err, TN_INVALID_ARGUMENT,
               "%u threads, at most %d make sense", options->thread_count, MAX_THREADS);
    return TN_OK;
}

static tn_status make_allocator(const tn_environment_options *options, tn_allocator **out,
                                tn_error *err) {
    const tn_allocator_options node = {.struct_size = sizeof node,
                                       .name = "environment",
                                       .limit_bytes = options->memory_limit_bytes,
                                       .page_source = options->page_source,
                                       .page_source_name = options->page_source_name,
                                       .fault = options->fault};
    if (options->parent == NULL) return tn_allocator_create_root(&node, out, err);
    return tn_allocator_create_child(options->parent, &node, out, err);
}

tn_status tn_environment_create(const tn_environment_options *given, tn_environment **out,
                                tn_error *err) {
    tn_status status = TN_OK;
    tn_environment *environment = NULL;
    tn_allocator *allocator = NULL;
    tn_environment_options options;
    TN_REQUIRE(out != NULL, err, TN_INVALID_ARGUMENT, "there is no place for the environment");
    *out = NULL;
    TN_TRY(tn_options_copy(&options, sizeof options, given, err));
    TN_TRY(complete_options(&options, err));
    TN_TRY(make_allocator(&options, &allocator, err));
    const uint64_t refusals = tn_tree_refusal_number(allocator);
    environment = tn_allocator_calloc(allocator, 1, sizeof *environment);
    TN_REQUIRE_GOTO(environment != NULL, cleanup, err, TN_OUT_OF_MEMORY,
                    "an environment needs %zu bytes", sizeof *environment);
    tn_ref_count_init(&environment->refs, 1);
    environment->allocator = tn_allocator_retain(allocator);
    environment->owns_root = options.parent == NULL;
    (void)pthread_mutex_init(&environment->mutex, NULL);
    environment->thread_count = options.thread_count;
    environment->cpu = tn_cpu_features_detect();
    environment->log = (tn_log){options.log_level, options.log_ctx, options.log_sink};
    if (options.thread_count > 1) {
        const tn_base_alloc memory = tn_environment_base_alloc(allocator);
        TN_TRY_GOTO(tn_thread_pool_create(&memory, options.thread_count, &environment->pool, err),
                    cleanup);
    }
    *out = environment;
    environment = NULL;

cleanup:
    status = tn_tree_explain(allocator, refusals, status, err);
    tn_environment_release(environment);
    tn_allocator_release(allocator);
    return status;
}

tn_environment *tn_environment_retain(tn_environment *environment) {
    if (environment == NULL || !tn_ref_count_retain(&environment->refs)) return NULL;
    return environment;
}

static void destroy_shared(tn_environment *environment, tn_shared_model *shared) {
    tn_weights_deinit(&shared->packed);
    tn_model_release(shared->model);
    tn_allocator_free(environment->allocator, shared->path);
    tn_allocator_free(environment->allocator, shared);
}

/* Drops models that neither a session nor a caller uses. Mutex held. */
static void sweep_models(tn_environment *environment) {
    tn_shared_model **link = &environment->shared_models;
    while (*link != NULL) {
        tn_shared_model *shared = *link;
        if (shared->session_count > 0 || tn_model_ref_count(shared->model) > 1) {
            link = &shared->next;
            continue;
        }
        *link = shared->next;
        destroy_shared(environment, shared);
    }
}

void tn_environment_release(tn_environment *environment) {
    bool was_last = false;
    if (environment == NULL) return;
    if (!tn_ref_count_release(&environment->refs, &was_last) || !was_last) return;
    while (environment->shared_models != NULL) {
        tn_shared_model *shared = environment->shared_models;
        environment->shared_models = shared->next;
        destroy_shared(environment, shared);
    }
    tn_thread_pool_destroy(environment->pool);
    (void)pthread_mutex_destroy(&environment->mutex);
    tn_allocator *allocator = environment->allocator;
    tn_allocator_free(allocator, environment);
    tn_allocator_release(allocator);
}

void tn_environment_close(tn_environment *environment) {
    if (environment == NULL) return;
    (void)pthread_mutex_lock(&environment->mutex);
    environment->is_closed = true;
    sweep_models(environment);
    (void)pthread_mutex_unlock(&environment->mutex);
}

tn_allocator *tn_environment_allocator(const tn_environment *environment) {
    return environment->allocator;
}

static tn_status create_shared(tn_environment *environment, tn_model *model, tn_shared_model **out,
                               tn_error *err) {
    tn_shared_model *shared = tn_allocator_calloc(environment->allocator, 1, sizeof *shared);
    TN_REQUIRE(shared != NULL, err, TN_OUT_OF_MEMORY, "a shared model's record needs %zu bytes",
               sizeof *shared);
    shared->model = tn_model_retain(model);
    tn_weights_init(&shared->packed, tn_model_allocator(model));
    shared->next = environment->shared_models;
    environment->shared_models = shared;
    *out = shared;
    return TN_OK;
}

tn_status tn_environment_share_model(tn_environment *environment, tn_model *model,
                                     tn_shared_model **out, tn_error *err) {
    tn_status status = TN_OK;
    tn_shared_model *shared = NULL;
    (void)pthread_mutex_lock(&environment->mutex);
    TN_REQUIRE_GOTO(!environment->is_closed, cleanup, err, TN_CLOSED, "the environment is closed");
    shared = environment->shared_models;
    while (shared != NULL && shared->model != model) shared = shared->next;
    if (shared == NULL) TN_TRY_GOTO(create_shared(environment, model, &shared, err), cleanup);
    shared->session_count++;
    *out = shared;

cleanup:
    (void)pthread_mutex_unlock(&environment->mutex);
    return status;
}

void tn_environment_unshare_model(tn_environment *environment, tn_shared_model *shared) {
    if (shared == NULL) return;
    (void)pthread_mutex_lock(&environment->mutex);
    shared->session_count--;
    sweep_models(environment);
    (void)pthread_mutex_unlock(&environment->mutex);
}

static bool is_same_file(const tn_shared_model *shared, const char *path, const struct stat *info) {
    return shared->path != NULL && strcmp(shared->path, path) == 0 &&
           shared->device == info->st_dev && shared->inode == info->st_ino &&
           shared->size_bytes == (uint64_t)info->st_size &&
           shared->modified_ns ==
               (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

static tn_status load_new(tn_environment *environment, const char *path, const struct stat *info,
                          tn_model **out, tn_error *err) {
    tn_status status = TN_OK;
    tn_shared_model *shared = NULL;
    const size_t path_bytes = strlen(path) + 1;
    char *copy = NULL;
    TN_TRY(tn_model_load_file(environment->allocator, path, NULL, out, err));
    copy = tn_allocator_malloc(environment->allocator, path_bytes);
    TN_REQUIRE_GOTO(copy != NULL, cleanup, err, TN_OUT_OF_MEMORY, "a path needs %zu bytes",
                    path_bytes);
    TN_TRY_GOTO(create_shared(environment, *out, &shared, err), cleanup);
    memcpy(copy, path, path_bytes);
    shared->path = copy;
    shared->device = info->st_dev;
    shared->inode = info->st_ino;
    shared->size_bytes = (uint64_t)info->st_size;
    shared->modified_ns = (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
    return TN_OK;

cleanup:
    tn_allocator_free(environment->allocator, copy);
    tn_model_release(*out);
    *out = NULL;
    return status;
}

tn_status tn_environment_load_model(tn_environment *environment, const char *path, tn_model **out,
                                    tn_error *err) {
    tn_status status = TN_OK;
    struct stat info;
    TN_REQUIRE(environment != NULL && path != NULL && out != NULL, err, TN_INVALID_ARGUMENT,
               "loading needs an environment, a path and a place for the model");
    *out = NULL;
    TN_REQUIRE(stat(path, &info) == 0, err, TN_IO, "%s: %s", path, strerror(errno));
    const uint64_t refusals = tn_tree_refusal_number(environment->allocator);
    (void)pthread_mutex_lock(&environment->mutex);
    TN_REQUIRE_GOTO(!environment->is_closed, cleanup, err, TN_CLOSED, "the environment is closed");
    sweep_models(environment);
    tn_shared_model *shared = environment->shared_models;
    while (shared != NULL && !is_same_file(shared, path, &info)) shared = shared->next;
    if (shared != NULL) {
        *out = tn_model_retain(shared->model);
    } else {
        status = load_new(environment, path, &info, out, err);
    }

cleanup:
    (void)pthread_mutex_unlock(&environment->mutex);
    return tn_tree_explain(environment->allocator, refusals, status, err);
}
