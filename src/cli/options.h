/* Options of commands: one table per command gives parsing, messages and the text of --help. */
#ifndef TN_CLI_OPTIONS_H
#define TN_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct cli_command cli_command;

typedef enum cli_kind {
    CLI_FLAG,  /* no value */
    CLI_TEXT,  /* any text */
    CLI_COUNT, /* a whole number, 0 included */
    CLI_SIZE,  /* bytes: 4096, 64KiB, 1.5GiB */
    CLI_REAL   /* a number >= 0 */
} cli_kind;

typedef struct cli_option {
    const char *name; /* without dashes */
    cli_kind kind;
    const char *metavar; /* NULL for flags */
    const char *help;    /* one sentence without full stop */
} cli_option;

typedef struct cli_given {
    const cli_option *option; /* NULL: an operand */
    const char *text;         /* "" for flags; borrowed from argv */
    uint64_t number;
    double real;
} cli_given;

/* What the user gave, in order. Ownership: `given` is freed by cli_args_deinit. */
typedef struct cli_args {
    const cli_command *command;
    cli_given *given; /* [count] */
    size_t count;
} cli_args;

/* Reads argv[0..argc) after the command's name. Returns 0, or CLI_USAGE after saying what is wrong;
 * sets *out_wants_help when --help is among the arguments. */
int cli_args_parse(const cli_command *command, int argc, char **argv, cli_args *out,
                   bool *out_wants_help);
void cli_args_deinit(cli_args *args);

bool cli_args_has(const cli_args *args, const char *name);
/* The last value given, or `fallback`. */
const char *cli_args_text(const cli_args *args, const char *name, const char *fallback);
uint64_t cli_args_number(const cli_args *args, const char *name, uint64_t fallback);
double cli_args_real(const cli_args *args, const char *name, double fallback);
/* Value `index` (from 0) of an option that may be given several times; NULL behind the last. */
const char *cli_args_nth(const cli_args *args, const char *name, size_t index);
/* Operand `index`; NULL behind the last. */
const char *cli_args_operand(const cli_args *args, size_t index);

/* Writes the help text of one command. */
void cli_print_help(const cli_command *command, FILE *file);

/* Reads "64MiB", "1.5G", "4096". Units: bytes; K, M, G, T are powers of 1024. */
bool cli_parse_size(const char *text, uint64_t *out);

#endif
