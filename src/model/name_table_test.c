#include "model/name_table.h"

#include <stdio.h>
#include <string.h>

#include "harness.h"

enum { NAME_COUNT = 1000 };

static tn_text text_of(const char *text) {
    return (tn_text){text, strlen(text)};
}

static void name_table_finds_what_was_added(void **state) {
    (void)state;
    static char names[NAME_COUNT][16];
    tn_allocator *root = NULL;
    tn_name_table table;
    ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));
    ASSERT_OK(tn_name_table_init(&table, root, NAME_COUNT, NULL));

    for (uint32_t i = 0; i < NAME_COUNT; i++) {
        bool is_new = false;
        (void)snprintf(names[i], sizeof names[i], "value_%u", (unsigned)i);
        (void)tn_name_table_add(&table, 0, text_of(names[i]), i, &is_new);
        assert_true(is_new);
    }

    for (uint32_t i = 0; i < NAME_COUNT; i++) {
        const tn_name_entry *entry = tn_name_table_find(&table, 0, text_of(names[i]));
        assert_non_null(entry);
        assert_int_equal(entry->value, i);
    }
    assert_null(tn_name_table_find(&table, 0, text_of("value_1000")));
    assert_null(tn_name_table_find(&table, 0, text_of("")));
    tn_name_table_deinit(&table);
    assert_int_equal(tn_allocator_charged(root), 0);
    tn_allocator_release(root);
}

static void name_table_second_add_keeps_the_first_value(void **state) {
    (void)state;
    tn_allocator *root = NULL;
    tn_name_table table;
    bool is_new = true;
    ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));
    ASSERT_OK(tn_name_table_init(&table, root, 2, NULL));

    tn_name_entry *first = tn_name_table_add(&table, 0, text_of("x"), 1, &is_new);
    tn_name_entry *second = tn_name_table_add(&table, 0, text_of("x"), 2, &is_new);

    assert_ptr_equal(first, second);
    assert_false(is_new);
    assert_int_equal(second->value, 1);
    tn_name_table_deinit(&table);
    tn_allocator_release(root);
}

static void name_table_keeps_scopes_apart(void **state) {
    (void)state;
    tn_allocator *root = NULL;
    tn_name_table table;
    bool is_new = false;
    ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));
    ASSERT_OK(tn_name_table_init(&table, root, 2, NULL));

    (void)tn_name_table_add(&table, 1, text_of("x"), 10, &is_new);
    assert_null(tn_name_table_find(&table, 2, text_of("x")));
    (void)tn_name_table_add(&table, 2, text_of("x"), 20, &is_new);

    assert_true(is_new);
    assert_int_equal(tn_name_table_find(&table, 1, text_of("x"))->value, 10);
    assert_int_equal(tn_name_table_find(&table, 2, text_of("x"))->value, 20);
    tn_name_table_deinit(&table);
    tn_allocator_release(root);
}

static void name_table_without_names_finds_nothing(void **state) {
    (void)state;
    tn_allocator *root = NULL;
    tn_name_table table;
    ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));

    ASSERT_OK(tn_name_table_init(&table, root, 0, NULL));
    assert_null(tn_name_table_find(&table, 0, text_of("x")));

    tn_name_table_deinit(&table);
    tn_allocator_release(root);
}

static void name_table_past_limit_returns_limit(void **state) {
    (void)state;
    const tn_allocator_options options = {.struct_size = sizeof options, .limit_bytes = 1000};
    tn_allocator *root = NULL;
    tn_name_table table;
    ASSERT_OK(tn_allocator_create_root(&options, &root, NULL));

    ASSERT_STATUS(TN_LIMIT, tn_name_table_init(&table, root, NAME_COUNT, NULL));
    ASSERT_STATUS(TN_UNSUPPORTED, tn_name_table_init(&table, root, (size_t)1 << 31, NULL));

    tn_name_table_deinit(&table);
    assert_int_equal(tn_allocator_charged(root), 0);
    tn_allocator_release(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(name_table_finds_what_was_added),     T(name_table_second_add_keeps_the_first_value),
        T(name_table_keeps_scopes_apart),       T(name_table_without_names_finds_nothing),
        T(name_table_past_limit_returns_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
