/* One rectangle per value of the slab; its title, shown when pointed at, holds the figures. */
#include "cli/plan_html.h"

#include "cli/format.h"

#define WIDTH 1200.0
#define HEIGHT 600.0

static void put_escaped(const char *text, FILE *file) {
    for (; *text != '\0'; text++) {
        switch (*text) {
            case '<':
                (void)fputs("&lt;", file);
                break;
            case '>':
                (void)fputs("&gt;", file);
                break;
            case '&':
                (void)fputs("&amp;", file);
                break;
            case '"':
                (void)fputs("&quot;", file);
                break;
            default:
                (void)fputc(*text, file);
        }
    }
}

static void put_value(const tn_plan_value *value, double step_width, double byte_height,
                      FILE *file) {
    const double left = step_width * value->birth;
    const double width = step_width * (value->death - value->birth + 1);
    const double height = byte_height * (double)value->size_bytes;
    const double top = HEIGHT - byte_height * (double)(value->offset_bytes + value->size_bytes);
    unsigned hue = 7;
    for (const char *c = value->name; *c != '\0'; c++) hue = (hue * 31 + (unsigned char)*c) % 360;
    (void)fprintf(file,
                  "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"hsl(%u 60%% "
                  "%u%%)\"><title>",
                  left, top, width, height, hue, value->is_workspace ? 85 : 65);
    put_escaped(value->name, file);
    (void)fprintf(file, ": %llu bytes at %llu, steps %u to %u</title></rect>\n",
                  (unsigned long long)value->size_bytes, (unsigned long long)value->offset_bytes,
                  value->birth, value->death);
}

void cli_write_plan_html(const tn_plan_report *report, const char *title, FILE *file) {
    tn_plan_summary s = {.struct_size = sizeof s};
    char peak[CLI_TEXT_BYTES], slab[CLI_TEXT_BYTES], bound[CLI_TEXT_BYTES];
    tn_plan_report_summary(report, &s);
    const double step_width = WIDTH / (double)(s.step_count == 0 ? 1 : s.step_count);
    const double byte_height = HEIGHT / (double)(s.execution_bytes == 0 ? 1 : s.execution_bytes);
    (void)fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", file);
    put_escaped(title, file);
    (void)fputs(
        "</title><style>body{font:14px sans-serif;margin:2em}rect{stroke:#333;stroke-width:.3}"
        "svg{border:1px solid #999;background:#fafafa}</style></head><body>\n<h1>",
        file);
    put_escaped(title, file);
    (void)fprintf(file,
                  "</h1>\n<p>Predicted peak %s; slab %s, lower bound %s; %zu steps, %zu planned "
                  "copies. Time runs to the right, addresses upwards.</p>\n",
                  cli_bytes_text(s.predicted_peak_bytes, peak),
                  cli_bytes_text(s.execution_bytes, slab),
                  cli_bytes_text(s.lower_bound_bytes, bound), s.step_count, s.copy_count);
    (void)fprintf(file, "<svg viewBox=\"0 0 %.0f %.0f\" width=\"100%%\">\n", WIDTH, HEIGHT);
    for (size_t i = 0; i < s.value_count; i++) {
        tn_plan_value value = {.struct_size = sizeof value};
        if (tn_plan_report_value(report, i, &value, NULL) != TN_OK) continue;
        if (value.arena == TN_PLAN_EXECUTION) put_value(&value, step_width, byte_height, file);
    }
    (void)fputs("</svg>\n</body></html>\n", file);
}
