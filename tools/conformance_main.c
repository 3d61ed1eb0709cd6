/* Runs the cases named on standard input, one folder a line, in one process.
 * A line is "name<TAB>folder<TAB>rtol<TAB>atol"; the answer is "name<TAB>verdict<TAB>reason". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenure/tenure.h>

#include "cli/case_run.h"

static char *next_field(char **line) {
    char *field = *line;
    char *end = field + strcspn(field, "\t\n");
    *line = *end == '\0' ? end : end + 1;
    *end = '\0';
    return field;
}

int main(void) {
    char line[8192];
    char why[1024];
    tn_error err = {.code = TN_OK};
    tn_environment *environment = NULL;
    if (tn_environment_create(NULL, &environment, &err) != TN_OK) {
        (void)fprintf(stderr, "tenure: %s\n", err.message);
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *rest = line;
        const char *name = next_field(&rest);
        const char *folder = next_field(&rest);
        const double rtol = strtod(next_field(&rest), NULL);
        const double atol = strtod(next_field(&rest), NULL);
        const cli_case_options options = {.rtol = rtol, .atol = atol};
        why[0] = '\0';
        const bool passed = cli_run_case(environment, folder, &options, why, sizeof why);
        (void)printf("%s\t%s\t%s\n", name, passed ? "passed" : "failed", why);
        (void)fflush(stdout);
    }
    tn_environment_release(environment);
    return 0;
}
