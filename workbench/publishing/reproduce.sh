#!/bin/sh
# Reproduce "@TITLE@": make an environment, execute the notebook, compare its claims.
# PYTHON=/path/to/python@PYTHON@ selects a Python; VENV=folder uses an environment that has the libraries and the wheel.
# Exit code: 0 if all claims are the same, 1 if some differ, 2 if the artifact cannot be executed.
set -eu
cd "$(dirname "$0")"
echo "The authors' execution:"
cat measured.json
if [ -z "${VENV:-}" ]; then
    VENV=.venv
    if [ ! -f "$VENV/is-complete" ]; then
        python=${PYTHON:-$(command -v python@PYTHON@ || command -v python3 || true)}
        if [ -z "$python" ]; then
            echo "reproduce.sh: Python @PYTHON@ is missing; install it, or name one: PYTHON=/path/to/python@PYTHON@" >&2
            exit 2
        fi
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || exit 2
        if [ "$version" != "@PYTHON@" ]; then
            echo "reproduce.sh: $python is Python $version; requirements.txt lists the versions for Python @PYTHON@" >&2
        fi
        echo "Installing into $VENV ..."
        "$python" -m venv "$VENV" || exit 2
        "$VENV/bin/python" -m pip install --disable-pip-version-check --quiet -r requirements.txt || exit 2
        "$VENV/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps dist/*.whl || exit 2
        touch "$VENV/is-complete"
    fi
fi
exec "$VENV/bin/python" -m workbench publish --check . --out reproduced
