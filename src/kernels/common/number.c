/* Tables of one reader and one writer per element type, made from one list. */
#include "kernels/common/number.h"

#include <string.h>

#include "kernels/common/half.h"

/* X(dtype, type, low, high): integer types with their range; both ends are exact as doubles
 * except the highest of 64 bits, where the nearest double below is used. */
#define INTEGER_LIST(X)                                            \
    X(U8, uint8_t, 0.0, 255.0)                                     \
    X(I8, int8_t, -128.0, 127.0)                                   \
    X(U16, uint16_t, 0.0, 65535.0)                                 \
    X(I16, int16_t, -32768.0, 32767.0)                             \
    X(I32, int32_t, -2147483648.0, 2147483647.0)                   \
    X(U32, uint32_t, 0.0, 4294967295.0)                            \
    X(I64, int64_t, -9223372036854775808.0, 9223372036854774784.0) \
    X(U64, uint64_t, 0.0, 18446744073709549568.0)

/* X(dtype, storage, to_double, from_double): floating types */
#define FLOAT_LIST(X)                                                                  \
    X(F32, float, (double)value, (float)value)                                         \
    X(F64, double, value, value)                                                       \
    X(F16, uint16_t, (double)tn_f32_from_f16(value), tn_f16_from_f32((float)value))    \
    X(BF16, uint16_t, (double)tn_f32_from_bf16(value), tn_bf16_from_f32((float)value)) \
    X(BOOL, uint8_t, (double)(value != 0), (uint8_t)(value != 0))

static int64_t int_from_double(double value) {
    if (value != value || value < -9223372036854775808.0) return INT64_MIN;
    if (value >= 9223372036854775808.0) return INT64_MAX;
    return (int64_t)value;
}

#define DEFINE_INTEGER(dtype, type, low, high)               \
    static double read_##dtype(const char *at) {             \
        type value;                                          \
        memcpy(&value, at, sizeof value);                    \
        return (double)value;                                \
    }                                                        \
    static int64_t read_int_##dtype(const char *at) {        \
        type value;                                          \
        memcpy(&value, at, sizeof value);                    \
        return (int64_t)value;                               \
    }                                                        \
    static void write_##dtype(char *at, double value) {      \
        type kept = 0;                                       \
        if (value >= (high)) {                               \
            kept = (type)(high);                             \
        } else if (value > (low)) {                          \
            kept = (type)value;                              \
        } else if (value <= (low)) {                         \
            kept = (type)(low);                              \
        }                                                    \
        memcpy(at, &kept, sizeof kept);                      \
    }                                                        \
    static void write_int_##dtype(char *at, int64_t value) { \
        const type kept = (type)value;                       \
        memcpy(at, &kept, sizeof kept);                      \
    }
INTEGER_LIST(DEFINE_INTEGER)

#define DEFINE_FLOAT(dtype, storage, to_double, from_double) \
    static double read_##dtype(const char *at) {             \
        storage value;                                       \
        memcpy(&value, at, sizeof value);                    \
        return to_double;                                    \
    }                                                        \
    static int64_t read_int_##dtype(const char *at) {        \
        return int_from_double(read_##dtype(at));            \
    }                                                        \
    static void write_##dtype(char *at, double value) {      \
        const storage kept = from_double;                    \
        memcpy(at, &kept, sizeof kept);                      \
    }                                                        \
    static void write_int_##dtype(char *at, int64_t value) { \
        write_##dtype(at, (double)value);                    \
    }
FLOAT_LIST(DEFINE_FLOAT)

typedef struct number_type {
    size_t size_bytes;
    double (*read)(const char *at);
    int64_t (*read_int)(const char *at);
    void (*write)(char *at, double value);
    void (*write_int)(char *at, int64_t value);
} number_type;

#define NUMBER_ENTRY(dtype, type, ...) \
    [TN_DTYPE_##                       \
        dtype] = {sizeof(type), read_##dtype, read_int_##dtype, write_##dtype, write_int_##dtype},
static const number_type types[TN_DTYPE_COUNT] = {INTEGER_LIST(NUMBER_ENTRY)
                                                      FLOAT_LIST(NUMBER_ENTRY)};

static const number_type *find_type(tn_dtype dtype) {
    const number_type *type = &types[dtype < TN_DTYPE_COUNT ? dtype : TN_DTYPE_NONE];
    return type->read == NULL ? NULL : type;
}

double tn_number_read(const void *data, tn_dtype dtype, size_t index) {
    const number_type *type = find_type(dtype);
    return type == NULL ? 0.0 : type->read((const char *)data + index * type->size_bytes);
}

int64_t tn_number_read_int(const void *data, tn_dtype dtype, size_t index) {
    const number_type *type = find_type(dtype);
    return type == NULL ? 0 : type->read_int((const char *)data + index * type->size_bytes);
}

void tn_number_write(void *data, tn_dtype dtype, size_t index, double value) {
    const number_type *type = find_type(dtype);
    if (type != NULL) type->write((char *)data + index * type->size_bytes, value);
}

void tn_number_write_int(void *data, tn_dtype dtype, size_t index, int64_t value) {
    const number_type *type = find_type(dtype);
    if (type != NULL) type->write_int((char *)data + index * type->size_bytes, value);
}
