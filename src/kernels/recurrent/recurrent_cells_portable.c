/* Recurrent cells compiled for any processor. */
#define RECURRENT_CELLS tn_recurrent_cells_portable

#include "kernels/recurrent/recurrent_cells_template.h"
