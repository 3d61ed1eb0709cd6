#!/usr/bin/env bash
# run_fuzzers.sh BUILD_DIR SECONDS: every fuzz target, from its corpus in tests/corpus/<target>.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 seconds=$2
failed=0 passed=0
shopt -s nullglob
for target in "$build"/*_fuzz; do
    name=$(basename "$target")
    corpus=$build/corpus/$name
    mkdir -p "$corpus"
    seeds=()
    [ -d "tests/corpus/$name" ] && seeds=("tests/corpus/$name")
    printf 'fuzz: %s for %s s\n' "$name" "$seconds"
    if "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 \
        -artifact_prefix="$corpus/" "$corpus" "${seeds[@]}" >"$build/$name.log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        tail -n 30 "$build/$name.log"
    fi
done
echo "fuzz: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
