/* A plan as a picture: time from left to right, addresses from bottom to top. */
#ifndef TN_CLI_PLAN_HTML_H
#define TN_CLI_PLAN_HTML_H

#include <stdio.h>
#include <tenure/tenure.h>

/* Writes one self-contained page. */
void cli_write_plan_html(const tn_plan_report *report, const char *title, FILE *file);

#endif
