"""The cost of reading a log: ``benchmarks/pipelines_logs.py [--tenth | --lines N] [--folder FOLDER] [contender ...]``.

A log like that of the Intel lab, of 50 million lines (3.3 GB; "--tenth": 5 million), is made in the folder in chunks;
one line in a hundred is truncated. Each contender reads it in a separate process:

    pandas      `read_csv` in chunks that are counted and dropped; its log has no truncated lines, which it cannot read
    per-line    the format's parser line by line, for a million lines
    here        `read_log` into Parquet files
    here-frame  `intel_readings` into a frame of pandas
    spark       `read_log` on Spark with two tasks at a time, into Parquet; it needs Java
    ranges      the steps of reading on Spark, in this process and without Java (see below)

The program prints lines a second, and the peak of memory of the process and its descendants.

For "ranges" it prints the megabytes read and the seconds of each of four steps. The steps take turns, and the fastest
of three turns counts. (1) The driver reads every byte, to cut the log at line ends; `read_log` no longer does this,
because it cuts logs at fixed offsets. (2) The driver reads the beginning. (3) Tasks count the lines of all ranges.
(4) Tasks parse all ranges.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import machine
from peak_memory import Peak
from tables import table

LINES = 50_000_000
BLOCK = 100_000
CONTENDERS = ("pandas", "per-line", "here", "here-frame", "spark", "ranges")
TURNS = 3
PER_LINE = 1_000_000  # lines at most

BEGIN = "import sys; path, out = sys.argv[1:]\n"
CODE = {
    "pandas": """
import pandas as pd
print(sum(len(part) for part in pd.read_csv(path, sep=" ", header=None, chunksize=500_000)))
""",
    "per-line": """
import dataclasses
from workbench.datasets.formats import INTEL_READINGS
from workbench.pipelines import read_log
log = read_log(path, dataclasses.replace(INTEL_READINGS, fast=()), out=out)
import pyarrow.parquet as pq
print(pq.read_metadata(log.rows).num_rows)
""",
    "here": """
from workbench.pipelines import read_log
log = read_log(path, "intel-readings", out=out)
import pyarrow.parquet as pq
print(pq.read_metadata(log.rows).num_rows)
""",
    "here-frame": """
import workbench as wb
print(len(wb.datasets.intel_readings(path)))
""",
    "spark": """
from workbench.pipelines import read_log
from workbench.sweeps.spark.session import session
# Without the quick start of other sessions, which suits short jobs, Java optimizes its code fully.
java = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
spark = session("local[2]", java)
log = read_log(path, "intel-readings", spark=spark)
log.rows.write.mode("overwrite").parquet(out)
print(spark.read.parquet(out).count())
spark.stop()
""",
}


def make_lines(first: int, count: int, cut: bool) -> bytes:
    """Return ``count`` lines of the log, beginning with line ``first``; ``cut``: truncate one line in a hundred."""
    lines = []
    for i in range(first, first + count):
        second, mote = i * 31 // 54, 1 + i % 54
        day, hour, minute = 1 + second // 86400 % 28, second // 3600 % 24, second // 60 % 60
        date = f"2004-{1 + second // 2419200 % 12:02}-{day:02}"
        when = f"{date} {hour:02}:{minute:02}:{second % 60:02}.{i * 7919 % 10**6:06}"
        climate = f"{15 + i % 20}.{i % 10000:04} {30 + i % 30}.{i * 3 % 10000:04}"
        line = f"{when} {i // 54} {mote} {climate} {i % 600}.{i % 100:02}"
        lines.append(line[:40] if cut and i % 100 == 99 else f"{line} 2.{60000 + i % 9999}")
    return ("\n".join(lines) + "\n").encode()


def write_log(path: Path, lines: int, cut: bool) -> None:
    """Write a log of ``lines`` lines, unless the file exists; ``cut``: truncate one line in a hundred."""
    if path.exists():
        return
    unfinished = path.with_suffix(".begun")
    with open(unfinished, "wb") as file:
        for first in range(0, lines, BLOCK):
            file.write(make_lines(first, min(BLOCK, lines - first), cut))
    unfinished.rename(path)


def measure(name: str, path: Path, out: Path) -> tuple[int, float, float]:
    """Let the contender ``name`` read the log at ``path``; return (rows, seconds, peak of memory in MB)."""
    begin = time.perf_counter()
    command = [sys.executable, "-c", BEGIN + CODE[name], str(path), str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    most = Peak(process.pid)
    output, _ = process.communicate()
    seconds = time.perf_counter() - begin
    most_MB = most.stop_MB()
    if process.returncode:
        raise SystemExit(f"{name} ended with {process.returncode}")
    return int(output.split()[-1]), seconds, most_MB


def measure_ranges(path: Path) -> list[tuple[str, str, str, str]]:
    """Return (step, MB read, seconds, share of the seconds of parsing) for each step of reading a log on Spark."""
    from workbench.datasets.chunks import chunks
    from workbench.datasets.formats import INTEL_READINGS
    from workbench.pipelines.logs.ranges import RANGE_B, count_lines, ranges_of, read_range

    byte_ranges = ranges_of(str(path), INTEL_READINGS)
    steps = {
        "driver reads every byte": lambda: sum(piece.first_line for piece in chunks(path, RANGE_B)),
        "driver reads the beginning": lambda: len(ranges_of(str(path), INTEL_READINGS)),
        "tasks count lines": lambda: sum(map(count_lines, byte_ranges)),
        "tasks parse": lambda: sum(
            len(chunk.rows) for byte_range in byte_ranges for chunk in read_range(byte_range, INTEL_READINGS)
        ),
    }
    fastest: dict[str, tuple[float, float]] = {}
    for _ in range(TURNS):
        for name, run in steps.items():
            begin_s, begin_B = time.perf_counter(), read_so_far_B()
            run()
            seconds, read_MB = time.perf_counter() - begin_s, (read_so_far_B() - begin_B) / 1e6
            fastest[name] = min(fastest.get(name, (seconds, read_MB)), (seconds, read_MB))
    parse_s = fastest["tasks parse"][0]
    return [
        (name, f"{read_MB:,.1f}", f"{seconds:.3f}", f"{seconds / parse_s:.4f}")
        for name, (seconds, read_MB) in fastest.items()
    ]


def read_so_far_B() -> int:
    """Return the number of bytes that this process has read so far, including reads from the system's cache (Linux)."""
    return int(Path("/proc/self/io").read_text().split()[1])


def main() -> None:
    """Make the logs and measure the contenders, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("contenders", nargs="*", metavar="contender", help=f"of {', '.join(CONTENDERS)} (default: all)")
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--tenth", action="store_true", help="a tenth of the lines")
    parser.add_argument("--folder", type=Path, help="for the logs (default: a temporary folder)")
    options = parser.parse_args()
    lines = options.lines // 10 if options.tenth else options.lines
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        folder = options.folder or Path(scratch)
        rows, steps = [], []
        for name in options.contenders or CONTENDERS:
            count = min(lines, PER_LINE) if name == "per-line" else lines
            path = folder / f"{'whole' if name == 'pandas' else 'cut'}-{count}.txt"
            write_log(path, count, cut=name != "pandas")
            if name == "ranges":
                steps = measure_ranges(path)
                continue
            read, seconds, most_MB = measure(name, path, Path(scratch) / name)
            rows.append(
                (name, f"{count:,}", f"{read:,}", f"{seconds:.1f}", f"{count / seconds:,.0f}", f"{most_MB:,.0f}")
            )
            print(*rows[-1], file=sys.stderr, flush=True)
    if rows:
        print(table(("contender", "lines", "rows", "s", "lines/s", "MB"), rows))
    if steps:
        print(table(("step", "MB read", "s", "share of parsing"), steps))
    print(machine())


if __name__ == "__main__":
    main()
