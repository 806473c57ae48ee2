"""A comparison of protocols under one workload: the frames and bytes that each sends, and the share that is data.

beside_table({name: run})    delivery ratio, frames, and bytes of data and of other messages, a row for each run
beside_chart({name: run})    the bytes as bars: data, and all other messages
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

# Names of the messages that carry published data, in all protocols of the workbench.
DATA = frozenset(("publication", "data", "flood", "event", "notification", "coded", "piece"))
_SIZE = 12.0


def beside_table(runs: Mapping[str, Any]) -> pd.DataFrame:
    """Tabulate delivery_ratio, frames, data_bytes, other_bytes and latency_ms, a row for each run.

    The runs need traces. ``latency_ms`` is the median.
    """
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
    """Chart the bytes sent, a bar for each run; ``table`` is {name: run} or a `beside_table`.

    If ``table`` has runs, the drawing stores their record (scenario and digests). Raises ParameterError for an empty
    table.
    """
    if isinstance(table, Mapping):
        table = beside_table(table)
    if not len(table):
        raise ParameterError("beside_chart: the table has no rows; it needs at least one")
    high = 40
    drawing = Drawing(width, 66 + high * len(table), title=title)
    drawing.text(14, 22, title, size=14, bold=True)
    x = 14.0
    for label, colour in (("data", palette.DATA), ("all else: interests, filters, keys, answers", palette.SINK)):
        drawing.rectangle(x, 36, 14, 10, fill=colour)
        drawing.text(x + 20, 45, label, size=_SIZE - 1)
        x += 40 + 1.06 * text_width(label, _SIZE - 1)
    left = 26 + 1.06 * max(text_width(str(name), _SIZE) for name in table.index)
    bar_width = width - left - 210
    largest = max(float((table["data_bytes"] + table["other_bytes"]).max()), 1.0)
    for index, (name, row) in enumerate(table.iterrows()):
        y = 60 + index * high
        drawing.text(14, y + 18, str(name), size=_SIZE)
        x = left
        for column, colour in (("data_bytes", palette.DATA), ("other_bytes", palette.SINK)):
            wide = float(row[column]) / largest * bar_width
            drawing.rectangle(x, y + 4, wide, 20, fill=colour)
            x += wide
        total = row["data_bytes"] + row["other_bytes"]
        result = f"{total / 1000:,.0f} kB, {row['delivery_ratio']:.0%} delivered"
        drawing.text(x + 8, y + 18, result, size=_SIZE)
    return drawing
