#!/usr/bin/env bash
# Makes a machine ready: system packages, then a virtual environment with what tests need.
# bootstrap.sh [fuzz|lint|valgrind]...   Quick when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${VENV:-.venv}
requirements=tools/requirements.txt
say() { printf '[setup] %s\n' "$*"; }
has() { command -v "$1" >/dev/null 2>&1; }

# A Python is usable when it can make environments and has headers to build an extension with.
python_is_usable() {
    "$1" - <<'PY' >/dev/null 2>&1
import ensurepip, os, sys, sysconfig, venv
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(not (sys.version_info >= (3, 11) and os.path.exists(header)))
PY
}

find_python() {
    local candidate
    for candidate in "${PYTHON:-python3}" python3 /usr/bin/python3; do
        if has "$candidate" && python_is_usable "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

missing_packages() {
    has gcc || echo gcc libc6-dev
    has cmake || echo cmake
    has ninja || echo ninja-build
    has pkg-config || echo pkg-config
    has git || echo git
    has nm || echo binutils
    pkg-config --exists cmocka 2>/dev/null || echo libcmocka-dev
    [ -e /etc/ssl/certs/ca-certificates.crt ] || echo ca-certificates
    [ -x "$venv/bin/python" ] || find_python >/dev/null || echo python3 python3-venv python3-dev
    local part
    for part in "$@"; do
        case $part in
            fuzz) has clang || echo clang libclang-rt-14-dev ;;
            lint) has clang-tidy || echo clang-tidy ;;
            valgrind) has valgrind || echo valgrind ;;
            *) echo "bootstrap: unknown part '$part' (fuzz, lint, valgrind)" >&2; exit 2 ;;
        esac
    done
}

install_packages() {
    local wanted
    mapfile -t wanted < <(missing_packages "$@" | tr ' ' '\n' | sort -u)
    [ ${#wanted[@]} -eq 0 ] && return
    if [ "$(id -u)" -ne 0 ] || ! has apt-get; then
        printf 'Missing system packages. Run this once, then again what you ran:\n' >&2
        printf '    sudo apt-get install -y --no-install-recommends %s\n' "${wanted[*]}" >&2
        exit 1
    fi
    say "installing ${wanted[*]}"
    export DEBIAN_FRONTEND=noninteractive
    local log
    log=$(mktemp)
    if ! { apt-get update && apt-get install -y --no-install-recommends "${wanted[@]}"; } \
        </dev/null >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        exit 1
    fi
    rm -f "$log"
}

# The package itself is used in place: a .pth file names the folder, so a rebuild needs no install.
link_package() {
    local site
    site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    printf '%s\n' "$PWD/python" >"$site/tenure.pth"
}

make_environment() {
    local stamp=$venv/.tenure-stamp wanted
    wanted="$PWD $(cksum <"$requirements")"
    if [ -x "$venv/bin/python" ] && [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
        return
    fi
    if [ ! -x "$venv/bin/python" ]; then
        say "making $venv"
        "$(find_python)" -m venv "$venv"
    fi
    say "installing Python packages of $requirements (about 120 MB)"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
        --requirement "$requirements" </dev/null
    link_package
    printf '%s' "$wanted" >"$stamp"
}

install_packages "$@"
make_environment
