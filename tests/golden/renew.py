"""Golden traces of some small scenarios, stored as digests beside the scenario files.

A changed digest means that recorded results are no longer reproduced. If the change is intended (a protocol or the
radio behaves differently, a draw has another purpose), describe it in the change log and renew the digests with

    python -m tests.golden.renew

The counts of events show at a glance what has changed. The scenario files are never renewed, because old files must
stay readable.
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
