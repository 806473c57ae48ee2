"""All protocols in random scenarios with failures: ``benchmarks/soak.py [--runs 200] [--seed N] [--engine fast]``.

Cases are drawn from seeds (`soak_cases.py`), played, and judged (`soak_detectors.py`). The program prints each case
with a fault, with the arguments that play it again, and a table by protocol and links. The exit code is 1 if a case has
a fault. ``--seed`` plays only the case of that seed; without it seeds are drawn from the clock, and printed.
``--shapes`` draws whole networks on ideal links instead (`soak_shapes.py`), where only a recent change excuses a missed
delivery.
"""

import argparse
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator

from soak_cases import LARGEST, LENGTHS, LINKS, PROTOCOLS, Case, draw
from soak_detectors import Verdict, judge
from soak_shapes import CHANGES, SHAPES, draw_shape
from tables import table

from workbench.errors import DataError

HEADER = ["protocol", "links", "runs", "expected", "apart", "unsettled", "excused", "missed", "wrong", "repeated"]
HEADER += ["circling", "late", "restless", "parts", "whole s", "first s"]


def main() -> None:
    """Play and judge the cases, and print the faults and the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=None, help="stop after this time, before all --runs")
    parser.add_argument("--first", type=int, default=None, help="the first seed; otherwise drawn from the clock")
    parser.add_argument("--seed", type=int, default=None, help="play only the case of this seed")
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
    """Yield the cases that the options select; skip cases that need missing data sets, and print their number."""
    if options.seed is not None:
        yield _draw_case(options.seed, options)
        return
    first = random.SystemRandom().randrange(1 << 30) if options.first is None else options.first
    print(f"seeds from {first} on; {arguments(options)}", flush=True)
    started, skipped = time.monotonic(), 0
    for seed in range(first, first + options.runs):
        if options.seconds is not None and time.monotonic() - started > options.seconds:
            break
        try:
            yield _draw_case(seed, options)
        except DataError as error:
            skipped += 1
            reason = error
    if skipped:
        print(f"{skipped} cases left out: {reason}")


def _draw_case(seed: int, options: argparse.Namespace) -> Case:
    protocols = options.protocol or PROTOCOLS
    if options.shapes:
        return draw_shape(seed, protocols, options.shape or tuple(SHAPES), options.change or CHANGES)
    return draw(seed, protocols, options.links or LINKS, options.length or tuple(LENGTHS), options.nodes)


def arguments(options: argparse.Namespace) -> str:
    """Return the command-line arguments, without the seed, with which a seed gives the same case again."""
    names = "protocol", "links", "length", "shape", "change"
    chosen = " ".join(f"--{name} {value}" for name in names for value in getattr(options, name) or ())
    return f"--shapes {chosen}" if options.shapes else chosen


def play(case: Case, engine: str) -> Verdict:
    """Play a case and return its verdict; with both engines, also check that their traces are equal."""
    run = case.scenario.run(engine="reference" if engine == "reference" else "fast")
    if engine == "both":
        assert run.trace_hash == case.scenario.run(engine="reference").trace_hash, f"{case}: the engines differ"
    return judge(case, run)


def report(verdicts: dict[tuple[str, str], list[Verdict]]) -> str:
    """Return a table with a row for each (protocol, links): sums of the verdicts, and the longest times.

    The times are those until a mesh is whole, and until the first delivery after an outage.
    """
    rows = []
    for (protocol, links), group in sorted(verdicts.items()):
        sums = [f"{sum(column):,}" for column in list(zip(*group, strict=True))[:-2]]
        slowest = (f"{max(column):.0f}" for column in list(zip(*group, strict=True))[-2:])
        rows.append([protocol, links, str(len(group)), *sums, *slowest])
    return table(HEADER, rows)


if __name__ == "__main__":
    main()
