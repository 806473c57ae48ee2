"""The lab of ``workbench app`` in a browser tab: each tab has its own scenario, which survives a reload.

Theory of operation
    Voilà starts a Python kernel for every page that is loaded. The kernel of the first page in a tab chooses a random
    name for the tab. A script in the page adds the name to the page's address (``?tab=name``). After a reload, the new
    kernel finds the name there. A new tab begins with the scenario that was composed last in any tab.
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
_MOST_FILES = 50  # one for each tab; the oldest files are deleted
_NAMING_SCRIPT = """<script>
{{ const address = new URL(location.href)
  address.searchParams.set("tab", "{tab}")
  history.replaceState(null, "", address) }}
</script>"""


def lab_of_this_tab() -> Lab:
    """Open the lab of the browser tab whose page started this kernel."""
    from IPython.display import HTML, display

    tab = tab_asked_for(os.environ.get("QUERY_STRING", ""))
    if not tab:
        tab = secrets.token_hex(4)
        begin(tab)
    display(HTML(_NAMING_SCRIPT.format(tab=tab)))
    return lab(name=f"{_PREFIX}{tab}")


def tab_asked_for(query: str) -> str:
    """Return the tab's name in the query part of a page's address, or "" if the query has no valid name."""
    name = parse_qs(query).get("tab", [""])[-1]
    return name if re.fullmatch(r"[0-9a-f]{8}", name) else ""


def begin(tab: str, folder: Path = FOLDER) -> None:
    """Copy the file of the tab that was changed last to that of the new tab ``tab``; delete files of the oldest tabs.

    So a new tab begins with the scenario that was composed last. ``folder``: where labs are stored.
    """
    tab_files = sorted(folder.glob(f"{_PREFIX}????????.json"), key=lambda path: path.stat().st_mtime)
    if tab_files:
        shutil.copyfile(tab_files[-1], folder / f"{_PREFIX}{tab}.json")
    for path in tab_files[: len(tab_files) + 1 - _MOST_FILES]:
        path.unlink(missing_ok=True)
