"""The workbench's errors in a notebook: the sentence first, its traceback folded away below it.

    fold(shell)                  from now on, in cells of an IPython kernel
    shortened(sentence, most)    a sentence that may quote a long text, without its middle

``import workbench`` in a notebook folds. All else is as ever: other errors, ``%tb`` and ``%debug`` afterwards, what a
client that executes notebooks is told, terminals and plain Python, and a handler that somebody has set before or sets
later (``set_custom_exc``).
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
    """Fold tracebacks of the workbench's errors, unless the shell has a handler of errors already."""
    if not shell.custom_exceptions:
        shell.set_custom_exc((WorkbenchError,), _show)


def shortened(sentence: str, most: int) -> str:
    """A sentence of at most some ``most`` letters: beginning and end of a longer one, where the reason stands."""
    return sentence if len(sentence) <= most else f"{sentence[: most // 3]}…{sentence[-most * 2 // 3 :]}"


def _show(
    shell: Any, kind: type[BaseException], error: BaseException, frames: TracebackType, tb_offset: int | None = None
) -> None:
    from IPython.display import display

    sys.last_type, sys.last_value, sys.last_traceback = kind, error, frames  # for %tb and %debug
    lines = shell.InteractiveTB.structured_traceback(kind, error, frames, tb_offset=tb_offset)
    text = _ANSI.sub("", "\n".join(lines))
    shell._showtraceback(kind, error, [f"{_RED}{kind.__name__}{_PLAIN}: {error}"])
    shell._last_traceback = lines  # The reply to who executes the cell is not shown in the notebook.
    folded = f"<details><summary>Traceback</summary><pre>{escape(text)}</pre></details>"
    display({"text/plain": text, "text/html": folded}, raw=True)
