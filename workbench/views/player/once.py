"""Widgets whose script a page loads only once, however many such widgets exist.

The library anywidget makes an ES module of the text ``_esm`` for each widget, and a browser keeps each module with its
compiled code as long as the page is open. So here ``_esm`` is only a few lines. These lines load the actual script, or
find it by its text if the page has loaded it already.
"""

from __future__ import annotations

import anywidget
import traitlets

from workbench.views.player.embed import browser_file


class LoadedOnce(anywidget.AnyWidget):
    """A widget with the trait ``script``: an ES module whose default export has ``render``, as for any anywidget.

    All widgets of a page with the same script share one module, including its state outside of ``render``.
    """

    _esm = browser_file("once.js")
    script = traitlets.Unicode().tag(sync=True)
