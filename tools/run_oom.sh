#!/usr/bin/env bash
# run_oom.sh BUILD_DIR: the tests that fail the k-th allocation for every k; they include oom_sweep.h.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
failed=0 passed=0
while IFS= read -r source; do
    test=$build/tests/$(basename "$source" .c)
    if "$test" >"$test.oom.log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        tail -n 30 "$test.oom.log"
    fi
done < <(git grep -l --untracked 'oom_sweep\.h' -- '*_test.c')
echo "oom: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
