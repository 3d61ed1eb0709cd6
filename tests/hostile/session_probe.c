/* Takes model files through load, session, plan and runs for tests that are written in Python.
 *
 *   session_probe FILE...   per file one line: stage, status, elapsed us, growth of peak RSS in
 *                           KiB, bytes charged after everything is released, fault, node, message
 *
 * Exit status 0 unless the tool itself is at fault. */
#include <inttypes.h>
#include <time.h>

#include "session_drive.h"

#define LIMIT_BYTES ((uint64_t)4 << 20)

static long peak_kib(void) {
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    if (file == NULL) return -1;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) value = strtol(line + 6, NULL, 10);
    }
    (void)fclose(file);
    return value;
}

static int64_t now_us(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static unsigned char *read_file(const char *path, size_t *out_bytes) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) exit(1);
    const long size_bytes = ftell(file);
    unsigned char *data = malloc((size_t)size_bytes + 1);
    if (size_bytes < 0 || data == NULL || fseek(file, 0, SEEK_SET) != 0) exit(1);
    *out_bytes = fread(data, 1, (size_t)size_bytes, file);
    (void)fclose(file);
    return data;
}

static void check(const char *path) {
    size_t size_bytes = 0;
    drive_result result;
    unsigned char *data = read_file(path, &size_bytes);
    const long before_kib = peak_kib();
    const int64_t start_us = now_us();
    drive_model(data, size_bytes, LIMIT_BYTES, &result);
    printf("%s\t%s\t%" PRId64 "\t%ld\t%" PRIu64 "\t%s\t%s\t%s\n", result.stage,
           tn_status_name(result.status), now_us() - start_us, peak_kib() - before_kib,
           result.left_bytes, result.fault == NULL ? "" : result.fault, result.err.node,
           result.err.message);
    (void)fflush(stdout);
    free(data);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) check(argv[i]);
    return argc > 1 ? 0 : 2;
}
