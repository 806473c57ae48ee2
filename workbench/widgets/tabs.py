"""The app's lab of one tab of the browser: each tab composes its own scenario, and has it again after a reload.

Theory of operation
    The app starts a kernel for every page. The kernel that serves a tab's first page draws a name for it; a script puts
    the name into the page's address (``?tab=name``), where a reload finds it. A new tab begins with what was composed
    last, in whichever tab that was.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from pathlib import Path
from urllib.parse import parse_qs

from workbench.widgets.laboratory import Lab, lab
from workbench.widgets.store import FOLDER

_PREFIX = "app-"
_MOST_KEPT = 50  # files of tabs; the oldest go
_NAMED = """<script>
{{ const address = new URL(location.href)
  address.searchParams.set("tab", "{tab}")
  history.replaceState(null, "", address) }}
</script>"""


def lab_of_this_tab() -> Lab:
    """The lab of the tab that asked for this kernel's page."""
    from IPython.display import HTML, display

    tab = tab_asked_for(os.environ.get("QUERY_STRING", ""))
    if not tab:
        tab = secrets.token_hex(4)
        begin(tab)
    display(HTML(_NAMED.format(tab=tab)))
    return lab(name=f"{_PREFIX}{tab}")


def tab_asked_for(query: str) -> str:
    """The name of a tab in the query of an address; "" if there is none that could be one."""
    named = parse_qs(query).get("tab", [""])[-1]
    return named if re.fullmatch(r"[0-9a-f]{8}", named) else ""


def begin(tab: str, folder: Path = FOLDER) -> None:
    """Let a new tab begin with what was composed last, and forget the tabs that are oldest."""
    known = sorted(folder.glob(f"{_PREFIX}????????.json"), key=lambda path: path.stat().st_mtime)
    if known:
        shutil.copyfile(known[-1], folder / f"{_PREFIX}{tab}.json")
    for path in known[: len(known) + 1 - _MOST_KEPT]:
        path.unlink(missing_ok=True)
