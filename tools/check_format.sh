#!/usr/bin/env bash
# Every C file is as clang-format leaves it. With --fix it makes it so.
set -euo pipefail
cd "$(dirname "$0")/.."
formatter=${VENV:-.venv}/bin/clang-format
[ -x "$formatter" ] || formatter=clang-format

mode=(--dry-run --Werror)
[ "${1:-}" = --fix ] && mode=(-i)
git ls-files -z --cached --others --exclude-standard -- '*.c' '*.h' |
    while IFS= read -r -d '' file; do [ -e "$file" ] && printf '%s\0' "$file"; done |
    xargs -0 -r -n 40 -P 2 "$formatter" "${mode[@]}"
[ "${1:-}" = --fix ] || echo "format: clean"
