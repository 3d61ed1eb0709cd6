/* Building and printing of programs. What bodies compute is in kernels/elementwise. */
#include "plan/program.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct body_info {
    const char *name;
    uint32_t param_count;
} body_info;

#define BODY_INFO(name, params, weight) [TN_BODY_##name] = {#name, params},
static const body_info bodies[TN_BODY_STEP_END] = {
    TN_UNARY_BODY_LIST(BODY_INFO) TN_BINARY_BODY_LIST(BODY_INFO)
        TN_LOOP_BODY_LIST(BODY_INFO)[TN_BODY_LOAD] = {"LOAD", 0},
    [TN_BODY_SAVE] = {"SAVE", 0}};

const char *tn_body_name(uint32_t body) {
    const bool is_known = body < TN_BODY_STEP_END && bodies[body].name != NULL;
    return is_known ? bodies[body].name : "NONE";
}

uint32_t tn_body_param_count(uint32_t body) {
    return body < TN_BODY_STEP_END ? bodies[body].param_count : 0;
}

bool tn_program_append(tn_program *program, const tn_program_step *step) {
    if (program->step_count == TN_PROGRAM_MAX_STEPS) return false;
    program->steps[program->step_count++] = *step;
    return true;
}

typedef struct printer {
    char *text;
    size_t capacity;
    size_t used;
} printer;

#define PRINT(p, ...)                                                                              \
    do {                                                                                           \
        const int wrote = snprintf((p)->text + (p)->used, (p)->capacity - (p)->used, __VA_ARGS__); \
        const size_t room = (p)->capacity - (p)->used - 1;                                         \
        if (wrote > 0) (p)->used += (size_t)wrote < room ? (size_t)wrote : room;                   \
    } while (0)

static void print_body(printer *p, uint32_t body) {
    for (const char *c = tn_body_name(body); *c != '\0'; c++) PRINT(p, "%c", tolower(*c));
}

static void print_step(printer *p, const tn_program_step *step) {
    const uint32_t param_count = tn_body_param_count(step->body);
    print_body(p, step->body);
    if (step->is_swapped) PRINT(p, " from");
    if (step->body == TN_BODY_SAVE) PRINT(p, " $%u", step->index);
    if (step->source == TN_SOURCE_IMMEDIATE) PRINT(p, " %g", (double)step->params[0]);
    if (step->source == TN_SOURCE_INPUT) PRINT(p, " %%%u", step->index);
    if (step->source == TN_SOURCE_SAVED) PRINT(p, " $%u", step->index);
    for (uint32_t i = 0; i < param_count; i++) {
        PRINT(p, "%s%g", i == 0 ? " [" : ", ", (double)step->params[i]);
    }
    if (param_count > 0) PRINT(p, "]");
}

const char *tn_program_print(const tn_program *program, char *text, size_t capacity_bytes) {
    printer p = {.text = text, .capacity = capacity_bytes};
    text[0] = '\0';
    for (uint32_t i = 0; i < program->step_count; i++) {
        if (i > 0) PRINT(&p, ", ");
        print_step(&p, &program->steps[i]);
    }
    return text;
}
