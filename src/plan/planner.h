/* Working state while one sized plan is made: shared by the files that make it. */
#ifndef TN_PLAN_PLANNER_H
#define TN_PLAN_PLANNER_H

#include "plan/plan.h"

#define TN_MAX_BRANCH_DEPTH 64

typedef struct tn_planner {
    tn_ir *ir;
    tn_plan *plan;
    const tn_plan_input *inputs;
    const tn_plan_options *options;
    tn_bump scratch; /* gone when the plan is made */
    tn_bump trial;   /* reset after every node that runs at plan time */
    uint32_t step_capacity;
    uint32_t slot_capacity;
    tn_error *err;
} tn_planner;

/* plan_walk.c: steps in order, facts of every value, views, known values. */
tn_status tn_planner_walk(tn_planner *planner);

/* lifetime.c: outputs, branch results, in-place pairs, births and deaths, offsets. */
tn_status tn_planner_place(tn_planner *planner);

/* A further slot (copy target, packed weight); TN_NO_VALUE when memory is refused. */
uint32_t tn_planner_add_slot(tn_planner *planner, const tn_fact *fact);

/* A further step, zeroed; NULL when memory is refused. */
tn_step *tn_planner_add_step(tn_planner *planner, tn_step_kind kind);

tn_status tn_planner_no_memory(tn_planner *planner);

#endif
