"""Motes of all kinds against the simulator: ``benchmarks/c_lockstep.py [--scenarios 300] [--first 0] [--kinds ...]``.

The golden scenarios that motes in C can run, then random networks (`tests/c/networks.py`), with filters and without,
run in lockstep: on processes in C, on emulated Cortex-M3, and on a mixture with MicroPython and simulated nodes. The
first trace that differs from the simulator's in any row ends the program with the scenario's number. `workbench doctor`
lists the tools of each kind. A kind whose tools are missing is skipped.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import workbench as wb
from tests.c.networks import random_flood, random_kinds, random_scenario
from tests.golden import renew
from workbench import motes
from workbench.errors import LinkError, WorkbenchError
from workbench.sim import trace

MIXED = "mixed"


def golden_scenarios() -> Iterator[tuple[str, Any, str]]:
    """Yield (name, scenario, digest of its trace) of each golden scenario that a mote in C can run."""
    recorded = json.loads(renew.DIGESTS.read_text(encoding="utf-8"))
    for name in renew.NAMES:
        scenario = renew.scenario(name)
        if scenario.protocol.sizes_in_c() is not None:
            yield name, scenario, recorded[name]["trace_hash"]


def random_scenarios(first: int, count: int) -> Iterator[tuple[str, Any, str]]:
    """Yield (number, scenario, digest of its trace) of random scenarios; every fifth is of flooding.

    Scenarios that the protocol refuses are skipped.
    """
    for number in range(first, first + count):
        scenario = random_flood(number) if number % 5 == 4 else random_scenario(number)
        try:
            run = scenario.run(engine="reference")
        except WorkbenchError:
            continue
        yield str(number), scenario, run.trace_hash


def check_lockstep(name: str, scenario: Any, expected: str, kind: str) -> int:
    """Play a scenario on motes of ``kind`` in lockstep, and return the number of rows of its trace.

    ``expected`` is the digest of the simulator's trace. Raises AssertionError if the motes' trace has another digest.
    """
    nodes = sorted(scenario.topology.nodes)
    kinds = random_kinds(len(nodes), nodes) if kind == MIXED else kind
    try:
        run = scenario.run(on=wb.motes.virtual(lockstep=True, kind=kinds))
    except LinkError as error:
        if "memory access out of bounds" not in str(error):  # MicroPython crashes once in a hundred runs
            raise
        run = scenario.run(on=wb.motes.virtual(lockstep=True, kind=kinds))
    assert trace.digest(run.trace) == expected, f"{kind}: scenario {name} gives another trace"
    return len(run.trace)


def main() -> None:
    """Compare all scenarios on each kind, and print the number of networks and rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scenarios", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", default=[motes.C, motes.CORTEX_M3, MIXED])
    options = parser.parse_args()
    missing = {kind: motes.missing(kind) for kind in (motes.C, motes.CORTEX_M3, motes.MICROPYTHON)}
    for kind in options.kinds:
        reasons = [reason for needed, reason in missing.items() if reason and kind in (needed, MIXED)]
        if reasons:
            print(f"{kind}: left out, for {reasons[0]}")
            continue
        begun, rows, networks = time.perf_counter(), 0, 0
        for name, scenario, expected in (*golden_scenarios(), *random_scenarios(options.first, options.scenarios)):
            rows += check_lockstep(name, scenario, expected, kind)
            networks += 1
        seconds = time.perf_counter() - begun
        print(f"{kind}: {networks} networks, {rows:,} rows, each the simulator's ({seconds:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
