#!/usr/bin/env bash
# Every C test of BUILD_DIR under Memcheck. Tests named *_stress_test measure time and are left out.
set -euo pipefail
build=$1
failed=0 passed=0
for test in "$build"/tests/*_test; do
    case $test in *_stress_test) continue ;; esac
    if valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
        "$test" >"$test.valgrind.log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'valgrind: %s failed\n' "$test"
        tail -n 40 "$test.valgrind.log"
    fi
done
echo "valgrind: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
