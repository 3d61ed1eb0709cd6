#include "cli/format.h"

#include <stdlib.h>
#include <string.h>

#include "harness.h"

static void bytes_text_has_three_digits_and_a_unit(void **state) {
    (void)state;
    char text[CLI_TEXT_BYTES];
    assert_string_equal(cli_bytes_text(0, text), "0 B");
    assert_string_equal(cli_bytes_text(1023, text), "1023 B");
    assert_string_equal(cli_bytes_text(1536, text), "1.50 KiB");
    assert_string_equal(cli_bytes_text(UINT64_C(25) << 20, text), "25.0 MiB");
    assert_string_equal(cli_bytes_text(UINT64_MAX, text), "16777216 TiB");
}

static void time_text_has_a_unit(void **state) {
    (void)state;
    char text[CLI_TEXT_BYTES];
    assert_string_equal(cli_time_text(0, text), "0 ns");
    assert_string_equal(cli_time_text(1500, text), "1.50 us");
    assert_string_equal(cli_time_text(20000000, text), "20.0 ms");
    assert_string_equal(cli_time_text(UINT64_C(300000000000), text), "300 s");
}

static void shape_text_names_symbols_and_unknowns(void **state) {
    (void)state;
    char text[64];
    const int64_t dims[] = {-1, 3, -1};
    const char *const symbols[] = {"batch", NULL, NULL};
    assert_string_equal(cli_shape_text(3, dims, symbols, text, sizeof text), "batchx3x?");
    assert_string_equal(cli_shape_text(0, dims, NULL, text, sizeof text), "scalar");
    assert_string_equal(cli_shape_text(-1, dims, NULL, text, sizeof text), "any shape");
    assert_string_equal(cli_shape_text(3, dims, symbols, text, 6), "batch");
}

static void table_columns_line_up_without_trailing_spaces(void **state) {
    (void)state;
    cli_table table;
    char *text = NULL;
    size_t size_bytes = 0;
    FILE *file = open_memstream(&text, &size_bytes);
    assert_non_null(file);
    cli_table_init(&table, 3, 1u << 1);
    cli_table_add(&table, (const char *[]){"name", "bytes", "note"});
    cli_table_add(&table, (const char *[]){"gr\xc3\xbcn", "5", NULL});
    cli_table_add(&table, (const char *[]){"x", "12345678", "last"});

    cli_table_print(&table, file);

    assert_int_equal(fclose(file), 0);
    assert_string_equal(text,
                        "name     bytes  note\n"
                        "gr\xc3\xbcn         5\n"
                        "x     12345678  last\n");
    free(text);
    cli_table_deinit(&table);
}

static void table_grows_past_its_first_rows(void **state) {
    (void)state;
    cli_table table;
    cli_table_init(&table, 1, 0);

    for (int i = 0; i < 1000; i++) cli_table_add(&table, (const char *[]){"row"});

    assert_false(table.is_broken);
    assert_int_equal(table.row_count, 1000);
    cli_table_deinit(&table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(bytes_text_has_three_digits_and_a_unit), T(time_text_has_a_unit),
        T(shape_text_names_symbols_and_unknowns),  T(table_columns_line_up_without_trailing_spaces),
        T(table_grows_past_its_first_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
