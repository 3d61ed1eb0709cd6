/* Recurrent cells compiled for AVX2. */
#define RECURRENT_CELLS tn_recurrent_cells_avx2

#include "kernels/recurrent/recurrent_cells_template.h"
