/* Tables are kept whole until they are printed: only then is it known how wide a column must be. */
#include "cli/format.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *cli_bytes_text(uint64_t size_bytes, char text[CLI_TEXT_BYTES]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double number = (double)size_bytes;
    size_t unit = 0;
    while (number >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        number /= 1024;
        unit++;
    }
    const int digits = unit == 0 || number >= 100 ? 0 : number >= 10 ? 1 : 2;
    (void)snprintf(text, CLI_TEXT_BYTES, "%.*f %s", digits, number, units[unit]);
    return text;
}

const char *cli_time_text(uint64_t time_ns, char text[CLI_TEXT_BYTES]) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double number = (double)time_ns;
    size_t unit = 0;
    while (number >= 1000 && unit + 1 < sizeof units / sizeof units[0]) {
        number /= 1000;
        unit++;
    }
    const int digits = unit == 0 || number >= 100 ? 0 : number >= 10 ? 1 : 2;
    (void)snprintf(text, CLI_TEXT_BYTES, "%.*f %s", digits, number, units[unit]);
    return text;
}

const char *cli_shape_text(int32_t rank, const int64_t *dims, const char *const *symbols,
                           char *text, size_t text_bytes) {
    size_t used = 0;
    text[0] = '\0';
    if (rank < 0) (void)snprintf(text, text_bytes, "any shape");
    if (rank == 0) (void)snprintf(text, text_bytes, "scalar");
    for (int32_t d = 0; d < rank && used < text_bytes; d++) {
        const char *cross = d == 0 ? "" : "x";
        const char *symbol = symbols == NULL ? NULL : symbols[d];
        int written = 0;
        if (dims[d] >= 0) {
            written = snprintf(text + used, text_bytes - used, "%s%lld", cross, (long long)dims[d]);
        } else {
            written = snprintf(text + used, text_bytes - used, "%s%s", cross,
                               symbol == NULL ? "?" : symbol);
        }
        used += (size_t)written;
    }
    return text;
}

void cli_table_init(cli_table *table, size_t column_count, unsigned right_columns) {
    *table = (cli_table){.column_count = column_count, .right_columns = right_columns};
}

static bool reserve_row(cli_table *table) {
    if (table->row_count < table->row_capacity) return true;
    const size_t capacity = table->row_capacity == 0 ? 32 : 2 * table->row_capacity;
    char **grown = realloc(table->cells, capacity * table->column_count * sizeof *table->cells);
    if (grown == NULL) return false;
    table->cells = grown;
    table->row_capacity = capacity;
    return true;
}

void cli_table_add(cli_table *table, const char *const *cells) {
    if (table->is_broken || !reserve_row(table)) {
        table->is_broken = true;
        return;
    }
    char **row = &table->cells[table->row_count * table->column_count];
    for (size_t c = 0; c < table->column_count; c++) {
        row[c] = strdup(cells[c] == NULL ? "" : cells[c]);
        table->is_broken = table->is_broken || row[c] == NULL;
    }
    table->row_count++;
}

/* Columns of a terminal: bytes that begin a UTF-8 character. */
static size_t width_of(const char *text) {
    size_t width = 0;
    for (; *text != '\0'; text++) width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

static void print_spaces(size_t count, FILE *file) {
    (void)fprintf(file, "%*s", (int)count, "");
}

void cli_table_print(const cli_table *table, FILE *file) {
    size_t widths[CLI_MAX_COLUMNS] = {0};
    if (table->is_broken) {
        (void)fprintf(file, "(out of memory while laying out this table)\n");
        return;
    }
    for (size_t i = 0; i < table->row_count * table->column_count; i++) {
        const size_t width = width_of(table->cells[i]);
        size_t *widest = &widths[i % table->column_count];
        if (width > *widest) *widest = width;
    }
    for (size_t r = 0; r < table->row_count; r++) {
        char *const *row = &table->cells[r * table->column_count];
        size_t pending = 0; /* spaces owed: never at the end of a line */
        for (size_t c = 0; c < table->column_count; c++) {
            const size_t pad = widths[c] - width_of(row[c]);
            const bool is_right = (table->right_columns >> c & 1u) != 0;
            if (is_right) pending += pad;
            if (row[c][0] != '\0') {
                print_spaces(pending, file);
                pending = 0;
                (void)fputs(row[c], file);
            }
            pending += (is_right ? 0 : pad) + 2;
        }
        (void)fputc('\n', file);
    }
}

void cli_table_deinit(cli_table *table) {
    for (size_t i = 0; i < table->row_count * table->column_count; i++) free(table->cells[i]);
    free(table->cells);
    *table = (cli_table){0};
}

bool cli_wants_colour(FILE *file) {
    const char *no_colour = getenv("NO_COLOR");
    return isatty(fileno(file)) != 0 && (no_colour == NULL || no_colour[0] == '\0');
}
