#include "cli/case_reader.h"

#include <string.h>

#include "harness.h"
#include "onnx_builder.h"

typedef struct fixture {
    tn_environment *environment;
    tn_allocator *allocator;
} fixture;

static int set_up(void **state) {
    static fixture f;
    ASSERT_OK(tn_environment_create(NULL, &f.environment, NULL));
    f.allocator = tn_environment_allocator(f.environment);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    tn_environment_release(f->environment);
    return 0;
}

/* A TensorProto of shape [count] whose contents the test adds. */
static onnx_bytes begin(int64_t count, tn_dtype dtype) {
    onnx_bytes out = {0};
    onnx_int_field(&out, 1, count);
    onnx_int_field(&out, 2, (int64_t)dtype);
    return out;
}

static tn_status parse(fixture *f, onnx_bytes *proto, tn_value **out) {
    const tn_status status =
        cli_parse_tensor_pb(f->allocator, proto->data, proto->size_bytes, out, NULL);
    free(proto->data);
    return status;
}

static void tensor_of_raw_bytes_is_read(void **state) {
    const float numbers[] = {1.0f, 2.0f};
    tn_value *value = NULL;
    onnx_bytes proto = begin(2, TN_DTYPE_F32);
    onnx_bytes_field(&proto, 9, numbers, sizeof numbers);

    ASSERT_OK(parse(*state, &proto, &value));

    assert_int_equal(tn_tensor_dtype(value), TN_DTYPE_F32);
    assert_int_equal(tn_tensor_borrow_shape(value)->rank, 1);
    assert_memory_equal(tn_tensor_borrow_data(value), numbers, sizeof numbers);
    tn_tensor_release(value);
}

static void tensor_of_typed_numbers_takes_the_elements_width(void **state) {
    const int16_t wanted[] = {-1, 300};
    tn_value *value = NULL;
    onnx_bytes proto = begin(2, TN_DTYPE_I16);
    onnx_int_field(&proto, 5, -1);
    onnx_int_field(&proto, 5, 300);

    ASSERT_OK(parse(*state, &proto, &value));

    assert_memory_equal(tn_tensor_borrow_data(value), wanted, sizeof wanted);
    tn_tensor_release(value);
}

static void tensor_of_strings_keeps_empty_and_inner_zero_bytes(void **state) {
    tn_value *value = NULL;
    onnx_bytes proto = begin(2, TN_DTYPE_STRING);
    onnx_bytes_field(&proto, 6, "", 0);
    onnx_bytes_field(&proto, 6, "a\0b", 3);

    ASSERT_OK(parse(*state, &proto, &value));

    const tn_string *strings = tn_tensor_borrow_data(value);
    assert_int_equal(strings[0].size_bytes, 0);
    assert_int_equal(strings[1].size_bytes, 3);
    assert_memory_equal(strings[1].data, "a\0b", 3);
    tn_tensor_release(value);
}

static void tensor_of_no_elements_is_read(void **state) {
    tn_value *value = NULL;
    onnx_bytes proto = begin(0, TN_DTYPE_F32);

    ASSERT_OK(parse(*state, &proto, &value));

    assert_int_equal(tn_tensor_size_bytes(value), 0);
    tn_tensor_release(value);
}

static void tensor_with_fewer_bytes_than_its_shape_is_refused(void **state) {
    tn_value *value = NULL;
    onnx_bytes proto = begin(3, TN_DTYPE_F32);
    onnx_bytes_field(&proto, 9, "12345678", 8);

    ASSERT_STATUS(TN_INVALID_ARGUMENT, parse(*state, &proto, &value));

    assert_null(value);
}

static void message_cut_short_anywhere_is_refused(void **state) {
    fixture *f = *state;
    const float numbers[] = {1.0f, 2.0f};
    onnx_bytes proto = begin(2, TN_DTYPE_F32);
    onnx_bytes_field(&proto, 9, numbers, sizeof numbers);

    for (size_t cut = 0; cut < proto.size_bytes; cut++) {
        tn_value *value = NULL;
        const tn_status status = cli_parse_tensor_pb(f->allocator, proto.data, cut, &value, NULL);
        assert_int_not_equal(status, TN_OK);
        assert_null(value);
    }

    free(proto.data);
}

static void missing_file_is_an_io_error_with_its_path(void **state) {
    fixture *f = *state;
    tn_error err = {.code = TN_OK};
    tn_value *value = NULL;

    ASSERT_STATUS(TN_IO, cli_read_tensor_pb(f->allocator, "no/such.pb", &value, &err));

    assert_non_null(strstr(err.message, "no/such.pb"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(tensor_of_raw_bytes_is_read),
        T(tensor_of_typed_numbers_takes_the_elements_width),
        T(tensor_of_strings_keeps_empty_and_inner_zero_bytes),
        T(tensor_of_no_elements_is_read),
        T(tensor_with_fewer_bytes_than_its_shape_is_refused),
        T(message_cut_short_anywhere_is_refused),
        T(missing_file_is_an_io_error_with_its_path),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
