"""Golden traces: what some small scenarios have always given, as digests beside the scenarios.

A digest that changes means that recorded results no longer come out as they did. When that is meant (a protocol or
the radio behaves otherwise, a draw has another purpose), say so in the change log and renew them with

    python -m tests.golden.renew

The counts of events are there to see at a glance what has changed. The scenario files are never renewed: that an old
file can still be read is a promise of its own.
"""

import json
from collections import Counter
from pathlib import Path

from workbench import Scenario

FOLDER = Path(__file__).parent
DIGESTS = FOLDER / "digests.json"
SUFFIX = ".scenario.json"
NAMES = sorted(path.name.removesuffix(SUFFIX) for path in FOLDER.glob("*" + SUFFIX))


def scenario(name: str) -> Scenario:
    """Return the golden scenario with a name such as ``"diffusion-grid"``."""
    return Scenario.from_json((FOLDER / (name + SUFFIX)).read_text())


def outcome(name: str) -> dict:
    """Return the results that a golden scenario gives now."""
    run = scenario(name).run(engine="reference")
    events = Counter(run.trace.column("event").to_pylist())
    return {"trace_hash": run.trace_hash, "events": dict(sorted(events.items()))}


if __name__ == "__main__":
    DIGESTS.write_text(json.dumps({name: outcome(name) for name in NAMES}, indent=2) + "\n")
