#!/bin/sh
# Make the virtual environment $1 and install the workbench into it: with uv when it is on the PATH, else with venv and pip.
# What is missing is said in one line with its remedy. Run by the Makefile from the repository's top folder.
set -eu
venv=$1

fail() {
    echo "make setup: $1" >&2
    exit 1
}

is_right() { # a Python that pyproject.toml allows
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null
}

find_python() {
    for candidate in python3 python3.13 python3.12 python3.11; do
        if is_right "$candidate"; then
            echo "$candidate"
            return
        fi
    done
}

make_venv() {
    rm -rf "$venv"
    if command -v uv >/dev/null 2>&1; then
        uv venv --quiet --python "${python:-3.13}" "$venv" # uv fetches a Python where there is none
    elif [ -z "$python" ]; then
        fail "Python 3.11, 3.12 or 3.13 is missing: apt-get install python3 python3-venv (macOS: brew install python@3.13)"
    elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        fail "$python has no venv module: apt-get install python3-venv (macOS: brew install python@3.13)"
    else
        "$python" -m venv "$venv"
    fi
}

install() {
    if command -v uv >/dev/null 2>&1; then
        uv pip install --quiet --python "$venv/bin/python" -e '.[test,bench,paper,search,sensitivity]'
    else
        # A .venv that uv made has no pip of its own.
        "$venv/bin/python" -c 'import pip' 2>/dev/null || "$venv/bin/python" -m ensurepip >/dev/null
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[test,bench,paper,search,sensitivity]'
    fi
}

python=${PYTHON:-python3}
if [ "$python" = python3 ]; then
    python=$(find_python)
elif ! is_right "$python"; then
    fail "PYTHON=$python is no Python 3.11, 3.12 or 3.13; leave PYTHON out to take the one that is found"
fi
is_right "$venv/bin/python" || make_venv
echo "make setup: installing into $venv (1.7 GB, some minutes the first time)"
install || fail "the installation into $venv failed (see above); the first set-up needs the network, then run make setup again"
# JupyterLab asks on its first page whether it may fetch news; nobody needs that here.
"$venv/bin/jupyter" labextension disable --level=sys_prefix '@jupyterlab/apputils-extension:announcements' >/dev/null 2>&1 || true

# The fast engine's machine code takes a minute or two, which nobody has to wait for: at low priority, without this terminal.
# A run that needs some of it waits for that, instead of compiling it too. A machine that tests and goes needs little of it.
[ -n "${CI:-}" ] || nohup nice -n 19 "$venv/bin/workbench" warm >"$venv/warm.log" 2>&1 </dev/null &

java=java
[ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java
version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p') || true
[ "${version:-0}" -ge 17 ] || echo "make setup: done, but sweeps on Spark need Java 17 or newer: apt-get install openjdk-17-jre-headless (macOS: brew install openjdk@17)" >&2
