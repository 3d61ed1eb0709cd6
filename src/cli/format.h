/* Text for people: sizes, times, shapes, aligned tables, colour on terminals. */
#ifndef TN_CLI_FORMAT_H
#define TN_CLI_FORMAT_H

#include <stdbool.h>
#include <stdio.h>
#include <tenure/tenure.h>

#define CLI_TEXT_BYTES 64

/* "12.5 MiB", "0 B". Writes at most CLI_TEXT_BYTES and returns `text`. */
const char *cli_bytes_text(uint64_t size_bytes, char text[CLI_TEXT_BYTES]);
/* "1.25 ms". */
const char *cli_time_text(uint64_t time_ns, char text[CLI_TEXT_BYTES]);

/* "1x3x224x224", "scalar" for rank 0; -1 as "?". Cut off when it does not fit. */
const char *cli_shape_text(int32_t rank, const int64_t *dims, const char *const *symbols,
                           char *text, size_t text_bytes);

/* Rows of cells, printed with every column as wide as its widest cell.
 * Ownership: the table copies cells; deinit frees them. */
#define CLI_MAX_COLUMNS 12
typedef struct cli_table {
    size_t column_count;
    unsigned right_columns; /* bit per column: aligned to the right */
    char **cells;           /* [row_count * column_count], owned */
    size_t row_count, row_capacity;
    bool is_broken; /* memory ran out: printing says so */
} cli_table;

void cli_table_init(cli_table *table, size_t column_count, unsigned right_columns);
/* `cells` [column_count]; NULL is an empty cell. */
void cli_table_add(cli_table *table, const char *const *cells);
void cli_table_print(const cli_table *table, FILE *file);
void cli_table_deinit(cli_table *table);

/* True when `file` is a terminal and NO_COLOR is not set. */
bool cli_wants_colour(FILE *file);

#endif
