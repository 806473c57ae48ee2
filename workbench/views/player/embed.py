"""The player as self-contained HTML with its script and data, which needs neither a kernel nor a network connection.

    module()              the script of the player, one ES module
    player_html(payload)  an HTML element that plays a run, wherever scripts may run

The script and the data are compressed with gzip and embedded as base64. A page with several players loads the script
only once.

Limits
    Tested in JupyterLab 4, Notebook 7 and exported HTML, with Chromium. VS Code's renderer, Firefox and Safari are
    untested.
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

# In this order; they have no imports and exports, so that one script suffices for a page.
SCRIPTS = ("elements", "payload", "paint", "theme", "record", "map", "timeline", "words", "player")
FALLBACK = "A run of the workbench: it plays where scripts may run. Trust this notebook, or run the cell again."
FAST, SMALL = 1, 9  # levels of gzip

_numbers = itertools.count()


@cache
def module() -> str:
    """Return the player's script as one ES module, which exports ``mount`` and ``Player``."""
    return f"{module_text()}\nexport {{ mount, Player }}\n"


@cache
def module_text() -> str:
    """Return the player's script without exports, to be joined with other scripts in one ES module."""
    style = f"const STYLE = {json.dumps(browser_file('player.css'))}"
    return "\n".join([*(browser_file(f"{name}.js") for name in SCRIPTS), style])


@cache
def browser_file(name: str) -> str:
    """Return the text of a file in the folder ``browser``."""
    return (files(__package__) / "browser" / name).read_text(encoding="utf-8")


@cache
def packed_module() -> str:
    """Return the player's script, compressed with gzip and encoded as base64."""
    return compress(module().encode(), SMALL)


@cache
def module_name() -> str:
    """Return the name under which a page stores the player's script.

    A second player in the page finds the script by this name and does not load it again.
    """
    return f"workbenchPlayer{hashlib.sha256(module().encode()).hexdigest()[:12]}"


def compress(data: bytes, level: int) -> str:
    """Return data, compressed with gzip and encoded as base64."""
    return base64.b64encode(gzip.compress(data, level, mtime=0)).decode("ascii")


def new_id() -> str:
    """Return an id for an HTML element that no other element of the notebook or page has."""
    return f"w{os.getpid():x}x{next(_numbers):x}x{os.urandom(3).hex()}"


def name_of(payload: bytes) -> str:
    """Return an id for a page's HTML element, computed from the payload alone, so that equal runs give equal pages.

    Two elements of one page must not have equal payloads.
    """
    digest = hashlib.sha256(payload).hexdigest()
    return f"w{digest[:8]}x0x{digest[8:14]}"


def player_html(payload: bytes, name: str = "", level: int = FAST) -> str:
    """Return an HTML element that plays a run.

    ``payload``: the run's data, from `payload.pack`. ``name``: the element's id; "" means a new one. ``level``: the
    compression level of gzip, 1 to 9.
    """
    return started_html(name or new_id(), payload, packed_module(), module_name(), level)


def started_html(name: str, data: bytes, packed_script: str, script_name: str, level: int) -> str:
    """Return an HTML element with data and an ES module, whose function ``mount(element, data)`` fills the element.

    name: the element's id.
    packed_script: the module, compressed with gzip and encoded as base64.
    script_name: the name under which a page stores the module, so that it is loaded once.
    level: the compression level of gzip for the data, 1 to 9.
    """
    boot = browser_file("boot.js").replace("__ID__", name).replace("__KEY__", json.dumps(script_name))
    boot = boot.replace("__SCRIPT__", f'"{packed_script}"').replace("__DATA__", f'"{compress(data, level)}"')
    return f'<div data-workbench="{name}"><p>{FALLBACK}</p></div><script>{boot}</script>'
