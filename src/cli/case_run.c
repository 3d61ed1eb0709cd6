/* Inputs are matched with the model's inputs by position, outputs likewise. */
#include "cli/case_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/case_reader.h"
#include "cli/compare.h"

#define MAX_VALUES 256
#define PATH_BYTES 4096

typedef struct data_set {
    tn_value *inputs[MAX_VALUES];
    tn_value *outputs[MAX_VALUES];
    tn_value *wanted[MAX_VALUES];
    size_t input_count, output_count;
} data_set;

static bool say(char *why, size_t why_bytes, const tn_error *err) {
    (void)snprintf(why, why_bytes, "%s: %s", tn_status_text(err->code), err->message);
    for (char *c = why; *c != '\0'; c++) {
        if (*c == '\n' || *c == '\t') *c = ' ';
    }
    return false;
}

/* False when the path does not fit, or names nothing that can be read. */
static bool path_of(char path[PATH_BYTES], const char *folder, const char *kind, size_t index,
                    const char *suffix) {
    const int length = snprintf(path, PATH_BYTES, "%s/%s_%zu%s", folder, kind, index, suffix);
    return length > 0 && length < PATH_BYTES && access(path, R_OK) == 0;
}

static bool read_values(tn_allocator *allocator, const char *folder, const char *kind,
                        tn_value **values, size_t *count, tn_error *err) {
    char path[PATH_BYTES + 64];
    for (*count = 0; *count < MAX_VALUES; (*count)++) {
        if (!path_of(path, folder, kind, *count, ".pb")) return true;
        if (cli_read_tensor_pb(allocator, path, &values[*count], err) != TN_OK) return false;
    }
    return true;
}

static void release_all(data_set *set) {
    for (size_t i = 0; i < MAX_VALUES; i++) {
        tn_tensor_release(set->inputs[i]);
        tn_tensor_release(set->outputs[i]);
        tn_tensor_release(set->wanted[i]);
    }
}

static bool has_default(const tn_session *session, const char *name) {
    tn_value_info info = {.struct_size = sizeof info};
    for (size_t i = 0; i < tn_session_overridable_count(session); i++) {
        if (tn_session_overridable_info(session, i, &info, NULL) != TN_OK) return false;
        if (strcmp(info.name, name) == 0) return true;
    }
    return false;
}

/* Values in order go to the inputs in order; inputs that have defaults are passed over when there
 * are not enough values for all. */
static tn_status run_set(tn_session *session, data_set *set, tn_error *err) {
    tn_feed feeds[MAX_VALUES];
    size_t feed_count = 0;
    const size_t most = tn_session_input_count(session);
    for (size_t i = 0; i < most && feed_count < set->input_count; i++) {
        tn_value_info info = {.struct_size = sizeof info};
        const tn_status status = tn_session_input_info(session, i, &info, err);
        if (status != TN_OK) return status;
        if (set->input_count < most && has_default(session, info.name)) continue;
        feeds[feed_count] = (tn_feed){info.name, set->inputs[feed_count]};
        feed_count++;
    }
    set->output_count = tn_session_output_count(session);
    return tn_session_run(session, feeds, feed_count, NULL, set->output_count, set->outputs, err);
}

static bool check_set(tn_session *session, tn_allocator *allocator, const char *folder,
                      const cli_case_options *options, char *why, size_t why_bytes) {
    tn_error err = {.code = TN_OK};
    size_t wanted_count = 0;
    data_set *set = calloc(1, sizeof *set);
    if (set == NULL) return false;
    bool passed = read_values(allocator, folder, "input", set->inputs, &set->input_count, &err) &&
                  read_values(allocator, folder, "output", set->wanted, &wanted_count, &err) &&
                  tn_session_output_count(session) <= MAX_VALUES &&
                  run_set(session, set, &err) == TN_OK;
    if (!passed) (void)say(why, why_bytes, &err);
    if (passed && wanted_count != set->output_count) {
        (void)snprintf(why, why_bytes, "%zu outputs, expected %zu", set->output_count,
                       wanted_count);
        passed = false;
    }
    for (size_t i = 0; passed && i < wanted_count; i++) {
        passed = cli_compare(set->outputs[i], set->wanted[i], options->rtol, options->atol, why,
                             why_bytes);
    }
    release_all(set);
    free(set);
    return passed;
}

bool cli_run_case(tn_environment *environment, const char *folder, const cli_case_options *options,
                  char *why, size_t why_bytes) {
    tn_error err = {.code = TN_OK};
    tn_model *model = NULL;
    tn_session *session = NULL;
    char path[PATH_BYTES + 64];
    tn_allocator *allocator = tn_environment_allocator(environment);
    (void)snprintf(path, sizeof path, "%s/model.onnx", folder);
    const char *model_path = options->model_path == NULL ? path : options->model_path;
    bool passed = tn_environment_load_model(environment, model_path, &model, &err) == TN_OK &&
                  tn_session_create(environment, model, NULL, &session, &err) == TN_OK;
    if (!passed) (void)say(why, why_bytes, &err);
    size_t set_count = 0;
    while (passed && path_of(path, folder, "test_data_set", set_count, "")) {
        passed = check_set(session, allocator, path, options, why, why_bytes);
        set_count++;
    }
    if (passed && set_count == 0) {
        (void)snprintf(why, why_bytes, "%s has no test_data_set_0", folder);
        passed = false;
    }
    tn_session_release(session);
    tn_model_release(model);
    return passed;
}
