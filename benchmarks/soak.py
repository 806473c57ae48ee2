"""Every protocol under hardship, at random: ``benchmarks/soak.py [--runs 200] [--seed N] [--engine fast]``.

Cases are drawn from seeds (`soak_cases.py`), played, and judged (`soak_detectors.py`). Printed are each case that shows
a fault, with the arguments that play it again, and a table by protocol and links. The exit code is 1 if there is one.
``--seed`` plays the one case of a seed; without it seeds are drawn from the clock, and printed. ``--shapes`` draws
whole networks on ideal links instead (`soak_shapes.py`): there nothing but a recent change excuses a missed delivery.
"""

import argparse
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator

from soak_cases import LARGEST, LENGTHS, LINKS, PROTOCOLS, Case, draw
from soak_detectors import Verdict, judge
from soak_shapes import CHANGES, SHAPES, draw_shape, play_with_reboots
from tables import table

from workbench.errors import DataError

HEADER = ["protocol", "links", "runs", "owed", "apart", "unsettled", "excused", "missed", "wrong", "repeated"]
HEADER += ["circling", "late", "restless", "parts", "whole s", "first s"]


def main() -> None:
    """Draw, play, judge, report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=None, help="stop after so many, whatever --runs says")
    parser.add_argument("--first", type=int, default=None, help="the first of the seeds; else from the clock")
    parser.add_argument("--seed", type=int, default=None, help="play this one alone")
    parser.add_argument("--protocol", choices=PROTOCOLS, action="append")
    parser.add_argument("--links", choices=LINKS, action="append")
    parser.add_argument("--length", choices=tuple(LENGTHS), action="append")
    parser.add_argument("--nodes", type=int, default=LARGEST, help="at most")
    parser.add_argument("--shapes", action="store_true", help="whole networks on ideal links")
    parser.add_argument("--shape", choices=tuple(SHAPES), action="append")
    parser.add_argument("--change", choices=CHANGES, action="append")
    parser.add_argument("--engine", choices=("fast", "reference", "both"), default="fast")
    options = parser.parse_args()
    faults = 0
    verdicts = defaultdict(list)
    for case in cases(options):
        verdict = play(case, options.engine)
        verdicts[case.protocol, case.links].append(verdict)
        if verdict.is_fault or options.seed is not None:
            faults += verdict.is_fault
            print(case, arguments(options), verdict, sep="\n    ", flush=True)
    print(report(verdicts))
    sys.exit(faults > 0)


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """The cases that are asked for; those that need what is not here are left out, and counted."""
    if options.seed is not None:
        yield _drawn(options.seed, options)
        return
    first = random.SystemRandom().randrange(1 << 30) if options.first is None else options.first
    print(f"seeds from {first} on; {arguments(options)}", flush=True)
    started, skipped = time.monotonic(), 0
    for seed in range(first, first + options.runs):
        if options.seconds is not None and time.monotonic() - started > options.seconds:
            break
        try:
            yield _drawn(seed, options)
        except DataError as error:
            skipped += 1
            reason = error
    if skipped:
        print(f"{skipped} cases left out: {reason}")


def _drawn(seed: int, options: argparse.Namespace) -> Case:
    protocols = options.protocol or PROTOCOLS
    if options.shapes:
        return draw_shape(seed, protocols, options.shape or tuple(SHAPES), options.change or CHANGES)
    return draw(seed, protocols, options.links or LINKS, options.length or tuple(LENGTHS), options.nodes)


def arguments(options: argparse.Namespace) -> str:
    """What a seed has to be drawn with to give the same case."""
    names = "protocol", "links", "length", "shape", "change"
    chosen = " ".join(f"--{name} {value}" for name in names for value in getattr(options, name) or ())
    return f"--shapes {chosen}" if options.shapes else chosen


def play(case: Case, engine: str) -> Verdict:
    """The verdict on a case; with both engines, their traces are one. Reboots are played by the reference engine."""
    if case.reboots:
        return judge(case, play_with_reboots(case))
    run = case.scenario.run(engine="reference" if engine == "reference" else "fast")
    if engine == "both":
        assert run.trace_hash == case.scenario.run(engine="reference").trace_hash, f"{case}: the engines differ"
    return judge(case, run)


def report(verdicts: dict[tuple[str, str], list[Verdict]]) -> str:
    """The table: sums, the longest time to a whole mesh, and to the first delivery after an outage."""
    rows = []
    for (protocol, links), some in sorted(verdicts.items()):
        sums = [f"{sum(column):,}" for column in list(zip(*some, strict=True))[:-2]]
        slowest = (f"{max(column):.0f}" for column in list(zip(*some, strict=True))[-2:])
        rows.append([protocol, links, str(len(some)), *sums, *slowest])
    return table(HEADER, rows)


if __name__ == "__main__":
    main()
