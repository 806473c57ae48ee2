"""One workload on several protocols: what each of them sends, and how much of it carries data.

beside_table({name: run})    delivery, frames and bytes of each run, data and what it takes to find the way
beside_chart({name: run})    bytes as bars: data, and what is told besides
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.errors import ParameterError
from workbench.views import palette
from workbench.views.carried import carries_record
from workbench.views.drawing import Drawing, text_width

if TYPE_CHECKING:
    import pandas as pd

# Messages that carry what was published, in all protocols of the workbench.
DATA = frozenset(("publication", "data", "flood", "event", "notification", "coded", "piece"))
_SIZE = 12.0


def beside_table(runs: Mapping[str, Any]) -> pd.DataFrame:
    """A row for each run: delivery_ratio, frames, data_bytes, other_bytes, latency_ms. They need traces."""
    import pandas as pd

    rows = {}
    for name, run in runs.items():
        trace = run.trace.select(["event", "message", "size_B"]).to_pandas()
        sent = trace[trace["event"] == "sent"]
        is_data = sent["message"].isin(DATA)
        rows[name] = {
            "delivery_ratio": float(run.metrics["delivery_ratio"]),
            "frames": len(sent),
            "data_bytes": int(sent["size_B"][is_data].sum()),
            "other_bytes": int(sent["size_B"][~is_data].sum()),
            "latency_ms": float(run.metrics["latency_ms_p50"]),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


@carries_record
def beside_chart(table: Any, title: str = "Bytes sent for one workload", width: int = 720) -> Drawing:
    """The bytes of runs by name as bars, or of their `beside_table`; of the runs it carries the record.

    ParameterError for an empty table.
    """
    if isinstance(table, Mapping):
        table = beside_table(table)
    if not len(table):
        raise ParameterError("beside_chart: the table has no rows; it needs a run or more")
    high = 40
    drawing = Drawing(width, 66 + high * len(table), title=title)
    drawing.text(14, 22, title, size=14, bold=True)
    x = 14.0
    for said, colour in (("data", palette.DATA), ("all else: interests, filters, keys, answers", palette.SINK)):
        drawing.rectangle(x, 36, 14, 10, fill=colour)
        drawing.text(x + 20, 45, said, size=_SIZE - 1)
        x += 40 + 1.06 * text_width(said, _SIZE - 1)
    left = 26 + 1.06 * max(text_width(str(name), _SIZE) for name in table.index)
    room = width - left - 210
    most = max(float((table["data_bytes"] + table["other_bytes"]).max()), 1.0)
    for place, (name, row) in enumerate(table.iterrows()):
        y = 60 + place * high
        drawing.text(14, y + 18, str(name), size=_SIZE)
        x = left
        for column, colour in (("data_bytes", palette.DATA), ("other_bytes", palette.SINK)):
            wide = float(row[column]) / most * room
            drawing.rectangle(x, y + 4, wide, 20, fill=colour)
            x += wide
        total = row["data_bytes"] + row["other_bytes"]
        said = f"{total / 1000:,.0f} kB, {row['delivery_ratio']:.0%} delivered"
        drawing.text(x + 8, y + 18, said, size=_SIZE)
    return drawing
