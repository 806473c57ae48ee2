"""Allow ``python -m workbench.cli`` in place of the command `workbench`, which may not be on the PATH."""

import sys

from workbench.cli import main

if __name__ == "__main__":
    sys.exit(main())
