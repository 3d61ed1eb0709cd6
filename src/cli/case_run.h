/* Runs one case folder of the ONNX backend data: model.onnx and test_data_set_N. */
#ifndef TN_CLI_CASE_RUN_H
#define TN_CLI_CASE_RUN_H

#include <stdbool.h>
#include <tenure/tenure.h>

typedef struct cli_case_options {
    double rtol, atol;
    const char *model_path; /* NULL: model.onnx in the folder */
} cli_case_options;

/* True when every data set of `folder` passes; else false and one line in `why` [why_bytes]. */
bool cli_run_case(tn_environment *environment, const char *folder, const cli_case_options *options,
                  char *why, size_t why_bytes);

#endif
