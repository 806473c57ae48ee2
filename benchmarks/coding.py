"""Network coding in GF(2^8) compared with galois, plain C and ISA-L: ``benchmarks/coding.py [--quick]``.

A generation of m = 32 chunks of 1 KiB and of 64 KiB is encoded into 32 packets and decoded from them. Encoding vectors
are checked for innovation against a matrix that lacks one row, for m = 2, 8 and 32. Times are process times of
one thread, medians of interleaved runs; a run repeats its job until its time can be measured.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from coding_contenders import GALOIS, MAKERS, OURS, OURS_AT_ONCE, Contender, Generation, generation
from machine import machine
from native import Absent
from tables import ratio, table
from timing import interleaved

CHUNKS = 32
SIZES_B = (1024, 65536)
GENERATIONS = (2, 8, 32)
VECTORS = 64
RUNS, QUICK_RUNS = 5, 3
RUN_S = 0.1


def contenders() -> tuple[list[Contender], list[str]]:
    """Return (available contenders, a line with the reason for each contender that is missing).

    The workbench's contenders are first.
    """
    available, lines = [OURS, OURS_AT_ONCE, GALOIS], []
    for name, make in MAKERS:
        try:
            available.append(make())
        except Absent as reason:
            lines.append(f"{name} is skipped: {reason}")
    return available, lines


def measure(jobs: dict[str, Callable[[], object]], runs: int, run_s: float = RUN_S) -> dict[str, float]:
    """Return {name of a job: seconds that it takes once}.

    A run repeats a job for about ``run_s`` seconds. The result is the median over ``runs`` runs, which alternate
    between the jobs.
    """
    repetitions = {name: _repetitions(job, run_s) for name, job in jobs.items()}

    def repeated(name: str) -> Callable[[], int]:
        def run() -> int:
            for _ in range(repetitions[name]):
                jobs[name]()
            return repetitions[name]

        return run

    results = interleaved({name: repeated(name) for name in jobs}, runs)
    return {name: result.seconds / repetitions[name] for name, result in results.items()}


def _repetitions(job: Callable[[], object], run_s: float) -> int:
    job()  # The first call may compile code.
    start = time.process_time()
    count = 0
    while time.process_time() - start < run_s:
        job()
        count += 1
    return max(1, count)  # A coarse clock may step over the whole time at once.


def coding_table(coded: Generation, available: Sequence[Contender], runs: int, run_s: float = RUN_S) -> str:
    """Return a table of times of encoding and decoding a generation, with a row for each contender."""
    for contender in available:
        contender.check(coded)
    encoding = measure({each.name: each.encode(coded) for each in available}, runs, run_s)
    decoding = measure({each.name: each.decode(coded) for each in available}, runs, run_s)
    ours = available[0].name
    rows = []
    for name in encoding:
        row = [name]
        for seconds in (encoding, decoding):
            rate = f"{coded.chunks.size / seconds[name] / 1e6:,.0f}"
            row += [f"{seconds[name] * 1e6:,.1f}", rate, ratio(seconds[name] / seconds[ours])]
        rows.append(row)
    header = ["contender", "encode µs", "MB/s", "ours / it", "decode µs", "MB/s", "ours / it"]
    return table(header, rows)


def innovation_table(available: Sequence[Contender], runs: int) -> str:
    """Return a table of times of checking encoding vectors: rows are contenders, columns are sizes of a generation."""
    able = [each for each in available if each.innovative is not None]
    rows = {each.name: [each.name] for each in able}
    for chunks in GENERATIONS:
        known, tested = (
            generation(chunks, 8).vectors[:-1],
            generation(max(chunks, VECTORS), 8).vectors[:VECTORS, :chunks],
        )
        tested = np.ascontiguousarray(tested)
        jobs = {each.name: each.innovative(known, tested) for each in able if each.innovative}
        counts = {job() for job in jobs.values()}
        assert len(counts) == 1, f"contenders find {sorted(counts)} innovative vectors"
        seconds = measure(jobs, runs)
        for name in rows:
            rows[name] += [f"{seconds[name] / VECTORS * 1e6:,.2f}", ratio(seconds[name] / seconds[able[0].name])]
    header = ["contender"] + [cell for chunks in GENERATIONS for cell in (f"m = {chunks}, µs", "ours / it")]
    return table(header, list(rows.values()))


def report(quick: bool) -> Iterator[str]:
    """Yield the report on network coding, in pieces of Markdown; ``quick``: measure fewer runs.

    Each piece is yielded as soon as it is measured.
    """
    runs = QUICK_RUNS if quick else RUNS
    available, skipped = contenders()
    yield "".join(f"{line}.\n" for line in skipped) + NOTES
    for size_B in SIZES_B:
        yield f"### A generation of {CHUNKS} chunks of {size_B // 1024} KiB\n"
        yield coding_table(generation(CHUNKS, size_B), available, runs) + "\n"
    yield "### Whether an encoding vector is innovative\n"
    yield innovation_table(available, runs) + "\n"


NOTES = """\
Times are of a whole generation, 32 packets, and of one encoding vector; MB/s are of its chunks. "ours / it" is how many
times as fast as that contender the first row is, which is ours: `Encoder.combine`, `Decoder.add` and `decode`, and
`Decoder.is_innovative`, called for each packet, with all that they check. "All at once" is `workbench.coding.bulk`
below them. galois inverts the matrix of all vectors, and so does ISA-L; plain C eliminates as packets come, as ours
does. ISA-L has no rank. It is ahead because its assembler multiplies with byte shuffles in registers, where ours loads
a row or a sum of rows for each exclusive or, and because ours makes new bytes of each result. On small rows and vectors
what counts is that a call from Python takes microseconds.
"""


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description="Measure network coding beside other libraries.")
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    print(f"## Network coding in GF(2^8)\n\n{machine()}\n")
    for piece in report(parser.parse_args().quick):
        print(piece, flush=True)


if __name__ == "__main__":
    main()
