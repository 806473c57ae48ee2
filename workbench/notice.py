"""A line that explains a wait. A notebook shows the line only during the wait, so a saved notebook does not contain it.

with Notice() as notice:
    notice.show("compiling ...")
"""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any


def notebook_kernel() -> Any:
    """Return the IPython kernel that runs this process's code; None in a terminal and in plain Python."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None)


class Notice:
    """A line on standard error that explains a wait. In a notebook it disappears at the end of the ``with`` block."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __enter__(self) -> Notice:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, stack_frames: TracebackType | None
    ) -> None:
        if self._handle is not None:
            # nbconvert warns about an output without any data.
            self._handle.update({"text/html": ""}, raw=True)

    def show(self, text: str) -> None:
        """Show the line ``text``; in a notebook it replaces the previous line."""
        kernel = notebook_kernel()
        if kernel is None:
            print(text, file=sys.stderr, flush=True)
            return
        if kernel.session.pid != os.getpid():
            return  # The fork of a kernel cannot display, and the notebook would keep its standard error.
        from IPython.display import DisplayHandle

        if self._handle is None:
            self._handle = DisplayHandle()
            self._handle.display({"text/plain": text}, raw=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)
