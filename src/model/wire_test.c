#include "model/wire.h"

#include <string.h>

#include "harness.h"
#include "model/proto_writer.h"

static tn_status read_one(const void *data, size_t size_bytes, tn_wire_field *out_field,
                          tn_error *err) {
    tn_wire_reader reader = tn_wire_reader_of((tn_bytes){data, size_bytes}, "TestProto");
    return tn_wire_next(&reader, out_field, err);
}

static void wire_each_type_is_read(void **state) {
    (void)state;
    static const uint8_t fixed64[] = {1, 0, 0, 0, 0, 0, 0, 0x80};
    proto message = {.size_bytes = 0};
    tn_wire_field field;
    proto_put_int(&message, 1, -1);
    proto_put_text(&message, 2, "abc");
    proto_put_float(&message, 3, 1.0f);
    proto_varint(&message, 4 << 3 | 1);
    proto_raw(&message, fixed64, sizeof fixed64);
    tn_wire_reader reader = tn_wire_reader_of(proto_bytes(&message), "TestProto");

    ASSERT_OK(tn_wire_next(&reader, &field, NULL));
    assert_int_equal(field.number, 1);
    assert_true(field.value == UINT64_MAX);
    ASSERT_OK(tn_wire_next(&reader, &field, NULL));
    assert_int_equal(field.type, TN_WIRE_BYTES);
    assert_true(tn_text_equals_literal(tn_wire_text(&field), "abc"));
    ASSERT_OK(tn_wire_next(&reader, &field, NULL));
    assert_true(field.value == 0x3F800000);
    ASSERT_OK(tn_wire_next(&reader, &field, NULL));
    assert_true(field.value == UINT64_C(0x8000000000000001));
    assert_true(tn_wire_at_end(&reader));
}

static void wire_empty_bytes_are_at_the_end(void **state) {
    (void)state;

    const tn_wire_reader reader = tn_wire_reader_of((tn_bytes){NULL, 0}, "TestProto");

    assert_true(tn_wire_at_end(&reader));
}

static void wire_damaged_fields_are_refused_and_named(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size_bytes;
        const char *needle;
    } cases[] = {
        {"\x08", 1, "varint"},                                              /* no value */
        {"\x80", 1, "tag"},                                                 /* half a tag */
        {"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12, "varint"}, /* 11 bytes */
        {"\x12\x05xx", 4, "length 5"},
        {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "length 18446744073709551615"},
        {"\x12\x80\x80\x80\x80\x08", 6, "length 2147483648"},
        {"\x1d\x01\x02\x03", 4, "cut off"},                 /* fixed32 */
        {"\x19\x01\x02\x03\x04\x05\x06\x07", 8, "cut off"}, /* fixed64 */
        {"\x0b\x0c", 2, "groups"},
        {"\x0c", 1, "groups"},
        {"\x0f", 1, "wire type"},
        {"\x00\x00", 2, "0 is no field number"},
        {"\x80\x80\x80\x80\x10\x00", 6, "no field number"}, /* number 2^29 */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_wire_field field = {.number = 77};
        tn_error err = {0};
        ASSERT_STATUS(TN_INVALID_MODEL,
                      read_one(cases[i].bytes, cases[i].size_bytes, &field, &err));
        assert_int_equal(field.number, 77);
        assert_non_null(strstr(err.message, "TestProto"));
        assert_non_null(strstr(err.message, cases[i].needle));
    }
}

static void wire_varint_of_ten_bytes_is_read(void **state) {
    (void)state;
    tn_wire_field field;

    ASSERT_OK(read_one("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, &field, NULL));

    assert_true(field.value == UINT64_MAX);
}

static void wire_list_gives_the_occurrences_in_order(void **state) {
    (void)state;
    proto message = {.size_bytes = 0};
    tn_bytes bytes = {NULL, 0};
    proto_put_text(&message, 2, "first");
    proto_put_text(&message, 3, "other");
    proto_put_int(&message, 2, 7); /* another wire type is another field */
    proto_put_text(&message, 2, "");
    tn_wire_list list = {tn_wire_reader_of(proto_bytes(&message), "TestProto"), 2, 2};

    ASSERT_OK(tn_wire_list_next(&list, &bytes, NULL));
    assert_int_equal(bytes.size_bytes, 5);
    assert_memory_equal(bytes.data, "first", 5);
    ASSERT_OK(tn_wire_list_next(&list, &bytes, NULL));
    assert_int_equal(bytes.size_bytes, 0);

    assert_int_equal(list.count, 0);
}

static size_t count_of(const proto *message, tn_wire_type type, tn_status *out_status) {
    tn_wire_reader reader = tn_wire_reader_of(proto_bytes(message), "TestProto");
    size_t count = 0;
    *out_status = TN_OK;
    while (!tn_wire_at_end(&reader) && *out_status == TN_OK) {
        tn_wire_field field;
        const tn_wire_reader at = reader;
        ASSERT_OK(tn_wire_next(&reader, &field, NULL));
        *out_status = tn_wire_count(&at, &field, type, &count, NULL);
    }
    return count;
}

static void wire_packed_and_single_scalars_count_alike(void **state) {
    (void)state;
    proto message = {.size_bytes = 0};
    tn_status status = TN_OK;
    proto_put_int(&message, 1, 5);
    proto_put_bytes(&message, 1, "\x01\x80\x01\x7f", 4); /* 1, 128, 127 */
    proto_put_bytes(&message, 1, "", 0);

    assert_int_equal(count_of(&message, TN_WIRE_VARINT, &status), 4);
    ASSERT_OK(status);
    assert_int_equal(count_of(&message, TN_WIRE_FIXED32, &status), 1); /* the int is unknown here */
    ASSERT_OK(status);
}

static void wire_packed_scalars_come_in_order(void **state) {
    (void)state;
    static const uint64_t expected[] = {1, 128, 127};
    proto message = {.size_bytes = 0};
    tn_wire_field field;
    uint64_t value = 0;
    proto_put_bytes(&message, 1, "\x01\x80\x01\x7f", 4);
    ASSERT_OK(read_one(message.data, message.size_bytes, &field, NULL));

    tn_wire_scalars scalars = tn_wire_scalars_of(&field, TN_WIRE_VARINT);

    for (size_t i = 0; i < 3; i++) {
        assert_true(tn_wire_scalars_next(&scalars, &value));
        assert_true(value == expected[i]);
    }
    assert_false(tn_wire_scalars_next(&scalars, &value));
}

static void wire_damaged_packed_scalars_are_refused(void **state) {
    (void)state;
    proto cut_varint = {.size_bytes = 0};
    proto odd_floats = {.size_bytes = 0};
    tn_status status = TN_OK;
    proto_put_bytes(&cut_varint, 1, "\x01\x80", 2);
    proto_put_bytes(&odd_floats, 1, "12345", 5);

    (void)count_of(&cut_varint, TN_WIRE_VARINT, &status);
    assert_int_equal(status, TN_INVALID_MODEL);
    (void)count_of(&odd_floats, TN_WIRE_FIXED32, &status);
    assert_int_equal(status, TN_INVALID_MODEL);
    (void)count_of(&odd_floats, TN_WIRE_FIXED64, &status);
    assert_int_equal(status, TN_INVALID_MODEL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(wire_each_type_is_read),
        T(wire_empty_bytes_are_at_the_end),
        T(wire_damaged_fields_are_refused_and_named),
        T(wire_varint_of_ten_bytes_is_read),
        T(wire_list_gives_the_occurrences_in_order),
        T(wire_packed_and_single_scalars_count_alike),
        T(wire_packed_scalars_come_in_order),
        T(wire_damaged_packed_scalars_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
