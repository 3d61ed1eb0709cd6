#include "cli/npy.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/case_reader.h"
#include "cli/feeds.h"
#include "harness.h"

static int set_up(void **state) {
    tn_allocator *root = NULL;
    ASSERT_OK(tn_allocator_create_root(NULL, &root, NULL));
    *state = root;
    return 0;
}

static int tear_down(void **state) {
    tn_allocator *root = *state;
    ASSERT_OK(tn_allocator_close(root, NULL));
    tn_allocator_release(root);
    return 0;
}

/* A file in memory: magic, version, header, data. */
static size_t make_file(unsigned char *file, const char *header, const void *data,
                        size_t data_bytes) {
    const size_t length = strlen(header);
    memcpy(file, "\x93NUMPY\x01\x00", 8);
    file[8] = (unsigned char)length;
    file[9] = 0;
    memcpy(file + 10, header, length);
    if (data_bytes > 0) memcpy(file + 10 + length, data, data_bytes);
    return 10 + length + data_bytes;
}

static void npy_round_trip_keeps_every_number_type(void **state) {
    static const tn_dtype dtypes[] = {TN_DTYPE_F32, TN_DTYPE_F64, TN_DTYPE_F16, TN_DTYPE_I8,
                                      TN_DTYPE_U8,  TN_DTYPE_I16, TN_DTYPE_U16, TN_DTYPE_I32,
                                      TN_DTYPE_U32, TN_DTYPE_I64, TN_DTYPE_U64, TN_DTYPE_BOOL,
                                      TN_DTYPE_C64, TN_DTYPE_C128};
    char path[] = "/tmp/npy_test_XXXXXX";
    const int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    (void)close(descriptor);
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        const tn_shape shape = {.rank = 2, .dims = {2, 3}};
        tn_value *written = NULL;
        tn_value *seen = NULL;
        ASSERT_OK(tn_tensor_create(*state, dtypes[i], &shape, &written, NULL));
        unsigned char *data = tn_tensor_borrow_data(written);
        const size_t size_bytes = tn_tensor_size_bytes(written);
        for (size_t b = 0; b < size_bytes; b++) data[b] = (unsigned char)(b * 37 + i);

        ASSERT_OK(cli_write_npy(written, path, NULL));
        ASSERT_OK(cli_read_npy(*state, path, &seen, NULL));

        assert_int_equal(tn_tensor_dtype(seen), dtypes[i]);
        assert_memory_equal(tn_tensor_borrow_shape(seen)->dims, shape.dims, 2 * sizeof(int64_t));
        assert_memory_equal(tn_tensor_borrow_data(seen), data, size_bytes);
        tn_tensor_release(written);
        tn_tensor_release(seen);
    }
    (void)unlink(path);
}

static void npy_fortran_order_is_turned_into_rows(void **state) {
    unsigned char file[256];
    const uint8_t columns[] = {1, 4, 2, 5, 3, 6};
    const uint8_t rows[] = {1, 2, 3, 4, 5, 6};
    tn_value *value = NULL;
    const size_t size_bytes =
        make_file(file, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", columns, 6);

    ASSERT_OK(cli_parse_npy(*state, file, size_bytes, &value, NULL));

    assert_memory_equal(tn_tensor_borrow_data(value), rows, 6);
    tn_tensor_release(value);
}

static void npy_big_endian_is_swapped(void **state) {
    unsigned char file[256];
    const uint8_t bytes[] = {0, 1, 1, 0};
    tn_value *value = NULL;
    const size_t size_bytes =
        make_file(file, "{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }\n", bytes, 4);

    ASSERT_OK(cli_parse_npy(*state, file, size_bytes, &value, NULL));

    const int16_t *data = tn_tensor_borrow_data(value);
    assert_int_equal(data[0], 1);
    assert_int_equal(data[1], 256);
    tn_tensor_release(value);
}

static void npy_rank_zero_and_no_elements_are_read(void **state) {
    unsigned char file[256];
    const uint8_t byte = 7;
    tn_value *value = NULL;
    size_t size_bytes =
        make_file(file, "{'descr': '|u1', 'fortran_order': False, 'shape': (), }\n", &byte, 1);
    ASSERT_OK(cli_parse_npy(*state, file, size_bytes, &value, NULL));
    assert_int_equal(tn_tensor_borrow_shape(value)->rank, 0);
    tn_tensor_release(value);

    size_bytes =
        make_file(file, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0), }\n", NULL, 0);
    ASSERT_OK(cli_parse_npy(*state, file, size_bytes, &value, NULL));
    assert_int_equal(tn_tensor_size_bytes(value), 0);
    tn_tensor_release(value);
}

static void npy_damaged_files_are_refused(void **state) {
    static const char *const headers[] = {
        "{'fortran_order': False, 'shape': (2,), }\n",
        "{'descr': '|u1', 'shape': (2,), }\n",
        "{'descr': '|u1', 'fortran_order': False, }\n",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2, }\n",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (-2,), }\n",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807, 8), }\n",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }\n",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }\n",
        "{'descr': '|u1', 'fortran_order': False, 'shape': "
        "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2), }\n",
    };
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        unsigned char file[256];
        tn_value *value = NULL;
        tn_error err = {.code = TN_OK};
        const size_t size_bytes = make_file(file, headers[i], "ab", 2);
        assert_int_not_equal(cli_parse_npy(*state, file, size_bytes, &value, &err), TN_OK);
        assert_int_not_equal(err.code, TN_OK);
        assert_null(value);
    }
}

static void npy_every_prefix_of_a_file_is_refused(void **state) {
    unsigned char file[256];
    const size_t size_bytes =
        make_file(file, "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n", "ab", 2);
    for (size_t kept = 0; kept < size_bytes; kept++) {
        unsigned char *copy = malloc(kept + 1);
        tn_value *value = NULL;
        assert_non_null(copy);
        memcpy(copy, file, kept);
        assert_int_not_equal(cli_parse_npy(*state, copy, kept, &value, NULL), TN_OK);
        assert_null(value);
        free(copy);
    }
}

static void parse_shape_reads_sizes_between_crosses(void **state) {
    (void)state;
    tn_shape shape;
    assert_true(cli_parse_shape("1x3x224", 7, &shape));
    assert_int_equal(shape.rank, 3);
    assert_int_equal(shape.dims[2], 224);
    assert_true(cli_parse_shape("", 0, &shape));
    assert_int_equal(shape.rank, 0);
    static const char *const bad[] = {"x",
                                      "1x",
                                      "x1",
                                      "1xx2",
                                      "-1",
                                      "1,2",
                                      "1x 2",
                                      "99999999999999999999",
                                      "1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(cli_parse_shape(bad[i], strlen(bad[i]), &shape));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(npy_round_trip_keeps_every_number_type),
        T(npy_fortran_order_is_turned_into_rows),
        T(npy_big_endian_is_swapped),
        T(npy_rank_zero_and_no_elements_are_read),
        T(npy_damaged_files_are_refused),
        T(npy_every_prefix_of_a_file_is_refused),
        T(parse_shape_reads_sizes_between_crosses),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
