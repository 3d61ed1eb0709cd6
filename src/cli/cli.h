/* What the commands share: exit statuses, error lines, the table of commands. */
#ifndef TN_CLI_CLI_H
#define TN_CLI_CLI_H

#include <tenure/tenure.h>

#include "cli/options.h"

/* Scripts depend on these numbers. */
enum {
    CLI_OK = 0,
    CLI_FAILED = 1, /* the run or an assertion failed */
    CLI_USAGE = 2,
    CLI_REFUSED = 3, /* the model was refused */
    CLI_LIMIT = 4    /* a memory limit was hit */
};

/* One command. `run` gets parsed arguments and answers an exit status. */
struct cli_command {
    const char *name;
    const char *summary; /* one line, no full stop */
    const char *operands;
    const char *details; /* further text of --help; "" when none */
    const char *example;
    const cli_option *options; /* [option_count] */
    size_t option_count;
    size_t min_operands, max_operands;
    int (*run)(const cli_args *args);
};

extern const cli_command cli_run_command;
extern const cli_command cli_bench_command;
extern const cli_command cli_inspect_command;
extern const cli_command cli_plan_command;
extern const cli_command cli_mem_command;
extern const cli_command cli_ops_command;
extern const cli_command cli_check_command;

/* Lends all commands in the order of --help, NULL at the end. */
const cli_command *const *cli_commands(void);

/* Writes "tenure: what: where: why" to stderr as one line; an empty or NULL part is left out. */
void cli_say_error(const char *what, const char *where, const char *why);

/* The same for a failure of the library; `where` is used when the error names no node. Returns the
 * exit status for a failure during a run. */
int cli_fail_run(const tn_error *err, const char *where);

/* The same for a failure to load a model or to make a session from it. */
int cli_fail_load(const tn_error *err, const char *where);

/* Sets `err` without allocating and returns `code`; `err` may be NULL. */
tn_status cli_set_error(tn_error *err, tn_status code, const char *format, ...) TN_PRINTF(3, 4);

#endif
