/* Inputs of a run from the command line: shapes, dimensions, files and generated contents. */
#ifndef TN_CLI_FEEDS_H
#define TN_CLI_FEEDS_H

#include "cli/cli.h"

/* Values for a session's inputs. Ownership: deinit releases them; names are the session's. */
typedef struct cli_feeds {
    tn_feed *feeds; /* [count] */
    size_t count;
    uint64_t size_bytes; /* payload of all */
} cli_feeds;

/* Makes values for all inputs that need one, from --input, --shape and --dim of `args` and the
 * items of `shape_set`, which win over them ("x=1x8;batch=4", NULL: none).
 * Ownership: values are charged to `allocator`; release all with cli_feeds_deinit.
 * Errors:    TN_INVALID_ARGUMENT naming the option, TN_IO, TN_UNSUPPORTED, TN_OUT_OF_MEMORY. */
tn_status cli_feeds_create(tn_session *session, tn_allocator *allocator, const cli_args *args,
                           const char *shape_set, cli_feeds *out, tn_error *err);
void cli_feeds_deinit(cli_feeds *feeds);

/* The shape that `args` and `shape_set` give to input `info`: dimensions left open become 1. */
tn_status cli_input_shape(tn_session *session, const tn_value_info *info, const cli_args *args,
                          const char *shape_set, tn_shape *out, tn_error *err);

/* Says which --input, --shape or --dim names nothing in the model. */
tn_status cli_check_names(tn_session *session, const cli_args *args, tn_error *err);

/* Reads "1x3x224x224" ("" is a scalar). */
bool cli_parse_shape(const char *text, size_t text_bytes, tn_shape *out);

/* The options that cli_feeds_create reads; put CLI_FEED_OPTIONS into a command's table. */
#define CLI_FEED_OPTIONS                                                                  \
    {"input", CLI_TEXT, "NAME=WHAT",                                                      \
     "a file (.npy, .pb, .raw with --shape) or zeros|ones|random|range|VALUE"},           \
        {"shape", CLI_TEXT, "NAME=1x3x224x224", "shape of an input; NAME= for a scalar"}, \
        {"dim", CLI_TEXT, "SYMBOL=4", "value of a symbolic dimension"}, {                 \
        "seed", CLI_COUNT, "N", "seed of random contents (1)"                             \
    }

#endif
