/* An environment, a model and a session, opened as the options of a command say. */
#ifndef TN_CLI_OPENED_H
#define TN_CLI_OPENED_H

#include "cli/cli.h"

typedef struct cli_opened {
    tn_environment *environment;
    tn_allocator *inputs; /* a root of its own: inputs are not the session's memory */
    tn_model *model;
    tn_session *session;
    const char *path; /* borrowed from args */
    uint64_t load_ns;
} cli_opened;

/* Opens operand 0 of `args`. Returns CLI_OK, or the exit status after saying what is wrong.
 * Ownership: closed with cli_opened_deinit in either case. */
int cli_opened_create(const cli_args *args, cli_opened *out);
/* The same without a session. */
int cli_opened_model(const cli_args *args, cli_opened *out);
void cli_opened_deinit(cli_opened *opened);

/* Worker threads of an environment opened so: --threads, TENURE_NUM_THREADS or the processors. */
uint32_t cli_thread_count(const cli_args *args);

/* The options that cli_opened_create reads. */
#define CLI_SESSION_OPTIONS                                                                  \
    {"threads", CLI_COUNT, "T", "worker threads (TENURE_NUM_THREADS, else all processors)"}, \
        {"memory-limit", CLI_SIZE, "SIZE", "limit of the session, such as 64MiB"},           \
        {"no-fusion", CLI_FLAG, NULL, "run every operator by itself"}, {                     \
        "no-reuse", CLI_FLAG, NULL, "every value gets memory of its own, nothing is kept"    \
    }

#endif
