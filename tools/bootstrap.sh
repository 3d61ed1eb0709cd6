#!/usr/bin/env bash
# Gets a machine ready to build and test: system packages, then a Python environment in .venv.
# Quick and silent when everything is there. As root it installs; otherwise it prints the one command
# to run and stops with status 1.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(gcc g++ clang cmake ninja-build make git pkg-config libcmocka-dev clang-format
          libclang-rt-14-dev python3 python3-venv python3-dev)
missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if ((${#missing[@]})); then
    if [[ $(id -u) -ne 0 ]]; then
        echo "tenure: packages are missing; run: sudo apt-get install -y ${missing[*]}" >&2
        exit 1
    fi
    echo "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

stamp=.venv/.requirements
if ! cmp -s tools/requirements.txt "$stamp" 2>/dev/null; then
    echo "preparing .venv (once, about a minute)"
    python=/usr/bin/python3
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
        echo "tenure: Python 3.11 or newer is needed, $python is older" >&2
        exit 1
    }
    rm -rf .venv
    "$python" -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r tools/requirements.txt
    cp tools/requirements.txt "$stamp"
fi
