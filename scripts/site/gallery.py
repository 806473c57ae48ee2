"""The gallery of living pages: each scenario of `workbench.gallery` is run, and its page plays the run.

A page of the gallery has the question of the scenario, the run, the lines of Python that made it, its metrics, and why
readings are missing. A run that an earlier build saved is used again if the scenario and the code are the same.
"""

from __future__ import annotations

import hashlib
import html
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import workbench as wb
from workbench.sim.python_lines import python_lines

REPOSITORY = Path(__file__).parents[2]
# Metrics in the table of a page -> their names and units there.
SHOWN = {
    "expected": "expected readings",
    "delivered": "delivered readings",
    "delivery_ratio": "delivery ratio",
    "latency_ms_p50": "median latency, ms",
    "transmissions": "frames sent",
    "bytes_sent": "bytes sent",
    "energy_mJ": "energy of these bytes, mJ",
}
PICTURE_SHARE = 0.5  # of the duration: the time that the picture of a run shows


def pages(extra: Path) -> dict[str, str]:
    """Return {path: Markdown} of the gallery; write its living pages and pictures into the folder ``extra``.

    The result is also stored in ``extra``, with a digest of the code. While the code is unchanged, later builds return
    the stored pages.
    """
    state = extra / "state.json"
    if state.is_file():
        stored = json.loads(state.read_text(encoding="utf-8"))
        if stored["digest"] == code_digest():
            return dict(stored["pages"])
    (extra / "pictures").mkdir(parents=True, exist_ok=True)
    contents = {f"{name}.md": _make_page(name, extra) for name in wb.gallery.names()} | {"index.md": _format_index()}
    state.write_text(json.dumps({"digest": code_digest(), "pages": contents}), encoding="utf-8")
    return contents


def code_digest() -> str:
    """Return a digest of the package's files and of this module, from which the gallery is made."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    files = [path for path in (REPOSITORY / "workbench").rglob("*") if path.suffix in (".py", ".js", ".css", ".json")]
    for path in sorted(files):
        digest.update(path.relative_to(REPOSITORY).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def lines_of(name: str) -> str:
    """Return a Python program that makes the living page of the gallery's scenario ``name``."""
    scenario = wb.gallery.model(name).scenario
    return f'import workbench as wb\n\n{python_lines(scenario)}run = scenario.run()\nrun.save_html("{name}.html")\n'


def _make_page(name: str, extra: Path) -> str:
    """Run the gallery's scenario ``name``, write its living page and picture, and return its Markdown page."""
    model = wb.gallery.model(name)
    runs = {type(model.scenario.protocol).__name__: model.scenario.run()}
    if model.beside is not None:
        runs[f"{type(model.beside).__name__}, for comparison"] = model.scenario.replace(protocol=model.beside).run()
    run = next(iter(runs.values()))
    run.save_html(extra / "living" / f"{name}.html")
    run.figure(time_s=model.scenario.duration_s * PICTURE_SHARE).save(extra / "pictures" / f"{name}.svg")
    return _format_page(name, runs)


def _format_page(name: str, runs: Mapping[str, Any]) -> str:
    model = wb.gallery.model(name)
    run = next(iter(runs.values()))
    title = html.escape(model.title, quote=True)
    explanation = run.explain()
    reasons = [explanation.headline, "", *(f"* {_escape_markdown(sentence)}" for sentence in explanation.sentences), ""]
    header = f"| | {' | '.join(runs)} |\n|---|{'--:|' * len(runs)}"
    rows = [
        f"| {label} | {' | '.join(_format_number(other.metrics[metric]) for other in runs.values())} |"
        for metric, label in SHOWN.items()
        if metric in run.metrics
    ]
    return "\n".join(
        [
            f"# {model.title}",
            "",
            f"**{model.question}**",
            "",
            "```{raw} html",
            f'<iframe class="wb-living" src="living/{name}.html" title="The run: {title}" loading="lazy"></iframe>',
            f'<p><a href="living/{name}.html">Open the run on a page of its own</a>, which needs no network.</p>',
            "```",
            "",
            "## The lines that made it",
            "",
            "```python",
            lines_of(name).rstrip(),
            "```",
            "",
            f'The same scenario is `wb.gallery.model("{name}").scenario`. In the lab:',
            f'`wb.lab(wb.gallery.model("{name}").scenario)`.',
            "",
            "## Its metrics",
            "",
            header,
            *rows,
            "",
            "## What `run.explain()` returns",
            "",
            *reasons,
        ]
    )


def _escape_markdown(sentence: str) -> str:
    """Return a sentence for Markdown: characters that have a meaning there are escaped."""
    return "".join(f"\\{character}" if character in "\\`*_[]<>{}#|" else character for character in sentence)


def _format_number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "–"
    return f"{value:,.3g}" if isinstance(value, float) and abs(value) < 1000 else f"{value:,.0f}"


def _format_index() -> str:
    lines = [
        "# Gallery",
        "",
        "Each scenario answers one question. Its page plays the run in the browser and shows the lines of Python that",
        "made it.",
        "",
        "```{raw} html",
        '<ul class="wb-gallery">',
    ]
    for name in wb.gallery.names():
        model = wb.gallery.model(name)
        lines += [
            f'<li><a href="{name}.html"><img src="pictures/{name}.svg" alt="" loading="lazy">',
            f"<strong>{html.escape(model.title)}</strong></a><p>{html.escape(model.question)}</p></li>",
        ]
    lines += ["</ul>", "```", "", "```{toctree}", ":hidden:", "", *wb.gallery.names(), "```", ""]
    return "\n".join(lines)
