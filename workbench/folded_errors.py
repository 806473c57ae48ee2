"""The display of the workbench's errors in a notebook: the sentence first, below it the traceback, folded.

    fold(shell)                  display errors in this form from now on, in the cells of an IPython kernel
    shortened(sentence, most)    a sentence without its middle if it is longer than about `most` characters

``import workbench`` in a notebook calls `fold`. Other errors, ``%tb``, ``%debug``, terminals and plain Python are
unaffected. The kernel's reply to the program that executes the notebook still contains the full traceback. An error
handler that the user installs (``set_custom_exc``), before or later, takes precedence.
"""

import re
import sys
from html import escape
from types import TracebackType
from typing import Any

from workbench.errors import WorkbenchError

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_RED, _PLAIN = "\x1b[31m", "\x1b[0m"


def fold(shell: Any) -> None:
    """Display the workbench's errors with a folded traceback, unless the shell already has an error handler."""
    if not shell.custom_exceptions:
        shell.set_custom_exc((WorkbenchError,), _show_folded_error)


def shortened(sentence: str, most: int) -> str:
    """Return a sentence of at most about ``most`` characters; of a longer one, "…" replaces the middle."""
    return sentence if len(sentence) <= most else f"{sentence[: most // 3]}…{sentence[-most * 2 // 3 :]}"


def _show_folded_error(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    stack_frames: TracebackType,
    tb_offset: int | None = None,
) -> None:
    from IPython.display import display

    sys.last_type, sys.last_value, sys.last_traceback = kind, error, stack_frames  # for %tb and %debug
    traceback_lines = shell.InteractiveTB.structured_traceback(kind, error, stack_frames, tb_offset=tb_offset)
    traceback_text = _ANSI.sub("", "\n".join(traceback_lines))
    shell._showtraceback(kind, error, [f"{_RED}{kind.__name__}{_PLAIN}: {error}"])
    # The reply to the client that executes the cell contains this; the notebook does not show it.
    shell._last_traceback = traceback_lines
    folded_html = f"<details><summary>Traceback</summary><pre>{escape(traceback_text)}</pre></details>"
    display({"text/plain": traceback_text, "text/html": folded_html}, raw=True)
