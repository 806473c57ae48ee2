#!/bin/sh
# Print the path of the Python $1, such as 3.12, or fail if it is not installed.
for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python3; do
    if "$candidate" -c '' 2>/dev/null; then
        command -v "$candidate"
        exit
    fi
done
exit 1
