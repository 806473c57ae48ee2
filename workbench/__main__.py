"""``python -m workbench``: the `workbench` command where no script of that name is installed."""

import sys

from workbench.cli import main

if __name__ == "__main__":
    sys.exit(main())
