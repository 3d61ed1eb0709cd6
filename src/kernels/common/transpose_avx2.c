/* Eight rows of eight floats: pairs, then quads, then halves change places. */
#include <immintrin.h>

#include "kernels/common/transpose.h"

void tn_transpose_8x8_avx2(const float *from, size_t from_stride, float *to, size_t to_stride) {
    __m256 rows[8];
    __m256 pairs[8];
    __m256 quads[8];
    for (size_t i = 0; i < 8; i++) rows[i] = _mm256_loadu_ps(from + i * from_stride);
    for (size_t i = 0; i < 4; i++) {
        pairs[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
    }
    for (size_t i = 0; i < 2; i++) {
        const __m256 *p = pairs + 4 * i;
        quads[4 * i] = _mm256_shuffle_ps(p[0], p[2], 0x44);
        quads[4 * i + 1] = _mm256_shuffle_ps(p[0], p[2], 0xee);
        quads[4 * i + 2] = _mm256_shuffle_ps(p[1], p[3], 0x44);
        quads[4 * i + 3] = _mm256_shuffle_ps(p[1], p[3], 0xee);
    }
    for (size_t j = 0; j < 4; j++) {
        _mm256_storeu_ps(to + j * to_stride, _mm256_permute2f128_ps(quads[j], quads[j + 4], 0x20));
        _mm256_storeu_ps(to + (j + 4) * to_stride,
                         _mm256_permute2f128_ps(quads[j], quads[j + 4], 0x31));
    }
}
