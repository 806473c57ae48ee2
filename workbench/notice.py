"""A line that explains why something takes long. A notebook shows it only meanwhile, so it is in no saved output.

with Notice() as notice:
    notice.show("compiling ...")
"""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any


def notebook_kernel() -> Any:
    """Return the IPython kernel of this process; None in a terminal, in plain Python, and in a fork of a kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    kernel = getattr(shell, "kernel", None)
    # A fork cannot send what a cell displays.
    return kernel if kernel is not None and kernel.session.pid == os.getpid() else None


class Notice:
    """A line on standard error, or in a notebook an output of the cell that is empty once the block has ended."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __enter__(self) -> Notice:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        if self._handle is not None:
            # With no data at all, nbconvert warns that it cannot represent the output.
            self._handle.update({"text/html": ""}, raw=True)

    def show(self, text: str) -> None:
        """Show a line, in a notebook in place of the one before."""
        if notebook_kernel() is None:
            print(text, file=sys.stderr, flush=True)
            return
        from IPython.display import DisplayHandle

        if self._handle is None:
            self._handle = DisplayHandle()
            self._handle.display({"text/plain": text}, raw=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)
