"""Widgets whose script a page loads only once, however many such widgets exist.

anywidget makes a module of ``_esm`` for each widget, and a browser keeps each module with its compiled code as long as
the page is open. So ``_esm`` is a few lines that look up the script by its text.
"""

from __future__ import annotations

import anywidget
import traitlets

from workbench.views.player.embed import browser_file


class LoadedOnce(anywidget.AnyWidget):
    """A widget with a ``script``: an ES module whose default export has ``render``, as in any anywidget.

    All widgets of a page with the same script share one module, including its state outside of ``render``.
    """

    _esm = browser_file("once.js")
    script = traitlets.Unicode().tag(sync=True)
