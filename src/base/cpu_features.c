/* Feature bits from the compiler's run-time support, reduced by TENURE_CPU. */
#include "base/cpu_features.h"

#include <stdlib.h>
#include <string.h>

static tn_cpu_features detect_hardware(void) {
    tn_cpu_features features = TN_CPU_PORTABLE;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) features |= TN_CPU_AVX2;
    if ((features & TN_CPU_AVX2) != 0 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        features |= TN_CPU_AVX512;
    }
#elif defined(__aarch64__)
    features |= TN_CPU_NEON;
#endif
    return features;
}

tn_cpu_features tn_cpu_features_detect(void) {
    const tn_cpu_features hardware = detect_hardware();
    const char *wanted = getenv("TENURE_CPU");
    if (wanted == NULL) return hardware;
    if (strcmp(wanted, "portable") == 0) return TN_CPU_PORTABLE;
    if (strcmp(wanted, "avx2") == 0) return hardware & TN_CPU_AVX2;
    return hardware;
}
