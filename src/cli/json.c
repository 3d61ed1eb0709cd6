/* Deeper than CLI_JSON_DEPTH nothing is opened: trees of allocators are a few levels deep. */
#include "cli/json.h"

#include <math.h>
#include <string.h>

void cli_json_init(cli_json *json, FILE *file) {
    *json = (cli_json){.file = file};
}

/* Length of the UTF-8 sequence at `text`, 0 when there is none. */
static size_t sequence_bytes(const unsigned char *text, size_t left) {
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t length = text[0] < 0x80 ? 1 : text[0] >> 5 == 6 ? 2 : text[0] >> 4 == 14 ? 3 : 4;
    if (length == 1) return 1;
    if (length > left || (length == 4 && text[0] >> 3 != 30)) return 0;
    unsigned point = text[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80) return 0;
        point = point << 6 | (text[i] & 0x3Fu);
    }
    const bool is_surrogate = point >= 0xD800 && point <= 0xDFFF;
    return point < least[length] || point > 0x10FFFF || is_surrogate ? 0 : length;
}

static void write_text(FILE *file, const char *text, size_t text_bytes) {
    const unsigned char *at = (const unsigned char *)text;
    (void)fputc('"', file);
    for (size_t i = 0; i < text_bytes;) {
        const size_t length = sequence_bytes(at + i, text_bytes - i);
        if (length == 0) {
            (void)fputs("\\ufffd", file);
            i++;
            continue;
        }
        if (length == 1 && at[i] < 0x20) {
            (void)fprintf(file, "\\u%04x", at[i]);
        } else {
            if (at[i] == '"' || at[i] == '\\') (void)fputc('\\', file);
            (void)fwrite(at + i, 1, length, file);
        }
        i += length;
    }
    (void)fputc('"', file);
}

static void begin_item(cli_json *json, const char *key) {
    if (json->depth == 0) return;
    (void)fputs(json->has_item[json->depth] ? ",\n" : "\n", json->file);
    json->has_item[json->depth] = true;
    (void)fprintf(json->file, "%*s", (int)(2 * json->depth), "");
    if (key == NULL) return;
    write_text(json->file, key, strlen(key));
    (void)fputs(": ", json->file);
}

void cli_json_open(cli_json *json, const char *key, char bracket) {
    begin_item(json, key);
    (void)fputc(bracket, json->file);
    if (json->depth < CLI_JSON_DEPTH) json->depth++;
    json->has_item[json->depth] = false;
}

void cli_json_close(cli_json *json, char bracket) {
    const bool had_item = json->has_item[json->depth];
    json->depth--;
    if (had_item) (void)fprintf(json->file, "\n%*s", (int)(2 * json->depth), "");
    (void)fputc(bracket, json->file);
    if (json->depth == 0) (void)fputc('\n', json->file);
}

void cli_json_u64(cli_json *json, const char *key, uint64_t number) {
    begin_item(json, key);
    (void)fprintf(json->file, "%llu", (unsigned long long)number);
}

void cli_json_i64(cli_json *json, const char *key, int64_t number) {
    begin_item(json, key);
    (void)fprintf(json->file, "%lld", (long long)number);
}

void cli_json_real(cli_json *json, const char *key, double number) {
    begin_item(json, key);
    if (isfinite(number)) {
        (void)fprintf(json->file, "%.17g", number);
    } else {
        (void)fputs("null", json->file);
    }
}

void cli_json_bool(cli_json *json, const char *key, bool value) {
    begin_item(json, key);
    (void)fputs(value ? "true" : "false", json->file);
}

void cli_json_text(cli_json *json, const char *key, const char *text) {
    begin_item(json, key);
    if (text == NULL) {
        (void)fputs("null", json->file);
    } else {
        write_text(json->file, text, strlen(text));
    }
}

void cli_json_text_n(cli_json *json, const char *key, const char *text, size_t text_bytes) {
    begin_item(json, key);
    write_text(json->file, text, text_bytes);
}
