#include "op_case.h"

/* Two query heads share one key head; queries and keys leave part tiles. */
enum { BATCH = 2, Q_HEADS = 2, QUERIES = 67, PAST = 5, KEYS = 9, TOTAL = PAST + KEYS, HEAD = 19 };

typedef struct attention_data {
    float q[BATCH * Q_HEADS * QUERIES * HEAD];
    float k[BATCH * KEYS * HEAD], v[BATCH * KEYS * HEAD];
    float past_k[BATCH * PAST * HEAD], past_v[BATCH * PAST * HEAD];
    float all_k[BATCH * TOTAL * HEAD], all_v[BATCH * TOTAL * HEAD];
    float y[BATCH * Q_HEADS * QUERIES * HEAD];
} attention_data;

/* The definition in double, causal from the cache on. */
static void reference_row(attention_data *d, size_t batch, size_t head, size_t query) {
    const size_t at = ((batch * Q_HEADS + head) * QUERIES + query) * HEAD;
    double weights[TOTAL];
    double sum = 0;
    for (size_t j = 0; j < TOTAL; j++) {
        double score = 0;
        for (size_t i = 0; i < HEAD; i++) {
            score += (double)d->q[at + i] * (double)d->all_k[(batch * TOTAL + j) * HEAD + i];
        }
        weights[j] = j > PAST + query ? 0.0 : exp(score / sqrt(HEAD));
        sum += weights[j];
    }
    for (size_t i = 0; i < HEAD; i++) {
        double value = 0;
        for (size_t j = 0; j < TOTAL; j++) {
            value += weights[j] / sum * (double)d->all_v[(batch * TOTAL + j) * HEAD + i];
        }
        d->y[at + i] = (float)value;
    }
}

static void join(const float *past, const float *fresh, float *all) {
    for (size_t b = 0; b < BATCH; b++) {
        memcpy(all + b * TOTAL * HEAD, past + b * PAST * HEAD, PAST * HEAD * sizeof *all);
        memcpy(all + (b * TOTAL + PAST) * HEAD, fresh + b * KEYS * HEAD, KEYS * HEAD * sizeof *all);
    }
}

static attention_data *make_data(void) {
    attention_data *d = malloc(sizeof *d);
    assert_non_null(d);
    fill_floats(d->q, TN_COUNTOF(d->q), 1);
    fill_floats(d->k, TN_COUNTOF(d->k), 2);
    fill_floats(d->v, TN_COUNTOF(d->v), 3);
    fill_floats(d->past_k, TN_COUNTOF(d->past_k), 4);
    fill_floats(d->past_v, TN_COUNTOF(d->past_v), 5);
    join(d->past_k, d->k, d->all_k);
    join(d->past_v, d->v, d->all_v);
    for (size_t i = 0; i < BATCH * Q_HEADS * QUERIES; i++) {
        reference_row(d, i / (Q_HEADS * QUERIES), i / QUERIES % Q_HEADS, i % QUERIES);
    }
    return d;
}

static void attention_with_a_cache_and_causal_order_matches_its_definition(void **state) {
    (void)state;
    attention_data *d = make_data();
    op_case c;
    op_case_begin(&c, "Attention", 23);
    op_case_set_int(&c, "is_causal", 1);
    op_case_input(&c, TN_DTYPE_F32, d->q, OP_SHAPE(BATCH, Q_HEADS, QUERIES, HEAD));
    op_case_input(&c, TN_DTYPE_F32, d->k, OP_SHAPE(BATCH, 1, KEYS, HEAD));
    op_case_input(&c, TN_DTYPE_F32, d->v, OP_SHAPE(BATCH, 1, KEYS, HEAD));
    op_case_skip_input(&c);
    op_case_input(&c, TN_DTYPE_F32, d->past_k, OP_SHAPE(BATCH, 1, PAST, HEAD));
    op_case_input(&c, TN_DTYPE_F32, d->past_v, OP_SHAPE(BATCH, 1, PAST, HEAD));
    op_case_set_outputs(&c, 3);
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(op_case_run(&c, (int32_t)i, 2));

        assert_floats(op_case_output(&c, 0), d->y, TN_COUNTOF(d->y), 1e-5);
        assert_memory_equal(op_case_output(&c, 1), d->all_k, sizeof d->all_k);
        assert_memory_equal(op_case_output(&c, 2), d->all_v, sizeof d->all_v);
    }
    op_case_end(&c);
    free(d);
}

static void attention_row_with_everything_masked_gives_zeros(void **state) {
    (void)state;
    static const float ones[] = {1, 1, 1, 1};
    static const uint8_t mask[] = {0, 0, 1, 0}; /* [2, 2] */
    static const float expected[] = {0, 0, 1, 1};
    op_case c;
    op_case_begin(&c, "Attention", 23);
    for (size_t i = 0; i < 3; i++) op_case_input(&c, TN_DTYPE_F32, ones, OP_SHAPE(1, 1, 2, 2));
    op_case_input(&c, TN_DTYPE_BOOL, mask, OP_SHAPE(2, 2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 4, 1e-6);
    op_case_end(&c);
}

static void attention_of_rank_3_without_heads_is_refused(void **state) {
    (void)state;
    static const float data[4] = {0};
    op_case c;
    op_case_begin(&c, "Attention", 24);
    for (size_t i = 0; i < 3; i++) op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(1, 2, 2));

    ASSERT_STATUS(TN_INVALID_MODEL, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

static void attention_refuses_groups_that_do_not_divide(void **state) {
    (void)state;
    static const float data[12] = {0};
    op_case c;
    op_case_begin(&c, "Attention", 23);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(1, 3, 2, 2));
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(1, 2, 2, 2));
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(1, 2, 2, 2));

    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

/* A quarter turn: (a, b) becomes (-b, a); the rest of the head is copied. */
static void rotary_embedding_turns_pairs_and_copies_the_rest(void **state) {
    (void)state;
    static const float x[] = {1, 2, 3, 4, 5, 6}; /* [1, 1, 1, 6], four of them rotated */
    static const float cosine[] = {0, 0};
    static const float sine[] = {1, 1};
    static const int64_t positions[] = {0};
    static const float halves[] = {-3, -4, 1, 2, 5, 6};
    static const float neighbours[] = {-2, 1, -4, 3, 5, 6};
    for (int64_t interleaved = 0; interleaved < 2; interleaved++) {
        op_case c;
        op_case_begin(&c, "RotaryEmbedding", 23);
        op_case_set_int(&c, "rotary_embedding_dim", 4);
        op_case_set_int(&c, "interleaved", interleaved);
        op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 1, 1, 6));
        op_case_input(&c, TN_DTYPE_F32, cosine, OP_SHAPE(1, 2));
        op_case_input(&c, TN_DTYPE_F32, sine, OP_SHAPE(1, 2));
        op_case_input(&c, TN_DTYPE_I64, positions, OP_SHAPE(1, 1));

        ASSERT_OK(op_case_run(&c, -1, 1));

        assert_floats(op_case_output(&c, 0), interleaved == 1 ? neighbours : halves, 6, 1e-6);
        op_case_end(&c);
    }
}

static void rotary_embedding_of_a_position_outside_the_cache_is_refused(void **state) {
    (void)state;
    static const float data[2] = {0};
    static const int64_t positions[] = {1};
    op_case c;
    op_case_begin(&c, "RotaryEmbedding", 23);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(1, 1, 1, 2));
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(1, 1));
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(1, 1));
    op_case_input(&c, TN_DTYPE_I64, positions, OP_SHAPE(1, 1));

    ASSERT_STATUS(TN_OUT_OF_RANGE, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(attention_with_a_cache_and_causal_order_matches_its_definition),
        T(attention_row_with_everything_masked_gives_zeros),
        T(attention_of_rank_3_without_heads_is_refused),
        T(attention_refuses_groups_that_do_not_divide),
        T(rotary_embedding_turns_pairs_and_copies_the_rest),
        T(rotary_embedding_of_a_position_outside_the_cache_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
