/* Portable convolution kernels: depthwise in plain layout; blocked layouts are not used without
 * wide vectors. */
#include <string.h>

typedef float conv_vec __attribute__((vector_size(16)));

static inline conv_vec conv_load(const float *p) {
    conv_vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void conv_store(float *p, conv_vec v) {
    memcpy(p, &v, sizeof v);
}

#define CONV_VEC conv_vec
#define CONV_LANES 4
#define CONV_LOAD(p) conv_load(p)
#define CONV_STORE(p, v) conv_store((p), (v))
#define CONV_SET1(x) ((conv_vec){(x), (x), (x), (x)})
#define CONV_FMA(a, b, c) ((a) * (b) + (c))

#include "kernels/conv/conv_rows_template.h"

const tn_conv_isa tn_conv_portable = {
    .depthwise_name = "depthwise rows", .plain_rows = conv_plain_rows, .plain_lanes = CONV_LANES};
