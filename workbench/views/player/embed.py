"""The player as HTML that stands by itself: its script and a run's picture inline, no kernel and no network.

    module()             the script of the browser's part, one ES module
    player_html(parcel)  an element that plays the run of a parcel, wherever HTML with scripts is shown

Script and columns travel as gzip in base64. A page with several players loads the script once.

Limits
    Tested in JupyterLab 4, Notebook 7 and exported HTML, with Chromium. VS Code's renderer, Firefox and Safari were not
    tried.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import itertools
import json
import os
from functools import cache
from importlib.resources import files

# In this order; nothing in them is imported or exported, so that one page needs one script.
PARTS = ("parcel", "paint", "theme", "record", "map", "timeline", "words", "player")
FALLBACK = "A run of the workbench: it plays where scripts may run. Trust this notebook, or run the cell again."
FAST, SMALL = 1, 9  # levels of gzip

_numbers = itertools.count()


@cache
def module() -> str:
    """The browser's part of the player as one ES module; it exports ``mount``."""
    style = f"const STYLE = {json.dumps(part('player.css'))}"
    return "\n".join([*(part(f"{name}.js") for name in PARTS), style, "export { mount, Player }", ""])


@cache
def part(name: str) -> str:
    """A file of the browser's part."""
    return (files(__package__) / "browser" / name).read_text(encoding="utf-8")


@cache
def _packed_module() -> tuple[str, str]:
    """The module as text that can travel, and what it is known by in a page."""
    text = module().encode()
    return _packed(text, SMALL), f"workbenchPlayer{hashlib.sha256(text).hexdigest()[:12]}"


def _packed(data: bytes, level: int) -> str:
    return base64.b64encode(gzip.compress(data, level, mtime=0)).decode("ascii")


def new_id() -> str:
    """A name for an element that no other one of this notebook or page has."""
    return f"w{os.getpid():x}x{next(_numbers):x}x{os.urandom(3).hex()}"


def name_of(parcel: bytes) -> str:
    """A name for the only player of a page: the same run gives the same page."""
    digest = hashlib.sha256(parcel).hexdigest()
    return f"w{digest[:8]}x0x{digest[8:14]}"


def player_html(parcel: bytes, name: str = "", level: int = FAST) -> str:
    """An element that plays a parcel. ``name``: how it is known in the page; ``level``: of gzip, 1 to 9."""
    name = name or new_id()
    script, key = _packed_module()
    boot = part("boot.js").replace("__ID__", name).replace("__KEY__", json.dumps(key))
    boot = boot.replace("__SCRIPT__", f'"{script}"').replace("__DATA__", f'"{_packed(parcel, level)}"')
    return f'<div data-workbench="{name}"><p>{FALLBACK}</p></div><script>{boot}</script>'
