"""``python -m workbench``: the `workbench` command, for environments in which its script is not installed."""

import sys

from workbench.cli import main

if __name__ == "__main__":
    sys.exit(main())
