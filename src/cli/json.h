/* Writes one JSON document to a stream, key by key. */
#ifndef TN_CLI_JSON_H
#define TN_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CLI_JSON_DEPTH 64

/* `key` is NULL inside arrays and for the document itself. Fields are private. */
typedef struct cli_json {
    FILE *file;
    unsigned depth;
    bool has_item[CLI_JSON_DEPTH + 1];
} cli_json;

void cli_json_init(cli_json *json, FILE *file);
void cli_json_open(cli_json *json, const char *key, char bracket); /* '{' or '[' */
void cli_json_close(cli_json *json, char bracket);                 /* '}' or ']' */
void cli_json_u64(cli_json *json, const char *key, uint64_t number);
void cli_json_i64(cli_json *json, const char *key, int64_t number);
void cli_json_real(cli_json *json, const char *key, double number); /* null when not finite */
void cli_json_bool(cli_json *json, const char *key, bool value);
/* NULL becomes null; bytes that are not UTF-8 become U+FFFD. */
void cli_json_text(cli_json *json, const char *key, const char *text);
void cli_json_text_n(cli_json *json, const char *key, const char *text, size_t text_bytes);

#endif
