"""Golden views: digests, in views.json, of the texts that the views make of some runs.

A changed digest means that the text of a picture, a table or a page has changed. If the change is intended, renew the
digests with

    python -m tests.golden.renew_views [FOLDER]

With FOLDER, each text is also written to FOLDER/group/name.svg (.html, .json, .txt): do so before and after a change,
and compare the files that differ by eye. The length of each text and its numbers of elements by kind show at a glance
what has changed. `pictures.py` makes the texts.
"""

import hashlib
import json
import re
import sys
from importlib.metadata import version
from pathlib import Path

from tests.repository import REPOSITORY

# pytest has both folders in `pythonpath`.
sys.path[:0] = [str(REPOSITORY / "notebooks"), str(REPOSITORY / "notebooks/papers")]

from tests.golden import pictures  # noqa: E402

VIEWS = Path(__file__).parent / "views.json"
ENDINGS = {"<svg": ".svg", "<": ".html", "{": ".json"}


def recorded():
    """Return the record: {"bokeh": its version, "views": {group: {view: its outcome}}}."""
    return json.loads(VIEWS.read_text(encoding="utf-8"))


def outcome(texts):
    """Return the outcome to be recorded for each text, by name."""
    return {
        name: {
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "length": len(text),
            "elements": pictures.elements(text),
        }
        for name, text in texts.items()
    }


def write(texts, folder):
    """Write each text into a separate file of the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        ending = next((ending for begin, ending in ENDINGS.items() if text.startswith(begin)), ".txt")
        (folder / (re.sub(r"[^\w.+-]+", "-", name) + ending)).write_text(text, encoding="utf-8")


def _lines(outcomes):
    """Return JSON with a line for each view, so that a diff of the file is readable."""
    groups = []
    for group, views in outcomes.items():
        rows = ",\n".join(f"      {json.dumps(name)}: {json.dumps(view)}" for name, view in views.items())
        groups.append(f"    {json.dumps(group)}: {{\n{rows}\n    }}")
    begin = f'{{\n  "bokeh": {json.dumps(version("bokeh"))},\n  "views": {{\n'
    return begin + ",\n".join(groups) + "\n  }\n}\n"


if __name__ == "__main__":
    outcomes = {}
    for group in pictures.GROUPS:
        texts = pictures.texts(group)
        outcomes[group] = outcome(texts)
        if len(sys.argv) > 1:
            write(texts, Path(sys.argv[1]) / group)
    VIEWS.write_text(_lines(outcomes), encoding="utf-8")
