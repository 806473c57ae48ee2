"""The page of a sweep: sliders that choose one of its runs, a player, charts and metrics, in one file.

The page contains BokehJS, the player's script and the data of all runs, so it needs neither a kernel nor a network
connection. A click on a point of a chart chooses its run too.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.errors import ParameterError
from workbench.locations import local_path
from workbench.records import carriers
from workbench.records.record import to_text
from workbench.sweeps.progress import display_for
from workbench.sweeps.table import SweepTable
from workbench.views import rich
from workbench.views.charts.living import bokeh_script, chart_entry, fit, packed_items, script
from workbench.views.charts.static import Chart
from workbench.views.export import HEAD
from workbench.views.player.embed import SMALL, browser_file, compress, module_text, started_html
from workbench.views.player.payload import pack, split_payload
from workbench.views.seeing import see
from workbench.views.sweeps.summary import plot

MOST_RUNS = 400
NARROW = 360  # px, width of the charts on a phone
METRICS = ("delivery_ratio", "transmissions", "latency_ms_p50")


def save_html(
    table: SweepTable,
    path: str | Path,
    x: str | None = None,
    metrics: Sequence[str] = METRICS,
    by: str | None = None,
    progress: bool | None = None,
) -> Path:
    """Write a page in which sliders choose one of the runs of a sweep, and return its path.

    The page has a player, the metrics and the hash of the chosen run. It also has a chart of each of ``metrics``
    against the parameter ``x``, with a line for each value of ``by``. By default ``x`` is the first parameter with
    several values. All runs are executed again, because a sweep's table has no traces; runs that failed are left out.
    ``progress``: whether to show a progress bar, as for `Sweep.run`. Raises ParameterError for unknown names, and for a
    table with more than `MOST_RUNS` successful runs, or with none.
    """
    path = local_path(path, "path")
    page = page_html(table, x, metrics, by, progress)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def page_html(
    table: SweepTable, x: str | None, metrics: Sequence[str], by: str | None, progress: bool | None = None
) -> str:
    """Return the HTML of the page that `save_html` writes. Arguments and errors are those of `save_html`."""
    runs = [number for number, row in enumerate(table.rows) if row.error is None]
    if not runs:
        raise ParameterError("save_html: all runs of this table failed; table.failed states why")
    if len(runs) > MOST_RUNS:
        raise ParameterError(
            f"save_html: the table has {len(runs)} runs; a page can have at most {MOST_RUNS}; "
            "choose fewer values or seeds"
        )
    x = x or next((path for path in table.varied if path not in ("seed", by)), "seed")
    charts = [plot(table, x, name, by) for name in metrics]
    entries, columns = _pack_runs(table, runs, progress)
    data = {
        "axes": _describe_sliders(table),
        "runs": entries,
        "charts": [[*map(_embedded_chart, (chart, fit(chart, NARROW)))] for chart in charts],
    }
    record = charts[0].record if charts else None
    head = carriers.script_element(to_text(record())) if record else ""
    pictures = "".join(f'<div class="wb-sweep-chart">{chart.to_html()}</div>' for chart in charts)
    title = html.escape(f"{len(runs)} runs over {', '.join(map(table.name_of, table.varied))}")
    style = browser_file("page.css") + script("sweep.css")
    code = "\n".join([module_text(), script("chart.js"), script("sweep.js")])
    packed_code, data_bytes = compress(code.encode(), SMALL), json.dumps(data, ensure_ascii=False).encode()
    start = started_html("wsweep", data_bytes, packed_code, "workbenchSweepPage", SMALL)
    return (
        f"{HEAD}<title>{title}</title><style>{style}</style>{head}</head><body><main><h1>{title}</h1>"
        '<form class="wb-sweep-axes"></form><p class="wb-sweep-run" aria-live="polite"></p>'
        f'<div class="wb-sweep-player"></div><div class="wb-sweep-charts">{pictures}</div>'
        '<table class="metrics"></table>'
        f'<script type="text/plain" id="wb-columns">{base64.b64encode(columns).decode()}</script>'
        f'<script type="text/plain" id="wb-bokeh">{base64.b64encode(bokeh_script()).decode()}</script>'
        f"{start}</main></body></html>\n"
    )


def _describe_sliders(table: SweepTable) -> list[dict[str, Any]]:
    """Return a description of each slider of the page; a slider chooses the value of a parameter with several values.

    A description is {"title": ..., "values": the values as texts, "at": for each row of the table the index of its
    value}. If two runs have the same values of all these parameters, there is a single slider for the run's number.
    """
    frame = table.to_pandas()
    axes = []
    for path in table.varied:
        texts = frame[path].map(str)
        values = [str(value) for value in dict.fromkeys(sorted(frame[path]) if _is_numeric(frame[path]) else texts)]
        axes.append({"title": table.name_of(path), "values": values, "at": [values.index(text) for text in texts]})
    if len(set(zip(*(axis["at"] for axis in axes), strict=True))) == len(frame):
        return axes
    numbers = [*range(len(frame))]
    return [{"title": "run", "values": [str(number) for number in numbers], "at": numbers}]


def _is_numeric(column: Any) -> bool:
    return column.dtype.kind in "iuf"


def _pack_runs(table: SweepTable, runs: Sequence[int], progress: bool | None) -> tuple[list[dict[str, Any]], bytes]:
    """Execute runs again and return (a dictionary for each run, bytes with the compressed data of all runs).

    The entry "at" of a dictionary is the range [begin, end) of the run's data in these bytes: the compressed columns of
    its payload. The entry "header" is the payload's header, from `split_payload`. ``runs``: row numbers of the table.
    ``progress``: as for `save_html`.
    """
    display = display_for(progress)
    entries: list[dict[str, Any]] = []
    packed_columns = b""
    for count, number in enumerate(runs):
        display.show(count / len(runs), f"run {count + 1} of {len(runs)} for the page")
        row = table.rows[number]
        header, columns = split_payload(pack(see(table.run(number)), is_compact=True))
        columns = gzip.compress(columns, SMALL, mtime=0)
        entries.append(
            {
                "number": number,
                "caption": table.plan.text_of(row.number),
                "hash": row.scenario,
                "metrics": [[name, rich.write(float(value))] for name, value in row.metrics.items()],
                "header": header,
                "at": [len(packed_columns), len(packed_columns) + len(columns)],
            }
        )
        packed_columns += columns
    display.close(f"{len(runs)} runs are in the page")
    return entries, packed_columns


def _embedded_chart(chart: Chart) -> dict[str, Any]:
    return {**chart_entry(chart), "items": base64.b64encode(packed_items(chart)).decode()}
