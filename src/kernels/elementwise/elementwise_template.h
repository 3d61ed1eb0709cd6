/* Loops and machine steps of one instruction set. A .c file includes its vector_*.h, then this, and
 * ends with TN_DEFINE_ISA(symbol, "name").
 *
 * The machine is threaded code: a step is a function that takes the accumulator, eight vectors, in
 * argument registers, changes it and jumps to the next step. So the accumulator stays in registers
 * between steps and a step costs one indirect jump per eight vectors. The program's last step
 * stores and returns. A compiler that does not turn the last call into a jump nests at most
 * TN_PROGRAM_MAX_STEPS calls. */
#ifndef TN_KERNELS_ELEMENTWISE_TEMPLATE_H
#define TN_KERNELS_ELEMENTWISE_TEMPLATE_H

#include "kernels/elementwise/bodies_template.h"
#include "kernels/elementwise/elementwise_isa.h"

#define VECTOR_BYTES (TN_VECTOR_LEN * sizeof(float))

/* An input of a loop: a stream, or one value in all elements of `splat`. */
typedef struct cursor {
    const float *at;
    size_t advance;
    float splat[TN_VECTOR_LEN];
} cursor;

static inline void cursor_init(cursor *c, const void *from, size_t step) {
    c->at = from;
    c->advance = step == 0 ? 0 : TN_VECTOR_LEN;
    if (step != 0) return;
    vf_store(c->splat, vf_set(c->at[0]));
    c->at = c->splat;
}

/* The last `count` < TN_VECTOR_LEN elements of a stream, then zeros. */
static inline vf cursor_tail(const cursor *c, size_t count) {
    float lanes[TN_VECTOR_LEN] = {0};
    memcpy(lanes, c->at, (c->advance == 0 ? TN_VECTOR_LEN : count) * sizeof(float));
    return vf_load(lanes);
}

static inline void store_tail(float *to, vf value, size_t count) {
    float lanes[TN_VECTOR_LEN];
    vf_store(lanes, value);
    memcpy(to, lanes, count * sizeof(float));
}

static inline bool streams(const tn_loop_args *args) {
    return args->nontemporal && (uintptr_t)args->out % VECTOR_BYTES == 0;
}

#define DEFINE_UNARY_LOOP(name, params_, weight)                                    \
    static void loop_##name(const tn_loop_args *args) {                             \
        const float *p = args->params;                                              \
        float *out = args->out;                                                     \
        cursor x;                                                                   \
        cursor_init(&x, args->in[0], args->step[0]);                                \
        size_t left = args->len;                                                    \
        if (streams(args)) {                                                        \
            for (; left >= TN_VECTOR_LEN; left -= TN_VECTOR_LEN) {                  \
                vf_stream(out, body_##name(vf_load(x.at), p));                      \
                x.at += x.advance;                                                  \
                out += TN_VECTOR_LEN;                                               \
            }                                                                       \
            vf_stream_end();                                                        \
        }                                                                           \
        for (; left >= TN_VECTOR_LEN; left -= TN_VECTOR_LEN) {                      \
            vf_store(out, body_##name(vf_load(x.at), p));                           \
            x.at += x.advance;                                                      \
            out += TN_VECTOR_LEN;                                                   \
        }                                                                           \
        if (left > 0) store_tail(out, body_##name(cursor_tail(&x, left), p), left); \
    }
TN_UNARY_BODY_LIST(DEFINE_UNARY_LOOP)

#define DEFINE_BINARY_LOOP(name, params_, weight)                                             \
    static void loop_##name(const tn_loop_args *args) {                                       \
        float *out = args->out;                                                               \
        cursor a;                                                                             \
        cursor b;                                                                             \
        cursor_init(&a, args->in[0], args->step[0]);                                          \
        cursor_init(&b, args->in[1], args->step[1]);                                          \
        size_t left = args->len;                                                              \
        if (streams(args)) {                                                                  \
            for (; left >= TN_VECTOR_LEN; left -= TN_VECTOR_LEN) {                            \
                vf_stream(out, body_##name(vf_load(a.at), vf_load(b.at)));                    \
                a.at += a.advance;                                                            \
                b.at += b.advance;                                                            \
                out += TN_VECTOR_LEN;                                                         \
            }                                                                                 \
            vf_stream_end();                                                                  \
        }                                                                                     \
        for (; left >= TN_VECTOR_LEN; left -= TN_VECTOR_LEN) {                                \
            vf_store(out, body_##name(vf_load(a.at), vf_load(b.at)));                         \
            a.at += a.advance;                                                                \
            b.at += b.advance;                                                                \
            out += TN_VECTOR_LEN;                                                             \
        }                                                                                     \
        if (left > 0) {                                                                       \
            store_tail(out, body_##name(cursor_tail(&a, left), cursor_tail(&b, left)), left); \
        }                                                                                     \
    }
TN_BINARY_BODY_LIST(DEFINE_BINARY_LOOP)

typedef void (*step_type)(const tn_bound_step *s, tn_machine *m, vf a0, vf a1, vf a2, vf a3, vf a4,
                          vf a5, vf a6, vf a7);

#define STEP(name)                                                                             \
    static void step_##name(const tn_bound_step *s, tn_machine *m, vf a0, vf a1, vf a2, vf a3, \
                            vf a4, vf a5, vf a6, vf a7)
#define NEXT_STEP ((step_type)s[1].fn)(s + 1, m, a0, a1, a2, a3, a4, a5, a6, a7)
#define FOR_EACH_VECTOR(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

/* Bodies of a few instructions work on the registers; others go through memory, vector by vector,
 * which costs little beside them and keeps the code small. */
#define DEFINE_STEP_LIGHT(name)     \
    STEP(name) {                    \
        const float *p = s->params; \
        a0 = body_##name(a0, p);    \
        a1 = body_##name(a1, p);    \
        a2 = body_##name(a2, p);    \
        a3 = body_##name(a3, p);    \
        a4 = body_##name(a4, p);    \
        a5 = body_##name(a5, p);    \
        a6 = body_##name(a6, p);    \
        a7 = body_##name(a7, p);    \
        NEXT_STEP;                  \
    }
#define DEFINE_STEP_HEAVY(name)                                                         \
    STEP(name) {                                                                        \
        vf a[TN_MACHINE_VECTORS] = {a0, a1, a2, a3, a4, a5, a6, a7};                    \
        map_##name(a, s->params);                                                       \
        ((step_type)s[1].fn)(s + 1, m, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]); \
    }
#define DEFINE_STEP_LANES(name) DEFINE_STEP_HEAVY(name)
#define DEFINE_MAP(name)                                                          \
    static __attribute__((noinline)) void map_##name(vf *a, const float *p) {     \
        for (int i = 0; i < TN_MACHINE_VECTORS; i++) a[i] = body_##name(a[i], p); \
    }
#define DEFINE_MAP_LIGHT(name)
#define DEFINE_MAP_HEAVY(name) DEFINE_MAP(name)
#define DEFINE_MAP_LANES(name) DEFINE_MAP(name)
#define DEFINE_UNARY_STEP(name, params_, weight) \
    DEFINE_MAP_##weight(name) DEFINE_STEP_##weight(name)
TN_UNARY_BODY_LIST(DEFINE_UNARY_STEP)

#define DEFINE_BINARY_STEPS(name, params_, weight)    \
    STEP(name##_slot) {                               \
        const float *at = m->slots[s->slot].at;       \
        const size_t step = m->slots[s->slot].step;   \
        a0 = body_##name(a0, vf_load(at));            \
        a1 = body_##name(a1, vf_load(at + step));     \
        a2 = body_##name(a2, vf_load(at + 2 * step)); \
        a3 = body_##name(a3, vf_load(at + 3 * step)); \
        a4 = body_##name(a4, vf_load(at + 4 * step)); \
        a5 = body_##name(a5, vf_load(at + 5 * step)); \
        a6 = body_##name(a6, vf_load(at + 6 * step)); \
        a7 = body_##name(a7, vf_load(at + 7 * step)); \
        NEXT_STEP;                                    \
    }                                                 \
    STEP(name##_slot_swapped) {                       \
        const float *at = m->slots[s->slot].at;       \
        const size_t step = m->slots[s->slot].step;   \
        a0 = body_##name(vf_load(at), a0);            \
        a1 = body_##name(vf_load(at + step), a1);     \
        a2 = body_##name(vf_load(at + 2 * step), a2); \
        a3 = body_##name(vf_load(at + 3 * step), a3); \
        a4 = body_##name(vf_load(at + 4 * step), a4); \
        a5 = body_##name(vf_load(at + 5 * step), a5); \
        a6 = body_##name(vf_load(at + 6 * step), a6); \
        a7 = body_##name(vf_load(at + 7 * step), a7); \
        NEXT_STEP;                                    \
    }                                                 \
    STEP(name##_immediate) {                          \
        const vf b = vf_set(s->params[0]);            \
        a0 = body_##name(a0, b);                      \
        a1 = body_##name(a1, b);                      \
        a2 = body_##name(a2, b);                      \
        a3 = body_##name(a3, b);                      \
        a4 = body_##name(a4, b);                      \
        a5 = body_##name(a5, b);                      \
        a6 = body_##name(a6, b);                      \
        a7 = body_##name(a7, b);                      \
        NEXT_STEP;                                    \
    }                                                 \
    STEP(name##_immediate_swapped) {                  \
        const vf b = vf_set(s->params[0]);            \
        a0 = body_##name(b, a0);                      \
        a1 = body_##name(b, a1);                      \
        a2 = body_##name(b, a2);                      \
        a3 = body_##name(b, a3);                      \
        a4 = body_##name(b, a4);                      \
        a5 = body_##name(b, a5);                      \
        a6 = body_##name(b, a6);                      \
        a7 = body_##name(b, a7);                      \
        NEXT_STEP;                                    \
    }
TN_BINARY_BODY_LIST(DEFINE_BINARY_STEPS)

STEP(load_slot) {
    const float *at = m->slots[s->slot].at;
    const size_t step = m->slots[s->slot].step;
#define LOAD_VECTOR(i) a##i = vf_load(at + (i)*step);
    FOR_EACH_VECTOR(LOAD_VECTOR)
    NEXT_STEP;
}

STEP(load_immediate) {
    const vf b = vf_set(s->params[0]);
#define SET_VECTOR(i) a##i = b;
    FOR_EACH_VECTOR(SET_VECTOR)
    NEXT_STEP;
}

STEP(save) {
    float *to = m->saved[s->slot];
#define SAVE_VECTOR(i) vf_store(to + (i)*TN_VECTOR_LEN, a##i);
    FOR_EACH_VECTOR(SAVE_VECTOR)
    NEXT_STEP;
}

STEP(store) {
    (void)s;
    float *to = m->out;
    FOR_EACH_VECTOR(SAVE_VECTOR)
}

STEP(store_nontemporal) {
    (void)s;
    float *to = m->out;
#define STREAM_VECTOR(i) vf_stream(to + (i)*TN_VECTOR_LEN, a##i);
    FOR_EACH_VECTOR(STREAM_VECTOR)
}

static void run_chunks(const tn_bound_step *steps, tn_machine *m, size_t count) {
    const step_type start = (step_type)steps->fn;
    vf a[TN_MACHINE_VECTORS];
    for (int i = 0; i < TN_MACHINE_VECTORS; i++) a[i] = vf_set(0.0F);
    for (size_t c = 0; c < count; c++) {
        if (m->in != NULL) {
            for (int i = 0; i < TN_MACHINE_VECTORS; i++) a[i] = vf_load(m->in + i * TN_VECTOR_LEN);
            m->in += TN_MACHINE_VECTORS * TN_VECTOR_LEN;
        }
        start(steps, m, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
        m->out += TN_MACHINE_VECTORS * TN_VECTOR_LEN;
        for (size_t i = 0; i < m->slot_count; i++) m->slots[i].at += m->slots[i].advance;
    }
}

#define LOOP_ENTRY(name, params_, weight) [TN_BODY_##name] = loop_##name,
#define UNARY_STEP_ENTRY(name, params_, weight) \
    [TN_BODY_##name] = {[TN_STEP_SLOT] = (tn_step_fn)step_##name},
#define BINARY_STEP_ENTRY(name, params_, weight)                                  \
    [TN_BODY_##                                                                   \
        name] = {[TN_STEP_SLOT] = (tn_step_fn)step_##name##_slot,                 \
                 [TN_STEP_IMMEDIATE] = (tn_step_fn)step_##name##_immediate,       \
                 [TN_STEP_SLOT_SWAPPED] = (tn_step_fn)step_##name##_slot_swapped, \
                 [TN_STEP_IMMEDIATE_SWAPPED] = (tn_step_fn)step_##name##_immediate_swapped},
#define TN_DEFINE_ISA(symbol, text)                                                \
    const tn_program_isa symbol = {                                                \
        .name = text,                                                              \
        .chunk = TN_MACHINE_VECTORS * TN_VECTOR_LEN,                               \
        .loops = {TN_UNARY_BODY_LIST(LOOP_ENTRY) TN_BINARY_BODY_LIST(LOOP_ENTRY)}, \
        .steps = {TN_UNARY_BODY_LIST(UNARY_STEP_ENTRY)                             \
                      TN_BINARY_BODY_LIST(BINARY_STEP_ENTRY)[TN_BODY_LOAD] =       \
                          {[TN_STEP_SLOT] = (tn_step_fn)step_load_slot,            \
                           [TN_STEP_IMMEDIATE] = (tn_step_fn)step_load_immediate}, \
                  [TN_BODY_SAVE] = {[TN_STEP_SLOT] = (tn_step_fn)step_save}},      \
        .store = (tn_step_fn)step_store,                                           \
        .store_nontemporal = (tn_step_fn)step_store_nontemporal,                   \
        .run_chunks = run_chunks,                                                  \
        .end_nontemporal = vf_stream_end,                                          \
    }

#endif
