/* What tenure bench measures; shared by the measuring and the reporting half. */
#ifndef TN_CLI_BENCH_STATE_H
#define TN_CLI_BENCH_STATE_H

#include "cli/feeds.h"
#include "cli/opened.h"

/* Things that a steady state does not do; totals since the process began. */
typedef struct bench_counters {
    uint64_t minor_faults;
    uint64_t system_allocations;
    uint64_t system_frees;
    uint64_t heap_allocations;
    uint64_t payload_copies;
    uint64_t copied_bytes;
} bench_counters;

typedef struct bench_rss {
    uint64_t start, loaded, first_run, peak, end, trimmed, closed;
} bench_rss;

typedef struct bench_state {
    const cli_args *args;
    cli_opened opened;
    cli_feeds *sets; /* [set_count] input sets, used in turn */
    size_t set_count;
    size_t output_count;
    uint32_t concurrency;
    uint64_t run_goal;     /* 0: by time */
    uint64_t run_capacity; /* room in latencies_ns */
    uint64_t run_count;
    uint64_t *latencies_ns; /* [run_capacity] */
    uint64_t *starts_ns;    /* [run_capacity]; NULL without --profile */
    tn_value **held;        /* [run_capacity * output_count]; NULL without --hold-outputs */
    uint64_t trimmed_bytes;
    uint64_t first_run_ns;
    bench_counters steady; /* difference over the measured runs */
    /* first measured run that broke an assertion; UINT64_MAX: none */
    uint64_t first_allocating_run, first_faulting_run, first_copying_run;
    tn_session_stats stats; /* after the last measured run */
    uint64_t slack_bytes;
    bench_rss rss;
} bench_state;

/* Reads the counters. Allocates nothing. */
void bench_read_counters(const bench_state *state, bench_counters *out);

/* Does all measured runs. Returns an exit status after saying what went wrong. */
int bench_measure(bench_state *state);

/* Prints the result; checks --max-peak, --max-rss and --assert-*. Returns the exit status. */
int bench_report(bench_state *state);

#endif
