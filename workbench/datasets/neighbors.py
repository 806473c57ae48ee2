"""Links out of what motes report of their neighbors."""

from typing import TYPE_CHECKING

from workbench.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


def links_from_neighbors(frame: "pd.DataFrame") -> "pd.DataFrame":
    """A link table out of neighbor observations (columns round, node, source; packet, lqi, rssi, power_dBm if any).

    Columns: transmitter, receiver, pdr, rounds (how many counted), and the means of lqi, rssi and power_dBm over what
    was heard. Every mote sends once a round, so the delivery ratio is counted, not guessed from the LQI: of the
    rounds in which the receiver's report is here and somebody heard the transmitter, the share in which the receiver
    did. A report with a gap in its packet numbers was lost in part and does not count. Links never heard have pdr 0.
    """
    wanted = ("round", "node", "source")
    measures = [name for name in ("lqi", "rssi", "power_dBm") if name in frame.columns]
    lacking = [name for name in wanted if name not in frame.columns]
    if lacking:
        raise DataError(f"The neighbor observations have no column {lacking[0]!r}; they need {', '.join(wanted)}.")
    reports = _whole_reports(frame)
    sent = frame[["source", "round"]].drop_duplicates()
    trials = reports.merge(sent, on="round")
    trials = trials[trials["node"] != trials["source"]].groupby(["source", "node"]).size().rename("rounds")
    heard = frame.merge(reports, on=["node", "round"]).drop_duplicates(["source", "node", "round"])
    of_links = heard.groupby(["source", "node"])
    means = of_links[measures].mean().assign(count=of_links.size())
    links = trials.to_frame().join(means).reset_index()
    links["pdr"] = (links["count"].fillna(0) / links["rounds"]).round(6)
    links = links.rename(columns={"source": "transmitter", "node": "receiver"})
    return links[["transmitter", "receiver", "pdr", "rounds", *measures]]


def _whole_reports(frame: "pd.DataFrame") -> "pd.DataFrame":
    """(node, round) of the reports whose packet numbers run from 0 without a gap; all if there are none."""
    if "packet" not in frame.columns:
        return frame[["node", "round"]].drop_duplicates()
    packets = frame.groupby(["node", "round"])["packet"].agg(["max", "nunique"])
    return packets[packets["nunique"] == packets["max"] + 1].index.to_frame(index=False)
