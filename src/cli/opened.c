/* Opening is the same for every command, and so is what can go wrong with it. */
#include "cli/opened.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/host.h"

uint32_t cli_thread_count(const cli_args *args) {
    const char *variable = getenv("TENURE_NUM_THREADS");
    const uint64_t given = cli_args_number(args, "threads", 0);
    if (given > 0) return (uint32_t)given;
    if (variable != NULL) return (uint32_t)strtoul(variable, NULL, 10);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : (uint32_t)online;
}

static int open_environment(const cli_args *args, cli_opened *out, tn_error *err) {
    const uint64_t threads = cli_args_number(args, "threads", 0);
    const tn_environment_options options = {
        .struct_size = sizeof options,
        .thread_count = threads > UINT32_MAX ? UINT32_MAX : (uint32_t)threads};
    const tn_allocator_options inputs = {.struct_size = sizeof inputs, .name = "inputs"};
    if (tn_environment_create(&options, &out->environment, err) != TN_OK ||
        tn_allocator_create_root(&inputs, &out->inputs, err) != TN_OK) {
        const bool is_usage = err->code == TN_INVALID_ARGUMENT;
        const int code = cli_fail_run(err, args->command->name);
        return is_usage ? CLI_USAGE : code;
    }
    return CLI_OK;
}

int cli_opened_model(const cli_args *args, cli_opened *out) {
    tn_error err = {.code = TN_OK};
    *out = (cli_opened){.path = cli_args_operand(args, 0)};
    const int code = open_environment(args, out, &err);
    if (code != CLI_OK) return code;
    const uint64_t start = cli_now_ns();
    if (tn_environment_load_model(out->environment, out->path, &out->model, &err) != TN_OK) {
        return cli_fail_load(&err, out->path);
    }
    out->load_ns = cli_now_ns() - start;
    return CLI_OK;
}

int cli_opened_create(const cli_args *args, cli_opened *out) {
    tn_error err = {.code = TN_OK};
    const int code = cli_opened_model(args, out);
    if (code != CLI_OK) return code;
    const tn_session_options options = {
        .struct_size = sizeof options,
        .memory_limit_bytes = cli_args_number(args, "memory-limit", 0),
        .disable_fusion = cli_args_has(args, "no-fusion"),
        .disable_reuse = cli_args_has(args, "no-reuse"),
        .retention = cli_args_has(args, "no-reuse") ? TN_RETENTION_NONE : TN_RETENTION_ADAPTIVE};
    const uint64_t start = cli_now_ns();
    if (tn_session_create(out->environment, out->model, &options, &out->session, &err) != TN_OK) {
        return cli_fail_load(&err, out->path);
    }
    out->load_ns += cli_now_ns() - start;
    return CLI_OK;
}

void cli_opened_deinit(cli_opened *opened) {
    tn_session_release(opened->session);
    tn_model_release(opened->model);
    tn_environment_release(opened->environment);
    tn_allocator_release(opened->inputs);
    *opened = (cli_opened){0};
}
