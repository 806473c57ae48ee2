"""A check of the verdicts of lesson 11 with other seeds than those of its text.

    .venv/bin/python -m benchmarks.which_protocol [FIRST_SEED ...]        (default: 40001 50001)

It executes the cells of notebooks/11-which-protocol.ipynb with each first seed, and prints each claim of the text with
the numbers that support or contradict it. Each seed takes about four minutes on two cores.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "notebooks" / "11-which-protocol.ipynb"


def execute_notebook(first_seed: int) -> dict[str, Any]:
    """Execute the notebook's cells, except exercises, with another first seed; return {name: value} of its names."""
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code" and "exercise" not in cell["metadata"].get("tags", ()):
            exec(compile("".join(cell["source"]), NOTEBOOK.name, "exec"), names)
            if "parameters" in cell["metadata"].get("tags", ()):
                names["first_seed"] = first_seed
    return names


def check_claims(names: dict[str, Any]) -> Iterator[tuple[str, bool, str]]:
    """Yield (claim of the lesson's text, whether it holds, the numbers that decide it).

    ``names`` is the result of `execute_notebook`.
    """
    frames = names["compared"].winners("transmissions", "sinks", "every_s").set_index(["sinks", "every_s"])
    rare = [frames.loc[sinks, every_s] for sinks in names["sinks"] for every_s in names["intervals_s"] if every_s >= 60]
    yield (
        "rare readings: flooding, with any number of sinks",
        all(cell["best"] == "Flooding" and cell["verdict"] == "certain" for cell in rare),
        f"{sum(cell['best'] == 'Flooding' for cell in rare)} of {len(rare)} cells",
    )
    for sinks, every_s, name in (
        (1, 2, "Diffusion"),
        (1, 10, "Diffusion"),
        (2, 10, "TinyMQ"),
        (5, 2, "TinyMQ"),
    ):
        cell = frames.loc[sinks, every_s]
        is_open = cell["second"] == name and cell["verdict"] == "open"
        claim = f"{sinks} sinks, every {every_s} s: {name} is the best, or not certainly worse"
        yield claim, cell["best"] == name or is_open, _describe(cell)
    for sinks, both in ((2, ("Diffusion", "TinyMQ")), (10, ("TinyMQ", "DPS"))):
        cell = frames.loc[sinks, 2]
        yield f"{sinks} sinks, every 2 s: {' or '.join(both)}", cell["best"] in both, _describe(cell)
    many = names["many"].winners("transmissions", "sources", "every_s").set_index(["sources", "every_s"])
    yield "60 sources, every 60 s: Diffusion", many.loc[60, 60]["best"] == "Diffusion", _describe(many.loc[60, 60])
    yield "3 sources, every 60 s: Flooding", many.loc[3, 60]["best"] == "Flooding", _describe(many.loc[3, 60])
    sent = names["compared"].winners("bytes_sent", "sinks", "every_s").set_index(["sinks", "every_s"]).loc[10, 2]
    yield "10 sinks, every 2 s, in bytes: flooding", sent["best"] == "Flooding", _describe(sent)
    delivery = names["compared"].summary().set_index("protocol")["mean"]
    yield "gossip delivers less than 95 %, the others more", _only_gossip(delivery), delivery.round(3).to_dict()
    grid = names["rows"]["grid"]
    yield "on a grid flooding loses readings, and unicasts do not", _is_flooding_unreliable(grid), grid.to_dict()
    asleep = names["asleep"].winners("charge_mC", "sinks", "every_s").set_index(["sinks", "every_s"])
    for sinks in (1, 5):
        for every_s, name in ((10, "Diffusion"), (300, "Flooding")):
            cell = asleep.loc[sinks, every_s]
            yield f"asleep, {sinks} sinks, every {every_s} s: {name}", cell["best"] == name, _describe(cell)


def _describe(cell: Any) -> str:
    return f"{cell['best']} {cell['mean']:,.0f}, then {cell['second']}: {cell['difference']:,.0f} ({cell['verdict']})"


def _only_gossip(delivery: Any) -> bool:
    return delivery["Gossip"] < 0.95 and bool((delivery.drop("Gossip") >= 0.95).all())


def _is_flooding_unreliable(grid: Any) -> bool:
    share = {name: float(text.partition("(")[2].rstrip("%)")) for name, text in grid.items()}
    return share["Flooding"] < 95 and all(share[name] >= 99 for name in ("Diffusion", "TinyMQ", "DPS"))


def main() -> None:
    """Print the claims and whether they hold, for each seed."""
    sys.path.insert(0, str(ROOT / "notebooks"))
    for first_seed in map(int, sys.argv[1:] or ("40001", "50001")):
        names = execute_notebook(first_seed)
        print(f"\nseeds from {first_seed} on")
        for claim, holds, numbers in check_claims(names):
            print(f"  {'holds' if holds else 'FAILS':6} {claim}: {numbers}", flush=True)


if __name__ == "__main__":
    main()
