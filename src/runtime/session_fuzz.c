/* Feeds bytes to the library as a model and takes it as far as it goes: load, session, plan, runs
 * within a small limit. The checks are those of tests/session_drive.h. */
#include "session_drive.h"

/* Small, so that no kernel works long. */
#define LIMIT_BYTES ((uint64_t)4 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    drive_result result;
    drive_model(data, size, LIMIT_BYTES, &result);
    if (result.fault != NULL) {
        (void)fprintf(stderr, "session_fuzz: %s: %s (%s: %s)\n", result.stage, result.fault,
                      result.err.node, result.err.message);
        abort();
    }
    return 0;
}
