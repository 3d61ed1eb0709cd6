/* Recurrent cells compiled for AVX512. */
#define RECURRENT_CELLS tn_recurrent_cells_avx512

#include "kernels/recurrent/recurrent_cells_template.h"
