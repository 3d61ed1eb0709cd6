#include "cli/options.h"

#include <string.h>

#include "cli/cli.h"
#include "harness.h"

static const cli_option options[] = {
    {"json", CLI_FLAG, NULL, "flag"},       {"input", CLI_TEXT, "NAME=WHAT", "text"},
    {"runs", CLI_COUNT, "N", "count"},      {"limit", CLI_SIZE, "SIZE", "size"},
    {"rtol", CLI_REAL, "R", "real number"},
};

static const cli_command command = {.name = "test",
                                    .summary = "Test",
                                    .operands = "MODEL",
                                    .details = "",
                                    .example = "tenure test m",
                                    .options = options,
                                    .option_count = sizeof options / sizeof options[0],
                                    .min_operands = 1,
                                    .max_operands = 1};

/* Arguments up to a NULL. */
static int parse(const char *const *argv, cli_args *args, bool *wants_help) {
    int argc = 0;
    while (argv[argc] != NULL) argc++;
    char **given = (char **)(uintptr_t)argv; /* main's type; nothing is written */
    return cli_args_parse(&command, argc, given, args, wants_help);
}

static void parse_size_reads_units_of_1024(void **state) {
    (void)state;
    const struct {
        const char *text;
        uint64_t size_bytes;
    } good[] = {{"0", 0},
                {"4096", 4096},
                {"64KiB", 65536},
                {"64k", 65536},
                {"1.5MiB", 1572864},
                {"2G", UINT64_C(2) << 30},
                {"1TiB", UINT64_C(1) << 40},
                {"10B", 10}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t size_bytes = 1;
        assert_true(cli_parse_size(good[i].text, &size_bytes));
        assert_int_equal(size_bytes, good[i].size_bytes);
    }
}

static void parse_size_refuses_what_is_no_size(void **state) {
    (void)state;
    static const char *const bad[] = {"",     "-1",    "MiB", "4XB", "4 MiB",
                                      "1e30", "4MiBB", "nan", "inf"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t size_bytes = 7;
        assert_false(cli_parse_size(bad[i], &size_bytes));
        assert_int_equal(size_bytes, 7);
    }
}

static void parse_takes_values_behind_and_beside_names(void **state) {
    (void)state;
    cli_args args;
    bool wants_help = true;
    const char *const argv[] = {"--runs", "5",         "m.onnx",    "--limit=1KiB", "--input",
                                "a=b",    "--input=c", "--rtol=.5", "--json",       NULL};

    assert_int_equal(parse(argv, &args, &wants_help), CLI_OK);

    assert_false(wants_help);
    assert_int_equal(cli_args_number(&args, "runs", 0), 5);
    assert_int_equal(cli_args_number(&args, "limit", 0), 1024);
    assert_true(cli_args_real(&args, "rtol", 0) == 0.5);
    assert_true(cli_args_has(&args, "json"));
    assert_string_equal(cli_args_nth(&args, "input", 0), "a=b");
    assert_string_equal(cli_args_nth(&args, "input", 1), "c");
    assert_null(cli_args_nth(&args, "input", 2));
    assert_string_equal(cli_args_operand(&args, 0), "m.onnx");
    assert_null(cli_args_operand(&args, 1));
    cli_args_deinit(&args);
}

static void parse_without_an_option_gives_the_fallback(void **state) {
    (void)state;
    cli_args args;
    bool wants_help = false;
    const char *const argv[] = {"m.onnx", NULL};

    assert_int_equal(parse(argv, &args, &wants_help), CLI_OK);

    assert_int_equal(cli_args_number(&args, "runs", 42), 42);
    assert_string_equal(cli_args_text(&args, "input", "none"), "none");
    assert_false(cli_args_has(&args, "json"));
    cli_args_deinit(&args);
}

static void parse_last_value_wins(void **state) {
    (void)state;
    cli_args args;
    bool wants_help = false;
    const char *const argv[] = {"m", "--runs=1", "--runs=2", NULL};

    assert_int_equal(parse(argv, &args, &wants_help), CLI_OK);

    assert_int_equal(cli_args_number(&args, "runs", 0), 2);
    cli_args_deinit(&args);
}

static void parse_behind_two_dashes_takes_operands_only(void **state) {
    (void)state;
    cli_args args;
    bool wants_help = false;
    const char *const argv[] = {"--", "--json", NULL};

    assert_int_equal(parse(argv, &args, &wants_help), CLI_OK);

    assert_string_equal(cli_args_operand(&args, 0), "--json");
    assert_false(cli_args_has(&args, "json"));
    cli_args_deinit(&args);
}

static void parse_help_wins_over_faults(void **state) {
    (void)state;
    cli_args args;
    bool wants_help = false;
    const char *const argv[] = {"--wrong", "--help", NULL};

    assert_int_equal(parse(argv, &args, &wants_help), CLI_OK);

    assert_true(wants_help);
    cli_args_deinit(&args);
}

static void parse_faults_are_wrong_usage(void **state) {
    (void)state;
    static const char *const faults[][4] = {
        {NULL},
        {"a", "b", NULL},
        {"a", "--none", NULL},
        {"a", "--runs", NULL},
        {"a", "--runs=-1", NULL},
        {"a", "--runs=1.5", NULL},
        {"a", "--limit=much", NULL},
        {"a", "--rtol=-1", NULL},
        {"a", "--json=1", NULL},
        {"a", "-j", NULL},
        {"a", "--runs=", NULL},
        {"a", "--rtol=nan", NULL},
        {"a", "--runs=99999999999999999999", NULL},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        cli_args args;
        bool wants_help = false;
        assert_int_equal(parse(faults[i], &args, &wants_help), CLI_USAGE);
        cli_args_deinit(&args);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(parse_size_reads_units_of_1024),
        T(parse_size_refuses_what_is_no_size),
        T(parse_takes_values_behind_and_beside_names),
        T(parse_without_an_option_gives_the_fallback),
        T(parse_last_value_wins),
        T(parse_behind_two_dashes_takes_operands_only),
        T(parse_help_wins_over_faults),
        T(parse_faults_are_wrong_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
