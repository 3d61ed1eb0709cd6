/* The parser knows nothing of commands: it walks the table that a command gives. Values are checked
 * here, so that a command reads only what is well-formed. */
#include "cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define HELP_COLUMN 26

bool cli_parse_size(const char *text, uint64_t *out) {
    static const char units[] = "KMGT";
    char *end = NULL;
    if (text[0] < '0' || text[0] > '9') return false;
    errno = 0;
    const double number = strtod(text, &end);
    double factor = 1;
    const char *unit = *end == '\0' ? NULL : strchr(units, *end & ~0x20);
    if (unit != NULL) {
        factor = ldexp(1, 10 * (int)(unit - units + 1));
        end++;
    }
    if (*end == 'i') end++;
    if (*end == 'B') end++;
    const double bytes = number * factor;
    if (errno != 0 || *end != '\0' || !(bytes < 9.2e18)) return false;
    *out = (uint64_t)bytes;
    return true;
}

static const cli_option *find_option(const cli_command *command, const char *name, size_t length) {
    for (size_t i = 0; i < command->option_count; i++) {
        const cli_option *option = &command->options[i];
        if (strlen(option->name) == length && memcmp(option->name, name, length) == 0) {
            return option;
        }
    }
    return NULL;
}

static int complain(const cli_command *command, const char *where, const char *why) {
    char what[64];
    (void)snprintf(what, sizeof what, "%s", command->name);
    cli_say_error(what, where, why);
    return CLI_USAGE;
}

static int read_count(const char *text, uint64_t *out) {
    char *end = NULL;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0) return CLI_USAGE;
    *out = number;
    return CLI_OK;
}

static int read_value(const cli_command *command, const cli_option *option, cli_given *given) {
    char why[256];
    char *end = NULL;
    const char *wanted = NULL;
    switch (option->kind) {
        case CLI_FLAG:
        case CLI_TEXT:
            return CLI_OK;
        case CLI_COUNT:
            if (read_count(given->text, &given->number) != CLI_OK) wanted = "a whole number";
            break;
        case CLI_SIZE:
            if (!cli_parse_size(given->text, &given->number)) wanted = "a size such as 64MiB";
            break;
        case CLI_REAL:
            given->real = strtod(given->text, &end);
            if (end == given->text || *end != '\0' || !(given->real >= 0)) {
                wanted = "a number such as 1e-5";
            }
            break;
    }
    if (wanted == NULL) return CLI_OK;
    (void)snprintf(why, sizeof why, "'%s' is not %s", given->text, wanted);
    char where[64];
    (void)snprintf(where, sizeof where, "--%s", option->name);
    return complain(command, where, why);
}

/* Reads the option at argv[*index], and its value. */
static int read_option(const cli_command *command, int argc, char **argv, int *index,
                       cli_given *given) {
    const char *name = argv[*index] + 2;
    const size_t length = strcspn(name, "=");
    const char *equals = name[length] == '=' ? name + length + 1 : NULL;
    const cli_option *option = find_option(command, name, length);
    if (option == NULL) {
        char why[128];
        (void)snprintf(why, sizeof why, "unknown option, see 'tenure %s --help'", command->name);
        return complain(command, argv[*index], why);
    }
    if (option->kind == CLI_FLAG && equals != NULL) {
        return complain(command, argv[*index], "this option takes no value");
    }
    *given = (cli_given){.option = option, .text = equals == NULL ? "" : equals};
    if (option->kind != CLI_FLAG && equals == NULL) {
        if (*index + 1 >= argc) return complain(command, argv[*index], "a value is missing");
        given->text = argv[++*index];
    }
    return read_value(command, option, given);
}

static int check_operands(const cli_args *args) {
    const cli_command *command = args->command;
    size_t count = 0;
    while (cli_args_operand(args, count) != NULL) count++;
    char why[160];
    if (count < command->min_operands) {
        (void)snprintf(why, sizeof why, "%s is missing, see 'tenure %s --help'", command->operands,
                       command->name);
        return complain(command, NULL, why);
    }
    if (count > command->max_operands) {
        return complain(command, cli_args_operand(args, command->max_operands),
                        "one operand too many");
    }
    return CLI_OK;
}

int cli_args_parse(const cli_command *command, int argc, char **argv, cli_args *out,
                   bool *out_wants_help) {
    bool is_operand = false;
    *out_wants_help = false;
    *out = (cli_args){.command = command};
    out->given = calloc((size_t)argc + 1, sizeof *out->given);
    if (out->given == NULL) return complain(command, NULL, "out of memory");
    for (int i = 0; i < argc; i++) {
        if (!is_operand && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            *out_wants_help = true;
            return CLI_OK;
        }
    }
    for (int i = 0; i < argc; i++) {
        cli_given *given = &out->given[out->count];
        if (!is_operand && strcmp(argv[i], "--") == 0) {
            is_operand = true;
            continue;
        }
        if (is_operand || argv[i][0] != '-' || argv[i][1] == '\0') {
            *given = (cli_given){.text = argv[i]};
        } else if (argv[i][1] != '-') {
            return complain(command, argv[i], "options begin with two dashes");
        } else if (read_option(command, argc, argv, &i, given) != CLI_OK) {
            return CLI_USAGE;
        }
        out->count++;
    }
    return check_operands(out);
}

void cli_args_deinit(cli_args *args) {
    free(args->given);
    args->given = NULL;
    args->count = 0;
}

static const cli_given *find_last(const cli_args *args, const char *name) {
    for (size_t i = args->count; i-- > 0;) {
        const cli_option *option = args->given[i].option;
        if (option != NULL && strcmp(option->name, name) == 0) return &args->given[i];
    }
    return NULL;
}

bool cli_args_has(const cli_args *args, const char *name) {
    return find_last(args, name) != NULL;
}

const char *cli_args_text(const cli_args *args, const char *name, const char *fallback) {
    const cli_given *given = find_last(args, name);
    return given == NULL ? fallback : given->text;
}

uint64_t cli_args_number(const cli_args *args, const char *name, uint64_t fallback) {
    const cli_given *given = find_last(args, name);
    return given == NULL ? fallback : given->number;
}

double cli_args_real(const cli_args *args, const char *name, double fallback) {
    const cli_given *given = find_last(args, name);
    return given == NULL ? fallback : given->real;
}

const char *cli_args_nth(const cli_args *args, const char *name, size_t index) {
    for (size_t i = 0; i < args->count; i++) {
        const cli_option *option = args->given[i].option;
        if (option == NULL || strcmp(option->name, name) != 0) continue;
        if (index-- == 0) return args->given[i].text;
    }
    return NULL;
}

const char *cli_args_operand(const cli_args *args, size_t index) {
    for (size_t i = 0; i < args->count; i++) {
        if (args->given[i].option != NULL) continue;
        if (index-- == 0) return args->given[i].text;
    }
    return NULL;
}

static void print_option(const char *left, const char *help, FILE *file) {
    const size_t length = strlen(left);
    (void)fprintf(file, "  %s", left);
    if (length + 4 > HELP_COLUMN) {
        (void)fprintf(file, "\n%*s", HELP_COLUMN, "");
    } else {
        (void)fprintf(file, "%*s", (int)(HELP_COLUMN - 2 - length), "");
    }
    (void)fprintf(file, "%s\n", help);
}

void cli_print_help(const cli_command *command, FILE *file) {
    (void)fprintf(file, "Usage: tenure %s%s%s [options]\n\n%s.\n", command->name,
                  command->operands[0] == '\0' ? "" : " ", command->operands, command->summary);
    if (command->details[0] != '\0') (void)fprintf(file, "\n%s\n", command->details);
    (void)fprintf(file, "\nOptions:\n");
    for (size_t i = 0; i < command->option_count; i++) {
        const cli_option *option = &command->options[i];
        char left[96];
        (void)snprintf(left, sizeof left, "--%s%s%s", option->name,
                       option->metavar == NULL ? "" : " ",
                       option->metavar == NULL ? "" : option->metavar);
        print_option(left, option->help, file);
    }
    print_option("--help", "this text", file);
    (void)fprintf(file, "\nExample:\n  %s\n", command->example);
}
