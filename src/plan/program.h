/* Elementwise programs: what a chain of elementwise nodes computes, as data.
 *
 * A body is an elementwise f32 function, numbered here and defined once per instruction set in
 * kernels/elementwise. It is used as a kernel of its own, as a step of a program, and as a step of
 * an epilogue. A program is an accumulator machine: the accumulator holds a run of elements, each
 * step changes it, alone or with one operand (an immediate, an input broadcast over the output, or
 * an accumulator saved earlier). Results are equal to the bit however a body is used.
 *
 * Programs are structural: they know no sizes. Binding one to sized facts (kernels/elementwise/
 * program_run.h) says how each operand lies over the output. */
#ifndef TN_PLAN_PROGRAM_H
#define TN_PLAN_PROGRAM_H

#include <stddef.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(NAME, params, weight): y = f(x). Params are floats, in the order of the comment. Weights: LIGHT
 * is a few instructions per vector, HEAVY a polynomial, LANES a call per element. */
#define TN_UNARY_BODY_LIST(X)                        \
    X(NEG, 0, LIGHT)                                 \
    X(ABS, 0, LIGHT)                                 \
    X(SQRT, 0, LIGHT)                                \
    X(RECIPROCAL, 0, LIGHT)                          \
    X(FLOOR, 0, LIGHT)                               \
    X(CEIL, 0, LIGHT)                                \
    X(ROUND, 0, LIGHT)                               \
    X(SIGN, 0, LIGHT)                                \
    X(EXP, 0, HEAVY)                                 \
    X(LOG, 0, HEAVY)                                 \
    X(ERF, 0, HEAVY)                                 \
    X(SIN, 0, HEAVY)                                 \
    X(COS, 0, HEAVY)                                 \
    X(TAN, 0, LANES)                                 \
    X(ASIN, 0, LANES)                                \
    X(ACOS, 0, LANES)                                \
    X(ATAN, 0, LANES)                                \
    X(SINH, 0, LANES)                                \
    X(COSH, 0, LANES)                                \
    X(TANH, 0, HEAVY)                                \
    X(ASINH, 0, LANES)                               \
    X(ACOSH, 0, LANES)                               \
    X(ATANH, 0, LANES)                               \
    X(RELU, 0, LIGHT)                                \
    X(SIGMOID, 0, HEAVY)                             \
    X(SOFTPLUS, 0, HEAVY)                            \
    X(SOFTSIGN, 0, LIGHT)                            \
    X(HARD_SWISH, 0, LIGHT)                          \
    X(MISH, 0, HEAVY)                                \
    X(GELU, 0, HEAVY) /* by erf */                   \
    X(GELU_TANH, 0, HEAVY)                           \
    X(CLIP, 2, LIGHT)             /* low, high */    \
    X(LEAKY_RELU, 1, LIGHT)       /* alpha */        \
    X(ELU, 1, HEAVY)              /* alpha */        \
    X(SELU, 2, HEAVY)             /* alpha, gamma */ \
    X(HARD_SIGMOID, 2, LIGHT)     /* alpha, beta */  \
    X(THRESHOLDED_RELU, 1, LIGHT) /* alpha */        \
    X(CELU, 1, HEAVY)             /* alpha */        \
    X(SWISH, 1, HEAVY)            /* alpha */        \
    X(SHRINK, 2, LIGHT)           /* lambd, bias */

/* X(NAME, params, weight): y = f(a, b). */
#define TN_BINARY_BODY_LIST(X)                    \
    X(ADD, 0, LIGHT)                              \
    X(SUB, 0, LIGHT)                              \
    X(MUL, 0, LIGHT)                              \
    X(DIV, 0, LIGHT)                              \
    X(POW, 0, LANES)                              \
    X(MAX, 0, LIGHT)                              \
    X(MIN, 0, LIGHT)                              \
    X(FMOD, 0, LANES)  /* sign of the dividend */ \
    X(PRELU, 0, LIGHT) /* x, slope */

/* X(NAME, params, weight): elementwise too, but not from f32 to f32: never a step of a program. */
#define TN_LOOP_BODY_LIST(X)                      \
    X(NOT, 0, LIGHT)                              \
    X(AND, 0, LIGHT)                              \
    X(OR, 0, LIGHT)                               \
    X(XOR, 0, LIGHT)                              \
    X(BITWISE_NOT, 0, LIGHT)                      \
    X(BITWISE_AND, 0, LIGHT)                      \
    X(BITWISE_OR, 0, LIGHT)                       \
    X(BITWISE_XOR, 0, LIGHT)                      \
    X(SHIFT_LEFT, 0, LIGHT)                       \
    X(SHIFT_RIGHT, 0, LIGHT)                      \
    X(EQUAL, 0, LIGHT)                            \
    X(LESS, 0, LIGHT)                             \
    X(LESS_OR_EQUAL, 0, LIGHT)                    \
    X(GREATER, 0, LIGHT)                          \
    X(GREATER_OR_EQUAL, 0, LIGHT)                 \
    X(MODULO, 0, LIGHT) /* sign of the divisor */ \
    X(IS_NAN, 0, LIGHT)                           \
    X(IS_INF, 0, LIGHT)                           \
    X(WHERE, 0, LIGHT)

typedef enum tn_body {
    TN_BODY_NONE = 0,
#define TN_BODY_ENUM(name, params, weight) TN_BODY_##name,
    TN_UNARY_BODY_LIST(TN_BODY_ENUM) TN_BODY_UNARY_END,
    TN_BODY_BINARY_BEGIN = TN_BODY_UNARY_END, /* one number is wasted so that the lists can grow */
    TN_BINARY_BODY_LIST(TN_BODY_ENUM) TN_BODY_PROGRAM_END,
    TN_LOOP_BODY_LIST(TN_BODY_ENUM) TN_BODY_COUNT,
    /* Steps of programs that no operator is made of. */
    TN_BODY_LOAD = TN_BODY_COUNT, /* the accumulator becomes the operand */
    TN_BODY_SAVE,                 /* the accumulator is kept as saved tile `index` */
    TN_BODY_STEP_END
} tn_body;

#undef TN_BODY_ENUM

#define TN_PROGRAM_MAX_STEPS 24
#define TN_PROGRAM_MAX_OPERANDS 8
#define TN_PROGRAM_MAX_SAVED 4
#define TN_BODY_MAX_PARAMS 2

/* Where a step's operand comes from. */
typedef enum tn_program_source {
    TN_SOURCE_NONE,      /* unary steps */
    TN_SOURCE_IMMEDIATE, /* params[0] */
    TN_SOURCE_INPUT,     /* operand `index` */
    TN_SOURCE_SAVED      /* saved tile `index` */
} tn_program_source;

typedef struct tn_program_step {
    uint16_t body;   /* tn_body */
    uint8_t source;  /* tn_program_source */
    uint8_t index;   /* of the operand or saved tile; SAVE: where to */
    bool is_swapped; /* binary: f(operand, accumulator) */
    float params[TN_BODY_MAX_PARAMS];
} tn_program_step;

/* Immutable once built. A program of its own starts with LOAD; an epilogue starts with the
 * accumulator that its host computed. Operand i is input `first + i` of the node, with `first` 0
 * for fused nodes and tn_ir_node.first_epilogue_input for epilogues. */
struct tn_program {
    uint8_t step_count;
    uint8_t operand_count;
    uint8_t saved_count;
    tn_program_step steps[TN_PROGRAM_MAX_STEPS];
};
typedef struct tn_program tn_program;

/* One node as steps: f(input 0), or f(input 0, input 1) and so on through its first `input_count`
 * inputs, f(.., input i) each. */
struct tn_body_use {
    uint16_t body;
    uint32_t input_count;
    float params[TN_BODY_MAX_PARAMS];
};
typedef struct tn_body_use tn_body_use;

static inline bool tn_body_is_unary(uint32_t body) {
    return body > TN_BODY_NONE && body < TN_BODY_UNARY_END;
}

static inline bool tn_body_is_binary(uint32_t body) {
    return body > TN_BODY_BINARY_BEGIN && body < TN_BODY_PROGRAM_END;
}

/* Lower-case name of a body for printed plans: "hard_swish"; never NULL, static. */
const char *tn_body_name(uint32_t body);

/* Number of params that a unary body reads; 0 for others. */
uint32_t tn_body_param_count(uint32_t body);

/* Appends a step; returns false, changing nothing, when the program is full. */
bool tn_program_append(tn_program *program, const tn_program_step *step);

/* "load %0, add 3, clip [0, 6], mul %0": for printed plans. Returns `text`.
 * Units: `capacity_bytes` includes the NUL. */
const char *tn_program_print(const tn_program *program, char *text, size_t capacity_bytes);

#endif
