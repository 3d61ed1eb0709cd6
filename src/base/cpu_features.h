/* What this processor can do. Read once by the environment and passed down as a value; there is no
 * global. */
#ifndef TN_BASE_CPU_FEATURES_H
#define TN_BASE_CPU_FEATURES_H

#include <stdint.h>

enum {
    TN_CPU_PORTABLE = 0,
    TN_CPU_AVX2 = 1u << 0,   /* AVX2, FMA and F16C together */
    TN_CPU_AVX512 = 1u << 1, /* F, BW, DQ, VL */
    TN_CPU_NEON = 1u << 2
};
typedef uint32_t tn_cpu_features;

/* Asks the processor. TENURE_CPU=portable|avx2|avx512, when set, only ever takes features away, so
 * that tests can run every variant. Threads: safe. */
tn_cpu_features tn_cpu_features_detect(void);

#endif
