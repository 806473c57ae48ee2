"""Widgets whose script a page loads once, however many of them there were.

anywidget makes a module of ``_esm`` for each widget that is shown, and a browser keeps each module with its compiled
code for as long as the page is there. So ``_esm`` is a few lines that look the script up by its text.
"""

from __future__ import annotations

import anywidget
import traitlets

from workbench.views.player.embed import part


class LoadedOnce(anywidget.AnyWidget):
    """A widget with a ``script``: an ES module whose default export has ``render``, as that of an anywidget has.

    All widgets of a page with the same script share the module: what it remembers outside of ``render`` is shared, too.
    """

    _esm = part("once.js")
    script = traitlets.Unicode().tag(sync=True)
