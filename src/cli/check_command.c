/* tenure check: a case folder of the ONNX backend data, or a model against saved outputs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/case_reader.h"
#include "cli/case_run.h"
#include "cli/compare.h"
#include "cli/feeds.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/npy.h"
#include "cli/opened.h"

static const cli_option options[] = {
    {"rtol", CLI_REAL, "R", "relative tolerance (1e-3)"},
    {"atol", CLI_REAL, "A", "absolute tolerance (1e-7)"},
    {"expect", CLI_TEXT, "NAME=FILE", "a peer's output (.npy or .pb) to compare with"},
    CLI_FEED_OPTIONS,
    CLI_SESSION_OPTIONS,
    {"json", CLI_FLAG, NULL, "print one JSON object and nothing else"},
};

static double rtol_of(const cli_args *args) {
    return cli_args_real(args, "rtol", 1e-3);
}

static double atol_of(const cli_args *args) {
    return cli_args_real(args, "atol", 1e-7);
}

static int say_verdict(const cli_args *args, bool passed, const char *why) {
    const char *name = cli_args_operand(args, 0);
    if (cli_args_has(args, "json")) {
        cli_json json;
        cli_json_init(&json, stdout);
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "case", name);
        cli_json_bool(&json, "passed", passed);
        cli_json_text(&json, "why", why);
        cli_json_close(&json, '}');
    } else if (passed) {
        const bool is_coloured = cli_wants_colour(stdout);
        (void)printf("%spassed%s %s\n", is_coloured ? "\033[32m" : "", is_coloured ? "\033[0m" : "",
                     name);
    } else {
        cli_say_error("check", name, why);
    }
    return passed ? CLI_OK : CLI_FAILED;
}

static int check_folder(const cli_args *args, const char *folder) {
    tn_error err = {.code = TN_OK};
    tn_environment *environment = NULL;
    char why[1024] = "";
    const uint64_t threads = cli_args_number(args, "threads", 0);
    const tn_environment_options environment_options = {.struct_size = sizeof environment_options,
                                                        .thread_count = (uint32_t)threads};
    if (tn_environment_create(&environment_options, &environment, &err) != TN_OK) {
        return cli_fail_run(&err, "check");
    }
    const cli_case_options tolerances = {.rtol = rtol_of(args), .atol = atol_of(args)};
    const bool passed = cli_run_case(environment, folder, &tolerances, why, sizeof why);
    tn_environment_release(environment);
    return say_verdict(args, passed, why);
}

static tn_status read_expected(tn_allocator *allocator, const char *path, tn_value **out,
                               tn_error *err) {
    const size_t length = strlen(path);
    const bool is_pb = length > 3 && strcmp(path + length - 3, ".pb") == 0;
    return is_pb ? cli_read_tensor_pb(allocator, path, out, err)
                 : cli_read_npy(allocator, path, out, err);
}

/* Compares the output named in "NAME=FILE". */
static bool compare_one(const cli_args *args, const cli_opened *opened, tn_value *const *values,
                        const char *expectation, char *why, size_t why_bytes) {
    tn_error err = {.code = TN_OK};
    tn_value *wanted = NULL;
    const char *equals = strchr(expectation, '=');
    const size_t count = tn_session_output_count(opened->session);
    for (size_t i = 0; i < count && equals != NULL; i++) {
        tn_value_info info = {.struct_size = sizeof info};
        if (tn_session_output_info(opened->session, i, &info, &err) != TN_OK) break;
        if (strlen(info.name) != (size_t)(equals - expectation) ||
            memcmp(info.name, expectation, (size_t)(equals - expectation)) != 0) {
            continue;
        }
        if (read_expected(opened->inputs, equals + 1, &wanted, &err) != TN_OK) {
            (void)snprintf(why, why_bytes, "%.1000s", err.message);
            return false;
        }
        const bool is_same =
            cli_compare(values[i], wanted, rtol_of(args), atol_of(args), why, why_bytes);
        tn_tensor_release(wanted);
        return is_same;
    }
    (void)snprintf(why, why_bytes, "--expect %s: the model has no such output", expectation);
    return false;
}

static int compare_all(const cli_args *args, const cli_opened *opened, tn_value *const *values) {
    char why[1024] = "";
    const char *expectation = NULL;
    for (size_t i = 0; (expectation = cli_args_nth(args, "expect", i)) != NULL; i++) {
        if (!compare_one(args, opened, values, expectation, why, sizeof why)) {
            return say_verdict(args, false, why);
        }
    }
    return say_verdict(args, true, "");
}

static int check_model(const cli_args *args) {
    tn_error err = {.code = TN_OK};
    cli_opened opened;
    cli_feeds feeds = {0};
    tn_value **values = NULL;
    size_t count = 0;
    int code = cli_opened_create(args, &opened);
    if (code != CLI_OK) goto cleanup;
    if (cli_feeds_create(opened.session, opened.inputs, args, NULL, &feeds, &err) != TN_OK) {
        cli_say_error("check", opened.path, err.message);
        code = CLI_USAGE;
        goto cleanup;
    }
    count = tn_session_output_count(opened.session);
    values = calloc(count + 1, sizeof *values);
    if (values == NULL) {
        cli_say_error("check", opened.path, "out of memory");
        code = CLI_LIMIT;
        goto cleanup;
    }
    if (tn_session_run(opened.session, feeds.feeds, feeds.count, NULL, count, values, &err) !=
        TN_OK) {
        code = cli_fail_run(&err, opened.path);
        goto cleanup;
    }
    code = compare_all(args, &opened, values);

cleanup:
    for (size_t i = 0; i < count && values != NULL; i++) tn_tensor_release(values[i]);
    free(values);
    cli_feeds_deinit(&feeds);
    cli_opened_deinit(&opened);
    return code;
}

static int check(const cli_args *args) {
    struct stat info;
    const char *path = cli_args_operand(args, 0);
    if (stat(path, &info) != 0) {
        cli_say_error("check", path, strerror(errno));
        return CLI_USAGE;
    }
    if (S_ISDIR(info.st_mode)) return check_folder(args, path);
    if (cli_args_nth(args, "expect", 0) == NULL) {
        cli_say_error("check", path, "a model needs --expect NAME=FILE to compare with");
        return CLI_USAGE;
    }
    return check_model(args);
}

const cli_command cli_check_command = {
    .name = "check",
    .summary = "Compare results with expected ones",
    .operands = "FOLDER|MODEL",
    .details =
        "A folder holds model.onnx and test_data_set_0, test_data_set_1 and so on, as in the\n"
        "ONNX backend data. A model is run with --input and compared with --expect.",
    .example = "tenure check model.onnx --input x=x.npy --expect y=y.npy --rtol 1e-5",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .min_operands = 1,
    .max_operands = 1,
    .run = check,
};
