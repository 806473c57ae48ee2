"""The part of publishing that runs in the notebook's kernel: it saves figures, and reports claims and libraries.

`start` adds a hook to the display of values. Each `Drawing` that a cell displays is also saved as SVG and PDF, with the
record of its runs. A player, and a slider over drawings, get a static figure beside them, which is printed in their
place. `finish` writes a report.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.records.verdicts import claims
from workbench.views.drawing import Drawing
from workbench.views.notebook import ShownRun
from workbench.views.stepper import Stepper

REPORT = "report.json"
FIGURES = "figures"
# Classes of elements in published HTML: on screen only, and in print only.
ON_SCREEN, PRINTED = "wb-on-screen", "wb-printed"

_collector: Collector | None = None


class Collector:
    """A collector of the figures that the cells of a notebook display; ``folder`` is where their files are saved."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.figures: list[dict[str, Any]] = []
        self.problems: list[str] = []

    def save(self, drawing: Drawing, cell: int, title: str = "") -> None:
        """Save a drawing as figure-NN.svg and figure-NN.pdf, and add it to the list of figures.

        ``cell`` is the execution count of the cell that displays it. Without matplotlib only the SVG file is saved.
        """
        figures = self.folder / FIGURES
        figures.mkdir(exist_ok=True)
        name = f"figure-{len(self.figures) + 1:02d}"
        record = None if drawing.record is None else drawing.record()
        files = [figures / f"{name}.svg"]
        files[0].write_text(drawing.to_svg(), encoding="utf-8")
        try:
            (figures / f"{name}.pdf").write_bytes(drawing.to_pdf())
            files.append(figures / f"{name}.pdf")
        except WorkbenchError as error:  # matplotlib is not installed
            self.problems.append(f"{name} is saved as SVG only: {error}")
        self.figures.append(
            {
                "files": [f"{FIGURES}/{path.name}" for path in files],
                "title": title or drawing.title,
                "cell": cell,
                "hashes": hashes_in(record),
            }
        )

    def collect(self, value: Any, cell: int) -> str:
        """Save the figures of a value that a cell displays; ``cell`` is the cell's execution count.

        Return HTML that is printed in place of the value, or "" if the value itself is printed.
        """
        if isinstance(value, Drawing):
            self.save(value, cell)
        elif isinstance(value, Stepper):
            for drawing in value.drawings:
                self.save(drawing, cell)
            return value.drawings[-1].to_image_html()
        elif isinstance(value, ShownRun):
            drawing = poster(value)
            self.save(drawing, cell)
            return drawing.to_image_html()
        return ""


def poster(shown: ShownRun) -> Drawing:
    """Return a figure of a run, as a printed substitute for its player.

    The figure shows the time at which the player begins, which is chosen because it explains the most.
    """
    from workbench.views.carried import carries_record
    from workbench.views.figure import draw
    from workbench.views.player.payload import poster_us
    from workbench.views.seeing import see

    view = see(shown.run, shown.event)
    return carries_record(lambda run: draw(view, poster_us(view)))(shown.run)


def start(folder: str) -> None:
    """Begin to save the figures that the cells of this kernel display; ``folder`` is where they are saved."""
    global _collector
    shell = _get_shell()
    collector = _collector = Collector(Path(folder))
    original = shell.display_formatter.format

    def format_and_collect(value: Any, include: Any = None, exclude: Any = None) -> tuple[Any, Any]:
        data, metadata = original(value, include, exclude)
        # In JupyterLab, this is the number beside a cell: [4].
        printed = collector.collect(value, shell.execution_count)
        if printed and "text/html" in data:
            html = f'<div class="{ON_SCREEN}">{data["text/html"]}</div><div class="{PRINTED}">{printed}</div>'
            data = data | {"text/html": html}
        return data, metadata

    shell.display_formatter.format = format_and_collect


def finish() -> None:
    """Write the claims, the list of figures and the names of imported distributions into the file `REPORT`."""
    if _collector is None:
        raise WorkbenchError("publishing was not started in this kernel, so there is nothing to report")
    report = {
        "claims": [claim.to_dict() for claim in claims()],
        "figures": _collector.figures,
        "problems": _collector.problems,
        "distributions": sorted(imported_distributions()),
    }
    (_collector.folder / REPORT).write_text(json.dumps(report), encoding="utf-8")


def imported_distributions() -> set[str]:
    """Return the names of the installed distributions from which this process has imported a module."""
    names = importlib.metadata.packages_distributions()
    return {name for module in {name.partition(".")[0] for name in sys.modules} for name in names.get(module, ())}


def hashes_in(record: Any) -> list[str]:
    """Return the digests of traces and of sweeps' rows that a record contains; [] if ``record`` is None."""
    if record is None:
        return []
    runs = [record, *record.get("runs", ())]
    return [str(run[name]) for run in runs for name in ("trace_hash", "rows_digest") if run.get(name)]


def _get_shell() -> Any:
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        raise WorkbenchError("publishing collects the outputs of a notebook; this process is not a notebook's kernel")
    return shell
