"""A widget with fields, and what it showed first for where no kernel runs: an exported page, a viewer of notebooks."""

from __future__ import annotations

from typing import Any


class Explorer:
    """``widget``: the ipywidget; ``still``: HTML of its first picture."""

    def __init__(self, widget: Any, still: str) -> None:
        self.widget = widget
        self.still = still

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/html": self.still, **self.widget._repr_mimebundle_(include=None, exclude=None)}
