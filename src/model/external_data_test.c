#include "model/external_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

/* A folder with "w.bin" (10000 bytes, byte i = i mod 251), "sub/w.bin", and everything that must
 * not be reached. */
typedef struct fixture {
    char folder[64];
    int folder_fd;
    tn_allocator *root;
    tn_file_map *files;
    tn_external_data external;
} fixture;

enum { FILE_BYTES = 10000 };

static void write_file(int folder_fd, const char *name) {
    uint8_t data[FILE_BYTES];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i % 251);
    const int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, sizeof data), sizeof data);
    assert_int_equal(close(fd), 0);
}

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    (void)strcpy(f->folder, "/tmp/tenure_external_XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    f->folder_fd = open(f->folder, O_PATH | O_DIRECTORY);
    assert_true(f->folder_fd >= 0);
    assert_int_equal(mkdirat(f->folder_fd, "sub", 0700), 0);
    write_file(f->folder_fd, "w.bin");
    write_file(f->folder_fd, "sub/w.bin");
    write_file(f->folder_fd, "two_names");
    assert_int_equal(linkat(f->folder_fd, "two_names", f->folder_fd, "second", 0), 0);
    assert_int_equal(symlinkat("w.bin", f->folder_fd, "link"), 0);
    assert_int_equal(symlinkat("sub", f->folder_fd, "folder_link"), 0);
    assert_int_equal(mkfifoat(f->folder_fd, "pipe", 0600), 0);
    ASSERT_OK(tn_allocator_create_root(NULL, &f->root, NULL));
    f->external = (tn_external_data){.allocator = f->root,
                                     .folder = {f->folder, strlen(f->folder)},
                                     .folder_fd = -1,
                                     .files = &f->files};
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    static const char *const names[] = {"w.bin", "sub/w.bin",   "two_names", "second",
                                        "link",  "folder_link", "pipe"};
    fixture *f = *state;
    tn_external_data_deinit(&f->external);
    while (f->files != NULL) {
        tn_file_map *file = f->files;
        f->files = file->next;
        tn_file_map_destroy(file);
    }
    assert_int_equal(tn_allocator_charged(f->root), 0);
    tn_allocator_release(f->root);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)unlinkat(f->folder_fd, names[i], 0);
    }
    (void)unlinkat(f->folder_fd, "sub", AT_REMOVEDIR);
    (void)close(f->folder_fd);
    (void)rmdir(f->folder);
    free(f);
    return 0;
}

static tn_status find(fixture *f, const char *location, uint64_t offset, uint64_t length,
                      tn_bytes *out, tn_error *err) {
    const tn_external_range range = {.location = {location, strlen(location)},
                                     .offset_bytes = offset,
                                     .length_bytes = length,
                                     .has_length = length != UINT64_MAX};
    bool is_mapped = false;
    const tn_status status = tn_external_data_find(&f->external, &range, out, &is_mapped, err);
    if (status == TN_OK) assert_int_equal(is_mapped, !f->external.copy_file);
    return status;
}

static void external_odd_offset_is_used_in_place(void **state) {
    fixture *f = *state;
    tn_bytes bytes;

    ASSERT_OK(find(f, "w.bin", 4097, 100, &bytes, NULL));

    assert_int_equal(bytes.size_bytes, 100);
    assert_int_equal(bytes.data[0], 4097 % 251);
    assert_int_equal((uintptr_t)bytes.data % 4096, 1);
}

static void external_file_is_mapped_once_under_any_spelling(void **state) {
    fixture *f = *state;
    tn_bytes bytes;

    ASSERT_OK(find(f, "w.bin", 9000, 1000, &bytes, NULL));
    const uint64_t charged = tn_allocator_charged(f->root);
    ASSERT_OK(find(f, "./w.bin", 0, 9000, &bytes, NULL));
    ASSERT_OK(find(f, "w.bin", 10, UINT64_MAX, &bytes, NULL));

    assert_int_equal(bytes.size_bytes, FILE_BYTES - 10);
    assert_int_equal(tn_allocator_charged(f->root), charged);
    assert_null(f->files->next);
    ASSERT_OK(find(f, "sub//w.bin", 0, 1, &bytes, NULL));
    assert_non_null(f->files->next);
}

static void external_range_outside_the_file_is_refused(void **state) {
    static const uint64_t ranges[][2] = {
        {FILE_BYTES, 1},        {FILE_BYTES + 1, UINT64_MAX},
        {0, FILE_BYTES + 1},    {UINT64_C(1) << 62, 4},
        {INT64_MAX, INT64_MAX}, {4, UINT64_MAX - 3}, /* the sum wraps to 1 */
    };
    fixture *f = *state;

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        tn_bytes bytes;
        tn_error err = {0};
        ASSERT_STATUS(TN_INVALID_MODEL, find(f, "w.bin", ranges[i][0], ranges[i][1], &bytes, &err));
        assert_non_null(strstr(err.message, "w.bin"));
    }
}

static void external_range_of_nothing_at_the_end_is_empty(void **state) {
    fixture *f = *state;
    tn_bytes bytes;

    ASSERT_OK(find(f, "w.bin", FILE_BYTES, 0, &bytes, NULL));

    assert_null(bytes.data);
    assert_int_equal(bytes.size_bytes, 0);
}

static void external_names_that_leave_the_folder_are_refused(void **state) {
    static const char *const locations[] = {"../w.bin",    "/etc/passwd", "sub/../w.bin",
                                            "sub/../../x", "..",          ""};
    fixture *f = *state;

    for (size_t i = 0; i < sizeof locations / sizeof locations[0]; i++) {
        tn_bytes bytes;
        tn_error err = {0};
        ASSERT_STATUS(TN_INVALID_MODEL, find(f, locations[i], 0, 1, &bytes, &err));
        assert_non_null(strstr(err.message, "external data"));
    }
    assert_null(f->files);
}

static void external_files_that_are_not_plain_are_refused(void **state) {
    static const char *const locations[] = {
        "link", "folder_link/w.bin", "second", "pipe", "two_names", "sub", "absent", "w.bin/x"};
    fixture *f = *state;

    for (size_t i = 0; i < sizeof locations / sizeof locations[0]; i++) {
        tn_bytes bytes;
        ASSERT_STATUS(TN_IO, find(f, locations[i], 0, 1, &bytes, NULL));
    }
    assert_null(f->files);
    assert_int_equal(tn_allocator_charged(f->root), 0);
}

static void external_links_are_followed_when_allowed(void **state) {
    fixture *f = *state;
    tn_bytes bytes;
    f->external.allow_links = true;

    ASSERT_OK(find(f, "link", 0, FILE_BYTES, &bytes, NULL));
    ASSERT_OK(find(f, "second", 0, FILE_BYTES, &bytes, NULL));
    ASSERT_OK(find(f, "folder_link/w.bin", 0, FILE_BYTES, &bytes, NULL));
    ASSERT_STATUS(TN_INVALID_MODEL, find(f, "../w.bin", 0, 1, &bytes, NULL));
    ASSERT_STATUS(TN_IO, find(f, "pipe", 0, 1, &bytes, NULL));
}

static void external_file_is_copied_when_asked(void **state) {
    fixture *f = *state;
    tn_bytes bytes;
    f->external.copy_file = true;

    ASSERT_OK(find(f, "w.bin", 5, 100, &bytes, NULL));

    assert_int_equal(bytes.data[0], 5);
    assert_false(f->files->is_mapped);
}

static void external_data_without_folder_is_unsupported(void **state) {
    fixture *f = *state;
    tn_bytes bytes;
    f->external.folder = (tn_text){NULL, 0};

    ASSERT_STATUS(TN_UNSUPPORTED, find(f, "w.bin", 0, 1, &bytes, NULL));
}

static void external_past_limit_returns_limit(void **state) {
    fixture *f = *state;
    tn_bytes bytes;
    tn_allocator_set_limit(f->root, 5000);

    ASSERT_STATUS(TN_LIMIT, find(f, "w.bin", 0, 1, &bytes, NULL));

    assert_null(f->files);
    assert_int_equal(tn_allocator_charged(f->root), 0);
}

static void open_beneath_gives_the_same_answer_both_ways(void **state) {
    static const struct {
        const char *location;
        bool opens;
    } cases[] = {
        {"w.bin", true},       {"./w.bin", true},
        {"sub/w.bin", true},   {"sub//w.bin", true},
        {"sub/./w.bin", true}, {"pipe", true},
        {"link", false},       {"folder_link/w.bin", false},
        {"absent", false},     {"w.bin/x", false},
        {"sub/absent", false},
    };
    fixture *f = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int walk = tn_open_beneath(f->folder_fd, cases[i].location, TN_BENEATH_WALK);
        const int kernel = tn_open_beneath(f->folder_fd, cases[i].location, TN_BENEATH_KERNEL);
        assert_int_equal(walk >= 0, cases[i].opens);
        if (kernel != -ENOSYS && kernel != -EPERM) assert_int_equal(kernel >= 0, cases[i].opens);
        if (walk >= 0) assert_int_equal(close(walk), 0);
        if (kernel >= 0) assert_int_equal(close(kernel), 0);
    }
}

static void open_beneath_walk_refuses_long_components(void **state) {
    char location[400];
    fixture *f = *state;
    memset(location, 'a', sizeof location - 1);
    location[sizeof location - 1] = '\0';

    assert_int_equal(tn_open_beneath(f->folder_fd, location, TN_BENEATH_WALK), -ENAMETOOLONG);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        F(external_odd_offset_is_used_in_place),
        F(external_file_is_mapped_once_under_any_spelling),
        F(external_range_outside_the_file_is_refused),
        F(external_range_of_nothing_at_the_end_is_empty),
        F(external_names_that_leave_the_folder_are_refused),
        F(external_files_that_are_not_plain_are_refused),
        F(external_links_are_followed_when_allowed),
        F(external_file_is_copied_when_asked),
        F(external_data_without_folder_is_unsupported),
        F(external_past_limit_returns_limit),
        F(open_beneath_gives_the_same_answer_both_ways),
        F(open_beneath_walk_refuses_long_components),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
