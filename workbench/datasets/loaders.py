"""Loaders of logs as pandas DataFrames with units in column names, and links from neighbor observations."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from workbench.errors import DataError
from workbench.topology.graphs import is_number

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from workbench.datasets.formats import LineFormat


def ulb_readings(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Load readings of the ULB library motes (R1.txt).

    Columns: time_s (Unix time), node, sequence, internal_temperature_C (of the processor), voltage_V, humidity_pct,
    temperature_C, par and tsr (light, photosynthetically active and total, as logged). The format writes decimal
    commas, and numbers above 999 in groups of three digits: "1 012" is sequence 1012.
    """
    from workbench.datasets.formats import ULB_READINGS

    return _load_file(path, ULB_READINGS)


def ulb_neighbors(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Load neighbor observations of the ULB library motes (N1.txt): ``node`` reports that it heard ``source``.

    Columns: time_s (Unix time of the report), packet (number of the packet within the report, from 0), round (one a
    minute), node, source, lqi, rssi, power_dBm. A report consists of up to nine packets. Each packet reports up to two
    neighbors, and each reported neighbor is a row.

    lqi is converted as the publishers of the log prescribe: 383 - x for a logged x above 128, else 128 - x; rssi is as
    logged. The logged numbers show that the log has swapped the two fields. The field called LQI wraps around 0 as the
    CC2420's signed RSSI register does, and is nearly the same in both directions of a link (correlation 0.97). The
    field called RSSI is a CC2420 LQI of 65 to 108 plus the CRC flag, 128. So power_dBm interprets the field called LQI
    by the CC2420's data sheet: 8 bits, signed, 45 above the received power in dBm.
    """
    from workbench.datasets.formats import ULB_NEIGHBORS

    return _load_file(path, ULB_NEIGHBORS)


def intel_readings(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Load readings of the Intel Lab motes (data.txt).

    Columns: time_s (Unix time, the log's local time taken as UTC), epoch, node, temperature_C, humidity_pct,
    light_lux, voltage_V. The log has many cut lines, which are skipped. It has senseless values (122 °C) from motes
    with an empty battery (below about 2.4 V), which stay (`workbench.pipelines.clean` removes them).
    """
    from workbench.datasets.formats import INTEL_READINGS

    return _load_file(path, INTEL_READINGS)


def intel_connectivity(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Load the links of the Intel Lab (connectivity.txt). Columns: transmitter, receiver, pdr (delivery ratio).

    The result fits ``workbench.topology.from_links``. A mote's entry for itself is skipped, and so are repeated links.
    """
    from workbench.datasets.formats import INTEL_CONNECTIVITY

    return _load_file(path, INTEL_CONNECTIVITY)


def intel_positions(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Load the positions of the Intel Lab motes (mote_locs.txt). Columns: node, x_m, y_m."""
    from workbench.datasets.formats import INTEL_POSITIONS

    return _load_file(path, INTEL_POSITIONS)


def _load_file(path: str | os.PathLike[str], form: LineFormat) -> pd.DataFrame:
    """Return a DataFrame of the valid lines of a file, with the counts of lines in its ``attrs``."""
    from workbench.datasets.parts import Tally, parts_of

    line_counts = Tally()
    frame = frame_of([form.schema.empty_table(), *(part.rows for _, part in parts_of(path, form, line_counts))])
    frame.attrs.update(vars(line_counts))
    return frame


def frame_of(tables: list[pa.Table]) -> pd.DataFrame:
    """Join tables into one pandas frame with writable columns. The list ``tables`` is emptied to free memory."""
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    rows = pa.concat_tables(tables)
    tables.clear()
    columns = {}
    for name in rows.column_names:
        columns[name] = np.array(rows[name])
        rows = rows.drop_columns(name)
    return pd.DataFrame(columns, copy=False)


def links_from_neighbors(frame: pd.DataFrame, every_s: float | None = None) -> pd.DataFrame:
    """Compute a table of links from neighbor observations: a row for each pair of transmitter and receiver.

    ``frame`` is a table such as `ulb_neighbors` returns. It has the columns round (number of the period in which every
    node sends once), node (which reports) and source (which the node heard), and optionally packet, lqi, rssi and
    power_dBm. Columns of the result: transmitter, receiver, pdr, rounds (number of rounds counted), and the means of
    lqi, rssi and power_dBm of the received frames.

    With ``every_s``, the result has a row for each pair and each interval of ``every_s`` seconds, and the further
    column from_s, the beginning of the interval; ``wb.link_trace`` takes such a table. ``frame`` then needs the column
    time_s. A round belongs to the interval of its first observation.

    Every mote sends once a round, so the delivery ratio pdr is counted, not estimated from the LQI. A round counts if
    the receiver's report is complete and any mote heard the transmitter. The pdr is the share of these rounds in which
    the receiver heard the transmitter; it is 0 if the receiver never heard it. A report with a gap in its packet
    numbers was lost in part and is not complete.
    """
    required_columns = ("round", "node", "source")
    measures = [name for name in ("lqi", "rssi", "power_dBm") if name in frame.columns]
    missing_columns = [name for name in required_columns if name not in frame.columns]
    if missing_columns:
        raise DataError(
            f"The neighbor observations have no column {missing_columns[0]!r}; they need {', '.join(required_columns)}."
        )
    if every_s is not None:
        return _compute_interval_links(frame, every_s)
    reports = _select_complete_reports(frame)
    sent_rounds = frame[["source", "round"]].drop_duplicates()
    trials = reports.merge(sent_rounds, on="round")
    trials = trials[trials["node"] != trials["source"]].groupby(["source", "node"]).size().rename("rounds")
    heard_frames = frame.merge(reports, on=["node", "round"]).drop_duplicates(["source", "node", "round"])
    frames_by_link = heard_frames.groupby(["source", "node"])
    link_means = frames_by_link[measures].mean().assign(count=frames_by_link.size())
    links = trials.to_frame().join(link_means).reset_index()
    links["pdr"] = (links["count"].fillna(0) / links["rounds"]).round(6)
    links = links.rename(columns={"source": "transmitter", "node": "receiver"})
    return links[["transmitter", "receiver", "pdr", "rounds", *measures]]


def _compute_interval_links(frame: pd.DataFrame, every_s: float) -> pd.DataFrame:
    if not is_number(every_s) or not every_s > 0:
        raise DataError(f"every_s is {every_s!r:.40}; it must be a number of seconds above 0")
    if "time_s" not in frame.columns:
        raise DataError("the observations have no column time_s; links for intervals (every_s) need it")
    import pandas as pd

    begin_s = frame["time_s"].min()
    round_begin_s = frame.groupby("round")["time_s"].transform("min")
    from_s = begin_s + (round_begin_s - begin_s) // every_s * every_s
    links = [links_from_neighbors(part).assign(from_s=start_s) for start_s, part in frame.groupby(from_s)]
    joined = pd.concat(links, ignore_index=True)
    return joined[["transmitter", "receiver", "from_s", *joined.columns.drop(["transmitter", "receiver", "from_s"])]]


def _select_complete_reports(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table of the complete reports, with the columns node and round.

    A report is the packets of a node in a round; it is complete if their numbers run from 0 without a gap. If ``frame``
    has no column packet, all reports count as complete.
    """
    if "packet" not in frame.columns:
        return frame[["node", "round"]].drop_duplicates()
    packets = frame.groupby(["node", "round"])["packet"].agg(["max", "nunique"])
    return packets[packets["nunique"] == packets["max"] + 1].index.to_frame(index=False)
