/* Every input gets a shape first and contents then. Shapes come from --shape, else from the model's
 * declaration with --dim filled in and 1 for what is still open. Contents default to random numbers
 * for floating point and ones for everything else, which suits masks, lengths and token ids. */
#include "cli/feeds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/case_reader.h"
#include "cli/npy.h"

/* A piece of text inside an argument: not terminated. */
typedef struct piece {
    const char *text;
    size_t text_bytes;
} piece;

static bool piece_is(piece a, const char *text) {
    return strlen(text) == a.text_bytes && memcmp(a.text, text, a.text_bytes) == 0;
}

bool cli_parse_shape(const char *text, size_t text_bytes, tn_shape *out) {
    *out = (tn_shape){.rank = 0};
    for (size_t at = 0; at < text_bytes;) {
        int64_t dim = 0;
        const size_t start = at;
        for (; at < text_bytes && text[at] >= '0' && text[at] <= '9'; at++) {
            if (dim > INT64_MAX / 10 - 1) return false;
            dim = dim * 10 + (text[at] - '0');
        }
        if (at == start || out->rank == TN_MAX_RANK) return false;
        out->dims[out->rank++] = dim;
        if (at == text_bytes) break;
        if (text[at] != 'x' || ++at == text_bytes) return false;
    }
    return true;
}

/* Splits "name=value" at the last '='; without one the value stands alone. */
static void split(piece item, piece *out_name, piece *out_value) {
    size_t at = item.text_bytes;
    while (at > 0 && item.text[at - 1] != '=') at--;
    *out_name = (piece){item.text, at == 0 ? 0 : at - 1};
    *out_value = (piece){item.text + at, item.text_bytes - at};
}

static bool names_input(const tn_session *session, piece name, const char *input) {
    if (name.text_bytes == 0) return tn_session_input_count(session) == 1;
    return piece_is(name, input);
}

/* Item number `index` of a set "a=1;b=2x3". */
static bool set_item(const char *set, size_t index, piece *out) {
    if (set == NULL) return false;
    for (;;) {
        const size_t length = strcspn(set, ";");
        if (index == 0) {
            *out = (piece){set, length};
            return length > 0;
        }
        index--;
        if (set[length] == '\0') return false;
        set += length + 1;
    }
}

static bool is_given(const piece *item, const tn_session *session, const char *input,
                     piece *out_value) {
    piece name;
    split(*item, &name, out_value);
    return names_input(session, name, input);
}

static bool find_shape(const tn_session *session, const char *input, const cli_args *args,
                       const char *shape_set, piece *out) {
    piece item;
    for (size_t i = 0; set_item(shape_set, i, &item); i++) {
        if (is_given(&item, session, input, out)) return true;
    }
    const char *text = NULL;
    for (size_t i = 0; (text = cli_args_nth(args, "shape", i)) != NULL; i++) {
        item = (piece){text, strlen(text)};
        if (is_given(&item, session, input, out)) return true;
    }
    return false;
}

static bool read_dim(piece item, const char *symbol, int64_t *out) {
    piece name;
    piece value;
    tn_shape shape;
    split(item, &name, &value);
    if (!piece_is(name, symbol) || !cli_parse_shape(value.text, value.text_bytes, &shape) ||
        shape.rank != 1) {
        return false;
    }
    *out = shape.dims[0];
    return true;
}

static int64_t value_of_dim(const char *symbol, const cli_args *args, const char *shape_set) {
    int64_t dim = 1;
    piece item;
    const char *text = NULL;
    if (symbol == NULL) return 1;
    for (size_t i = 0; set_item(shape_set, i, &item); i++) {
        if (read_dim(item, symbol, &dim)) return dim;
    }
    for (size_t i = 0; (text = cli_args_nth(args, "dim", i)) != NULL; i++) {
        if (read_dim((piece){text, strlen(text)}, symbol, &dim)) return dim;
    }
    return 1;
}

tn_status cli_input_shape(tn_session *session, const tn_value_info *info, const cli_args *args,
                          const char *shape_set, tn_shape *out, tn_error *err) {
    piece given;
    if (find_shape(session, info->name, args, shape_set, &given)) {
        if (cli_parse_shape(given.text, given.text_bytes, out)) return TN_OK;
        return cli_set_error(err, TN_INVALID_ARGUMENT,
                             "--shape %s=%.*s: a shape looks like 1x3x224x224", info->name,
                             (int)given.text_bytes, given.text);
    }
    if (info->rank < 0) {
        return cli_set_error(err, TN_INVALID_ARGUMENT,
                             "input '%s' has no declared shape, give --shape %s=...", info->name,
                             info->name);
    }
    *out = (tn_shape){.rank = info->rank};
    for (int32_t d = 0; d < info->rank; d++) {
        out->dims[d] = info->dims[d] >= 0 ? info->dims[d]
                                          : value_of_dim(info->dim_symbols[d], args, shape_set);
    }
    return TN_OK;
}

static uint64_t next_random(uint64_t *state) {
    /* xorshift64*: enough for contents of benchmarks */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

static uint16_t half_bits(double number) {
    int exponent = 0;
    const uint16_t sign = signbit(number) ? 0x8000 : 0;
    const double fraction = frexp(fabs(number), &exponent); /* in [0.5, 1) */
    if (number == 0 || exponent < -13) {
        return (uint16_t)(sign | (uint16_t)nearbyint(ldexp(fabs(number), 24)));
    }
    if (exponent > 16) return sign | 0x7C00;
    const int mantissa = (int)nearbyint(ldexp(fraction, 11)); /* 1024 to 2048 */
    return (uint16_t)(sign | (uint16_t)(((exponent + 13) << 10) + mantissa));
}

static uint16_t bfloat_bits(double number) {
    const float as_float = (float)number;
    uint32_t bits = 0;
    memcpy(&bits, &as_float, sizeof bits);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* Writes `number` as element `index`; false for types that have no such contents. */
static bool put_number(void *data, tn_dtype dtype, size_t index, double number) {
    switch (dtype) {
        case TN_DTYPE_F32:
            ((float *)data)[index] = (float)number;
            return true;
        case TN_DTYPE_F64:
            ((double *)data)[index] = number;
            return true;
        case TN_DTYPE_F16:
            ((uint16_t *)data)[index] = half_bits(number);
            return true;
        case TN_DTYPE_BF16:
            ((uint16_t *)data)[index] = bfloat_bits(number);
            return true;
        case TN_DTYPE_I8:
        case TN_DTYPE_U8:
            ((uint8_t *)data)[index] = (uint8_t)(int64_t)number;
            return true;
        case TN_DTYPE_I16:
        case TN_DTYPE_U16:
            ((uint16_t *)data)[index] = (uint16_t)(int64_t)number;
            return true;
        case TN_DTYPE_I32:
        case TN_DTYPE_U32:
            ((uint32_t *)data)[index] = (uint32_t)(int64_t)number;
            return true;
        case TN_DTYPE_I64:
        case TN_DTYPE_U64:
            ((int64_t *)data)[index] = (int64_t)number;
            return true;
        case TN_DTYPE_BOOL:
            ((uint8_t *)data)[index] = number != 0;
            return true;
        default:
            return false;
    }
}

static bool is_floating(tn_dtype dtype) {
    return dtype == TN_DTYPE_F32 || dtype == TN_DTYPE_F64 || dtype == TN_DTYPE_F16 ||
           dtype == TN_DTYPE_BF16;
}

typedef enum fill_kind { FILL_NUMBER, FILL_RANDOM, FILL_RANGE } fill_kind;

static double element_of(fill_kind kind, tn_dtype dtype, double number, size_t index,
                         uint64_t *state) {
    if (kind == FILL_NUMBER) return number;
    if (kind == FILL_RANGE) return (double)index;
    const double unit = (double)(next_random(state) >> 11) * 0x1p-53; /* [0, 1) */
    if (is_floating(dtype)) return 2 * unit - 1;
    return floor(unit * (dtype == TN_DTYPE_BOOL ? 2 : 10));
}

static tn_status fill(tn_value *value, fill_kind kind, double number, uint64_t seed,
                      tn_error *err) {
    size_t count = 0;
    const tn_dtype dtype = tn_tensor_dtype(value);
    void *data = tn_tensor_borrow_data(value);
    uint64_t state = seed * 0x9E3779B97F4A7C15u | 1;
    const tn_status status = tn_shape_len_elems(tn_tensor_borrow_shape(value), &count, err);
    if (status != TN_OK) return status;
    for (size_t i = 0; i < count; i++) {
        if (put_number(data, dtype, i, element_of(kind, dtype, number, i, &state))) continue;
        if (kind != FILL_NUMBER || number != 0) {
            return cli_set_error(err, TN_UNSUPPORTED, "contents of type %s come from files only",
                                 tn_dtype_name(dtype));
        }
        memset(data, 0, tn_tensor_size_bytes(value));
        return TN_OK;
    }
    return TN_OK;
}

static void free_strings(void *ctx, void *data) {
    (void)ctx;
    free(data);
}

/* All elements refer to one text, which lives behind them. */
static tn_status make_strings(tn_allocator *allocator, const tn_shape *shape, const char *text,
                              tn_value **out, tn_error *err) {
    size_t size_bytes = 0;
    tn_status status = tn_shape_size_bytes(shape, TN_DTYPE_STRING, &size_bytes, err);
    if (status != TN_OK) return status;
    const size_t text_bytes = strlen(text);
    tn_string *strings = malloc(size_bytes + text_bytes + 1);
    if (strings == NULL) return cli_set_error(err, TN_OUT_OF_MEMORY, "no memory for strings");
    char *copy = (char *)strings + size_bytes;
    memcpy(copy, text, text_bytes + 1);
    for (size_t i = 0; i < size_bytes / sizeof *strings; i++) {
        strings[i] = (tn_string){copy, text_bytes};
    }
    status = tn_tensor_create_borrowed(allocator, TN_DTYPE_STRING, shape, NULL, strings,
                                       free_strings, NULL, out, err);
    if (status != TN_OK) free(strings);
    return status;
}

static tn_status make_filled(tn_allocator *allocator, const tn_value_info *info,
                             const tn_shape *shape, const char *what, uint64_t seed, tn_value **out,
                             tn_error *err) {
    fill_kind kind = FILL_NUMBER;
    double number = 0;
    char *end = NULL;
    const tn_dtype dtype = info->dtype == TN_DTYPE_NONE ? TN_DTYPE_F32 : info->dtype;
    if (dtype == TN_DTYPE_STRING) {
        return make_strings(allocator, shape, what == NULL ? "" : what, out, err);
    }
    if (what == NULL) {
        kind = is_floating(dtype) ? FILL_RANDOM : FILL_NUMBER;
        number = tn_dtype_bits(dtype) < 8 || dtype > TN_DTYPE_BF16 ? 0 : 1;
    } else if (strcmp(what, "random") == 0) {
        kind = FILL_RANDOM;
    } else if (strcmp(what, "range") == 0) {
        kind = FILL_RANGE;
    } else if (strcmp(what, "ones") == 0) {
        number = 1;
    } else if (strcmp(what, "zeros") != 0) {
        number = strtod(what, &end);
        if (end == what || *end != '\0') {
            return cli_set_error(err, TN_INVALID_ARGUMENT,
                                 "--input %s=%s: neither a file nor zeros, ones, random, range or "
                                 "a number",
                                 info->name, what);
        }
    }
    tn_status status = tn_tensor_create(allocator, dtype, shape, out, err);
    if (status != TN_OK) return status;
    status = fill(*out, kind, number, seed, err);
    if (status != TN_OK) {
        tn_tensor_release(*out);
        *out = NULL;
    }
    return status;
}

static bool ends_with(const char *text, const char *ending) {
    const size_t length = strlen(text);
    const size_t ending_bytes = strlen(ending);
    return length >= ending_bytes && strcmp(text + length - ending_bytes, ending) == 0;
}

static tn_status read_raw(tn_allocator *allocator, const tn_value_info *info, const tn_shape *shape,
                          const char *path, tn_value **out, tn_error *err) {
    unsigned char *data = NULL;
    size_t given_bytes = 0;
    tn_status status = cli_read_file(path, &data, &given_bytes, err);
    if (status != TN_OK) return status;
    status = tn_tensor_create(allocator, info->dtype, shape, out, err);
    if (status == TN_OK && tn_tensor_size_bytes(*out) != given_bytes) {
        status = cli_set_error(err, TN_INVALID_ARGUMENT, "%s has %zu bytes, input '%s' needs %zu",
                               path, given_bytes, info->name, tn_tensor_size_bytes(*out));
        tn_tensor_release(*out);
        *out = NULL;
    }
    if (status == TN_OK && given_bytes > 0) memcpy(tn_tensor_borrow_data(*out), data, given_bytes);
    free(data);
    return status;
}

static const char *contents_of(const tn_session *session, const char *input, const cli_args *args) {
    const char *text = NULL;
    for (size_t i = 0; (text = cli_args_nth(args, "input", i)) != NULL; i++) {
        const char *equals = strchr(text, '=');
        const piece name = {text, equals == NULL ? 0 : (size_t)(equals - text)};
        if (names_input(session, name, input)) return equals == NULL ? text : equals + 1;
    }
    return NULL;
}

static tn_status make_value(tn_session *session, tn_allocator *allocator, const tn_value_info *info,
                            const cli_args *args, const char *shape_set, uint64_t seed,
                            tn_value **out, tn_error *err) {
    tn_shape shape;
    const char *what = contents_of(session, info->name, args);
    if (info->kind != TN_KIND_TENSOR) {
        return cli_set_error(err, TN_UNSUPPORTED, "input '%s' is not a tensor", info->name);
    }
    if (what != NULL && ends_with(what, ".npy")) return cli_read_npy(allocator, what, out, err);
    if (what != NULL && ends_with(what, ".pb")) {
        return cli_read_tensor_pb(allocator, what, out, err);
    }
    const tn_status status = cli_input_shape(session, info, args, shape_set, &shape, err);
    if (status != TN_OK) return status;
    if (what != NULL && ends_with(what, ".raw")) {
        return read_raw(allocator, info, &shape, what, out, err);
    }
    return make_filled(allocator, info, &shape, what, seed, out, err);
}

static bool is_overridable(const tn_session *session, const char *name) {
    for (size_t i = 0; i < tn_session_overridable_count(session); i++) {
        tn_value_info info = {.struct_size = sizeof info};
        if (tn_session_overridable_info(session, i, &info, NULL) != TN_OK) return false;
        if (strcmp(info.name, name) == 0) return true;
    }
    return false;
}

static bool has_input(const tn_session *session, piece name) {
    for (size_t i = 0; i < tn_session_input_count(session); i++) {
        tn_value_info info = {.struct_size = sizeof info};
        if (tn_session_input_info(session, i, &info, NULL) != TN_OK) return false;
        if (names_input(session, name, info.name)) return true;
    }
    return false;
}

static bool has_symbol(const tn_session *session, piece name) {
    for (size_t i = 0; i < tn_session_input_count(session); i++) {
        tn_value_info info = {.struct_size = sizeof info};
        if (tn_session_input_info(session, i, &info, NULL) != TN_OK) return false;
        for (int32_t d = 0; d < info.rank; d++) {
            const char *symbol = info.dim_symbols[d];
            if (symbol != NULL && piece_is(name, symbol)) return true;
        }
    }
    return false;
}

tn_status cli_check_names(tn_session *session, const cli_args *args, tn_error *err) {
    static const char *const options[] = {"input", "shape", "dim"};
    for (size_t o = 0; o < 3; o++) {
        const char *text = NULL;
        for (size_t i = 0; (text = cli_args_nth(args, options[o], i)) != NULL; i++) {
            piece name;
            piece value;
            split((piece){text, strlen(text)}, &name, &value);
            if (o == 0) name.text_bytes = strchr(text, '=') == NULL ? 0 : strcspn(text, "=");
            const bool is_known = o == 2 ? has_symbol(session, name) : has_input(session, name);
            if (is_known) continue;
            return cli_set_error(err, TN_INVALID_ARGUMENT, "--%s %s: the model has no %s '%.*s'",
                                 options[o], text, o == 2 ? "symbolic dimension" : "input",
                                 (int)name.text_bytes, name.text);
        }
    }
    return TN_OK;
}

tn_status cli_feeds_create(tn_session *session, tn_allocator *allocator, const cli_args *args,
                           const char *shape_set, cli_feeds *out, tn_error *err) {
    const size_t input_count = tn_session_input_count(session);
    const uint64_t seed = cli_args_number(args, "seed", 1);
    *out = (cli_feeds){0};
    tn_status status = cli_check_names(session, args, err);
    if (status != TN_OK) return status;
    out->feeds = calloc(input_count + 1, sizeof *out->feeds);
    if (out->feeds == NULL) return cli_set_error(err, TN_OUT_OF_MEMORY, "no memory for inputs");
    for (size_t i = 0; i < input_count && status == TN_OK; i++) {
        tn_value_info info = {.struct_size = sizeof info};
        tn_value *value = NULL;
        status = tn_session_input_info(session, i, &info, err);
        if (status != TN_OK) break;
        if (is_overridable(session, info.name) && contents_of(session, info.name, args) == NULL) {
            continue;
        }
        status = make_value(session, allocator, &info, args, shape_set, seed + i, &value, err);
        if (status != TN_OK) break;
        out->feeds[out->count++] = (tn_feed){info.name, value};
        out->size_bytes += tn_tensor_size_bytes(value);
    }
    if (status != TN_OK) cli_feeds_deinit(out);
    return status;
}

void cli_feeds_deinit(cli_feeds *feeds) {
    for (size_t i = 0; i < feeds->count; i++) {
        tn_value *value = (tn_value *)(uintptr_t)feeds->feeds[i].value; /* ours: made above */
        tn_tensor_release(value);
    }
    free(feeds->feeds);
    *feeds = (cli_feeds){0};
}
