#include "model/record_pool.h"

#include <string.h>

#include "harness.h"

static void record_pool_gives_separate_aligned_records(void **state) {
    (void)state;
    tn_allocator *root = NULL;
    tn_record_pool pool;
    uint8_t *records[200];
    ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));
    tn_record_pool_init(&pool, root);

    for (size_t i = 0; i < 200; i++) {
        const size_t size_bytes = 1 + i * 7 % 300;
        records[i] = tn_record_pool_alloc(&pool, 1, size_bytes);
        assert_non_null(records[i]);
        assert_int_equal((uintptr_t)records[i] % 8, 0);
        memset(records[i], (int)i, size_bytes);
    }

    for (size_t i = 0; i < 200; i++) {
        const size_t size_bytes = 1 + i * 7 % 300;
        assert_int_equal(records[i][0], (uint8_t)i);
        assert_int_equal(records[i][size_bytes - 1], (uint8_t)i);
    }
    tn_record_pool_deinit(&pool);
    assert_int_equal(tn_allocator_charged(root), 0);
    tn_allocator_release(root);
}

static void record_pool_aligns_payload_of_any_size(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 64, 1000, 100000};
    tn_allocator *root = NULL;
    tn_record_pool pool;
    ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));
    tn_record_pool_init(&pool, root);

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        (void)tn_record_pool_alloc(&pool, 1, 1);
        uint8_t *data = tn_record_pool_alloc_aligned(&pool, sizes[i], 64);
        assert_non_null(data);
        assert_int_equal((uintptr_t)data % 64, 0);
        memset(data, 1, sizes[i]);
    }

    tn_record_pool_deinit(&pool);
    tn_allocator_release(root);
}

static void record_pool_product_too_large_is_overflow(void **state) {
    (void)state;
    tn_allocator *root = NULL;
    tn_record_pool pool;
    ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));
    tn_record_pool_init(&pool, root);

    assert_null(tn_record_pool_alloc(&pool, SIZE_MAX / 2, 16));
    assert_null(tn_record_pool_alloc(&pool, 1, SIZE_MAX));
    ASSERT_STATUS(TN_OVERFLOW, tn_record_pool_refusal(&pool, SIZE_MAX / 2, 16, NULL));

    assert_int_equal(tn_allocator_charged(root), 0);
    tn_allocator_release(root);
}

static void record_pool_past_limit_says_limit(void **state) {
    (void)state;
    const tn_allocator_options options = {.struct_size = sizeof options, .limit_bytes = 10000};
    tn_allocator *root = NULL;
    tn_record_pool pool;
    tn_error err = {0};
    ASSERT_OK(tn_allocator_create_root(&options, &root, NULL));
    tn_record_pool_init(&pool, root);

    assert_null(tn_record_pool_alloc(&pool, 1, 20000));
    ASSERT_STATUS(TN_LIMIT, tn_record_pool_refusal(&pool, 1, 20000, &err));

    assert_int_equal(err.limit_bytes, 10000);
    assert_true(err.requested_bytes >= 20000);
    assert_non_null(tn_record_pool_alloc(&pool, 1, 100)); /* the pool is as before */
    tn_record_pool_deinit(&pool);
    assert_int_equal(tn_allocator_charged(root), 0);
    tn_allocator_release(root);
}

static void record_pool_without_memory_says_out_of_memory(void **state) {
    (void)state;
    tn_allocator *root = NULL;
    tn_error err = {0};
    ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));

    ASSERT_STATUS(TN_OUT_OF_MEMORY, tn_record_refusal(root, 123, &err));

    assert_int_equal(err.requested_bytes, 123);
    assert_int_equal(tn_allocator_charged(root), 0);
    tn_allocator_release(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(record_pool_gives_separate_aligned_records),    T(record_pool_aligns_payload_of_any_size),
        T(record_pool_product_too_large_is_overflow),     T(record_pool_past_limit_says_limit),
        T(record_pool_without_memory_says_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
