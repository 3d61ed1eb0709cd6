#include "model/scope_check.h"

#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "model/proto_writer.h"

/* The public call runs the checks, so that scopes need not be made by hand. */
static tn_status load(const proto *message, tn_model **out, tn_allocator **out_root,
                      tn_error *err) {
    ASSERT_OK(tn_allocator_create_root(NULL, out_root, NULL));
    return tn_model_load_bytes(*out_root, message->data, message->size_bytes, NULL, out, err);
}

static void unload(tn_model *model, tn_allocator *root) {
    tn_model_release(model);
    assert_int_equal(tn_allocator_charged(root), 0);
    tn_allocator_release(root);
}

static void assert_refused(const proto *message, tn_status status, const char *node,
                           const char *needle) {
    tn_allocator *root = NULL;
    tn_model *model = NULL;
    tn_error err = {0};
    ASSERT_STATUS(status, load(message, &model, &root, &err));
    assert_string_equal(err.node, node);
    if (strstr(err.message, needle) == NULL) fail_msg("%s", err.message);
    unload(model, root);
}

/* A node with a name of its own. */
static proto named_node(const char *name, const char *op_type, const char *input,
                        const char *output) {
    proto node = proto_node(op_type, input, output);
    proto_put_text(&node, 3, name);
    return node;
}

/* An If over "x" whose one branch is `body`. */
static proto if_node(const proto *body, const char *output) {
    proto branch = {.size_bytes = 0};
    proto node = named_node("pick", "If", "x", output);
    proto_put_text(&branch, 1, "then_branch");
    proto_put_int(&branch, 20, TN_ATTRIBUTE_GRAPH);
    proto_put(&branch, 6, body);
    proto_put(&node, 5, &branch);
    return node;
}

/* A body of one Relu from `input` to `output`. */
static proto relu_body(const char *input, const char *output) {
    const proto relu = named_node("inner", "Relu", input, output);
    const proto out = proto_float_value(output);
    proto body = {.size_bytes = 0};
    proto_put(&body, 1, &relu);
    proto_put(&body, 12, &out);
    return body;
}

static proto model_of_nodes(const proto *nodes, size_t count) {
    proto graph = proto_graph("y");
    for (size_t i = 0; i < count; i++) proto_put(&graph, 1, &nodes[i]);
    return proto_model(&graph);
}

static void scope_order_of_file_is_kept_where_legal(void **state) {
    (void)state;
    const proto nodes[] = {proto_node("C", "b", "y"), proto_node("A", "x", "a"),
                           proto_node("D", "x", "d"), proto_node("B", "a", "b")};
    static const char *const expected[] = {"A", "D", "B", "C"};
    const proto message = model_of_nodes(nodes, 4);
    tn_allocator *root = NULL;
    tn_model *model = NULL;

    ASSERT_OK(load(&message, &model, &root, NULL));

    const tn_graph *graph = tn_model_graph(model);
    for (size_t i = 0; i < 4; i++) {
        assert_true(tn_text_equals_literal(graph->nodes[i].op_type, expected[i]));
    }
    unload(model, root);
}

static void scope_capture_puts_the_producer_first(void **state) {
    (void)state;
    const proto body = relu_body("late", "z");
    const proto nodes[] = {if_node(&body, "y"), proto_node("Relu", "x", "late")};
    const proto message = model_of_nodes(nodes, 2);
    tn_allocator *root = NULL;
    tn_model *model = NULL;

    ASSERT_OK(load(&message, &model, &root, NULL));

    assert_true(tn_text_equals_literal(tn_model_graph(model)->nodes[0].op_type, "Relu"));
    unload(model, root);
}

static void scope_name_may_hide_an_outer_one(void **state) {
    (void)state;
    /* "y" inside is the body's own, not the result of the node that holds the body */
    const proto body = relu_body("x", "y");
    const proto node = if_node(&body, "y");
    const proto message = model_of_nodes(&node, 1);
    tn_allocator *root = NULL;
    tn_model *model = NULL;

    ASSERT_OK(load(&message, &model, &root, NULL));

    unload(model, root);
}

static void scope_cycles_are_refused(void **state) {
    (void)state;
    const proto straight[] = {named_node("first", "Relu", "b", "a"), proto_node("Relu", "a", "b"),
                              proto_node("Relu", "x", "y")};
    const proto body = relu_body("y", "z");
    const proto through_body = if_node(&body, "y");

    proto message = model_of_nodes(straight, 3);
    assert_refused(&message, TN_INVALID_MODEL, "first", "cycle");
    message = model_of_nodes(&through_body, 1);
    assert_refused(&message, TN_INVALID_MODEL, "pick", "cycle");
}

static void scope_missing_and_double_values_are_refused(void **state) {
    (void)state;
    const proto missing = named_node("user", "Relu", "ghost", "y");
    const proto twice[] = {proto_node("Relu", "x", "y"), named_node("again", "Relu", "x", "y")};
    const proto body = relu_body("ghost", "z");
    const proto missing_inside = if_node(&body, "y");

    proto message = model_of_nodes(&missing, 1);
    assert_refused(&message, TN_INVALID_MODEL, "user", "ghost is produced nowhere");
    message = model_of_nodes(twice, 2);
    assert_refused(&message, TN_INVALID_MODEL, "again", "y is made a second time");
    message = model_of_nodes(&missing_inside, 1);
    assert_refused(&message, TN_INVALID_MODEL, "inner", "ghost is produced nowhere");
}

/* A function "f.<name>" from x to y with these nodes. */
static proto function_of(const char *name, const proto *nodes, size_t count) {
    proto function = {.size_bytes = 0};
    proto_put_text(&function, 1, name);
    proto_put_text(&function, 10, "f");
    proto_put_text(&function, 4, "x");
    proto_put_text(&function, 5, "y");
    for (size_t i = 0; i < count; i++) proto_put(&function, 7, &nodes[i]);
    return function;
}

static proto call(const char *name, const char *input, const char *output) {
    proto node = proto_node(name, input, output);
    proto_put_text(&node, 7, "f");
    return node;
}

static void function_cycle_through_a_branch_is_refused(void **state) {
    (void)state;
    const proto again = call("F", "x", "z");
    const proto out = proto_float_value("z");
    proto body = {.size_bytes = 0};
    proto_put(&body, 1, &again);
    proto_put(&body, 12, &out);
    const proto pick = if_node(&body, "y");
    const proto function = function_of("F", &pick, 1);
    const proto node = call("F", "x", "y");
    proto message = model_of_nodes(&node, 1);
    proto_put(&message, 25, &function);

    assert_refused(&message, TN_INVALID_MODEL, "F", "calls itself");
}

static void function_calls_that_multiply_are_refused(void **state) {
    (void)state;
    const proto node = call("F0", "x", "y");
    const proto relu = proto_node("Relu", "x", "y");
    proto message = model_of_nodes(&node, 1);
    for (int i = 0; i < 25; i++) {
        char name[8];
        char callee[8];
        (void)snprintf(name, sizeof name, "F%d", i);
        (void)snprintf(callee, sizeof callee, "F%d", i + 1);
        const proto nodes[] = {call(callee, "x", "a"), call(callee, "a", "y")};
        const proto function = function_of(name, nodes, 2);
        proto_put(&message, 25, &function);
    }
    const proto last = function_of("F25", &relu, 1);
    proto_put(&message, 25, &last);

    /* F(25 - k) expands to 3 * 2^k - 2 nodes, which passes 2^24 at k = 23 */
    assert_refused(&message, TN_UNSUPPORTED, "F2", "too many nodes");
}

static void function_called_often_is_accepted(void **state) {
    (void)state;
    const proto relu = proto_node("Relu", "x", "y");
    const proto function = function_of("F", &relu, 1);
    const proto nodes[] = {call("F", "x", "a"), call("F", "a", "b"), call("F", "b", "y")};
    proto message = model_of_nodes(nodes, 3);
    proto_put(&message, 25, &function);
    tn_allocator *root = NULL;
    tn_model *model = NULL;

    ASSERT_OK(load(&message, &model, &root, NULL));

    assert_int_equal(tn_model_get_info(model)->function_count, 1);
    unload(model, root);
}

static void function_twice_is_refused_unless_overloaded(void **state) {
    (void)state;
    const proto relu = proto_node("Relu", "x", "y");
    const proto function = function_of("F", &relu, 1);
    proto overload = function;
    proto twice = model_of_nodes(&relu, 1);
    proto both = model_of_nodes(&relu, 1);
    tn_allocator *root = NULL;
    tn_model *model = NULL;
    proto_put_text(&overload, 13, "other");
    proto_put(&twice, 25, &function);
    proto_put(&twice, 25, &function);
    proto_put(&both, 25, &function);
    proto_put(&both, 25, &overload);

    assert_refused(&twice, TN_INVALID_MODEL, "F", "defined twice");
    ASSERT_OK(load(&both, &model, &root, NULL));
    unload(model, root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(scope_order_of_file_is_kept_where_legal),
        T(scope_capture_puts_the_producer_first),
        T(scope_name_may_hide_an_outer_one),
        T(scope_cycles_are_refused),
        T(scope_missing_and_double_values_are_refused),
        T(function_cycle_through_a_branch_is_refused),
        T(function_calls_that_multiply_are_refused),
        T(function_called_often_is_accepted),
        T(function_twice_is_refused_unless_overloaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
