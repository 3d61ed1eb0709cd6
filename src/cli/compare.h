/* Compares a result with what was expected, as NumPy's assert_allclose does. */
#ifndef TN_CLI_COMPARE_H
#define TN_CLI_COMPARE_H

#include <stdbool.h>
#include <tenure/tenure.h>

/* True when type, shape and contents agree: |got - want| <= atol + rtol * |want|, NaN equal to NaN,
 * strings exact. Else false, with one line in `why` [why_bytes]. */
bool cli_compare(const tn_value *got, const tn_value *want, double rtol, double atol, char *why,
                 size_t why_bytes);

/* Element `index` as a number; strings give NaN. */
double cli_element(const tn_value *value, size_t index);

#endif
