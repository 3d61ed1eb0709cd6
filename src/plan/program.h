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
#include <stdint.h>

/* X(NAME, parameters): y = f(x). Parameters are floats, in the order of the comment. */
#define TN_UNARY_BODY_LIST(X)                 \
    X(NEG, 0)                                 \
    X(ABS, 0)                                 \
    X(SQRT, 0)                                \
    X(RECIPROCAL, 0)                          \
    X(FLOOR, 0)                               \
    X(CEIL, 0)                                \
    X(ROUND, 0)                               \
    X(SIGN, 0)                                \
    X(EXP, 0)                                 \
    X(LOG, 0)                                 \
    X(ERF, 0)                                 \
    X(SIN, 0)                                 \
    X(COS, 0)                                 \
    X(TAN, 0)                                 \
    X(ASIN, 0)                                \
    X(ACOS, 0)                                \
    X(ATAN, 0)                                \
    X(SINH, 0)                                \
    X(COSH, 0)                                \
    X(TANH, 0)                                \
    X(ASINH, 0)                               \
    X(ACOSH, 0)                               \
    X(ATANH, 0)                               \
    X(RELU, 0)                                \
    X(SIGMOID, 0)                             \
    X(SOFTPLUS, 0)                            \
    X(SOFTSIGN, 0)                            \
    X(HARD_SWISH, 0)                          \
    X(MISH, 0)                                \
    X(GELU, 0) /* by erf */                   \
    X(GELU_TANH, 0)                           \
    X(CLIP, 2)             /* low, high */    \
    X(LEAKY_RELU, 1)       /* alpha */        \
    X(ELU, 1)              /* alpha */        \
    X(SELU, 2)             /* alpha, gamma */ \
    X(HARD_SIGMOID, 2)     /* alpha, beta */  \
    X(THRESHOLDED_RELU, 1) /* alpha */        \
    X(CELU, 1)             /* alpha */        \
    X(SWISH, 1)            /* alpha */        \
    X(SHRINK, 2)           /* lambd, bias */  \
    X(SCALE, 1)            /* factor: x * factor, the end of Mean */

/* X(NAME): y = f(a, b). */
#define TN_BINARY_BODY_LIST(X) \
    X(ADD)                     \
    X(SUB)                     \
    X(MUL)                     \
    X(DIV)                     \
    X(POW)                     \
    X(MAX)                     \
    X(MIN)                     \
    X(FMOD)                    \
    X(PRELU) /* x, slope */

/* X(NAME): elementwise too, but not from f32 to f32: never a step of a program. */
#define TN_LOOP_BODY_LIST(X)            \
    X(NOT)                              \
    X(AND)                              \
    X(OR)                               \
    X(XOR)                              \
    X(BITWISE_NOT)                      \
    X(BITWISE_AND)                      \
    X(BITWISE_OR)                       \
    X(BITWISE_XOR)                      \
    X(SHIFT_LEFT)                       \
    X(SHIFT_RIGHT)                      \
    X(EQUAL)                            \
    X(LESS)                             \
    X(LESS_OR_EQUAL)                    \
    X(GREATER)                          \
    X(GREATER_OR_EQUAL)                 \
    X(MODULO) /* sign of the divisor */ \
    X(IS_NAN)                           \
    X(IS_INF)                           \
    X(WHERE)

typedef enum tn_body {
    TN_BODY_NONE = 0,
#define TN_BODY_ENUM(name, ...) TN_BODY_##name,
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
