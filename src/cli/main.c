/* The command line: finds the command, parses its options, runs it. */
#include <stdarg.h>
#include <string.h>

#include "cli/cli.h"

const cli_command *const *cli_commands(void) {
    static const cli_command *const commands[] = {
        &cli_run_command, &cli_bench_command, &cli_inspect_command, &cli_plan_command,
        &cli_mem_command, &cli_ops_command,   &cli_check_command,   NULL};
    return commands;
}

static void print_usage(FILE *file) {
    (void)fprintf(file,
                  "Usage: tenure COMMAND [MODEL] [options]\n\n"
                  "Runs ONNX models with memory that can be reasoned about.\n\nCommands:\n");
    for (const cli_command *const *c = cli_commands(); *c != NULL; c++) {
        (void)fprintf(file, "  %-9s %s\n", (*c)->name, (*c)->summary);
    }
    (void)fprintf(
        file,
        "\nOptions:\n"
        "  --help     this text; 'tenure COMMAND --help' for one command\n"
        "  --version  the version\n"
        "\nExit status: 0 ok, 1 the run or an assertion failed, 2 wrong usage, 3 the model "
        "was\nrefused, 4 a memory limit was hit.\n"
        "\nEnvironment: TENURE_NUM_THREADS, TENURE_MEMORY_LIMIT, TENURE_PAGE_SOURCE, "
        "TENURE_LOG.\n"
        "\nExample:\n  tenure run model.onnx --shape image=1x3x224x224\n");
}

static const cli_command *find_command(const char *name) {
    for (const cli_command *const *c = cli_commands(); *c != NULL; c++) {
        if (strcmp((*c)->name, name) == 0) return *c;
    }
    return NULL;
}

static int run_command(const cli_command *command, int argc, char **argv) {
    cli_args args;
    bool wants_help = false;
    int code = cli_args_parse(command, argc, argv, &args, &wants_help);
    if (code == CLI_OK && wants_help) {
        cli_print_help(command, stdout);
    } else if (code == CLI_OK) {
        code = command->run(&args);
    }
    cli_args_deinit(&args);
    if (fflush(stdout) != 0 && code == CLI_OK) {
        cli_say_error(command->name, "standard output", "writing failed");
        code = CLI_FAILED;
    }
    return code;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_usage(stderr);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0) {
        (void)printf("tenure %s\n", tn_version());
        return CLI_OK;
    }
    const bool is_help = strcmp(name, "help") == 0;
    if (is_help || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        const cli_command *command = argc > 2 ? find_command(argv[2]) : NULL;
        if (command != NULL) {
            cli_print_help(command, stdout);
        } else {
            print_usage(stdout);
        }
        return CLI_OK;
    }
    const cli_command *command = find_command(name);
    if (command == NULL) {
        cli_say_error("usage", name, "unknown command, see 'tenure --help'");
        return CLI_USAGE;
    }
    return run_command(command, argc - 2, argv + 2);
}
