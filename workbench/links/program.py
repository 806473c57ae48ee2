"""The program of a mote: which files it consists of, and how they are made small."""

from __future__ import annotations

from pathlib import Path

import workbench

_PACKAGE = Path(workbench.__file__).parent
_CHECKOUT = _PACKAGE.parent / "hardware"
# Beside the package in a checkout, within it where it was installed from a wheel.
HARDWARE = _CHECKOUT if _CHECKOUT.is_dir() else _PACKAGE / "_hardware"
