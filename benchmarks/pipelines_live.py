"""Windows of one second for a week: ``benchmarks/pipelines_live.py [--days N] [--each] [--fast] [checkout ...]``.

Eight sensors in four regions are read once a second, and one reading in a hundred is 10 s late. A capture of N days is
written at once. Then a follower, in a process of its own, computes the windows of each second as fast as it can. Like a
follower that keeps up with a live stream, it reads the lines of one second at a time. Once a second ``readings`` and
``late`` are requested, as by a chart. Then another process opens the folder: it continues the follower, and pandas
reads all windows.

The program prints the number of files, the follower's peak of memory after half of the stream and at its end, and the
times. With the folder of another checkout it measures that one too. The follower spends at most 5 % of the
time on writing, so it writes the windows of many seconds together; with ``--each`` it writes those of each second, as
on a live stream. With ``--fast`` it reads 1 MB at a time, as it does if it is behind.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import machine
from tables import table

from workbench.pipelines import Reading
from workbench.pipelines.live.capture import Capture

HERE = Path(__file__).parent.parent
DAY_S = 86_400
SENSORS = 8
BLOCK_S = 1_000

FOLLOW = """
import json, os, sys, time
from pathlib import Path
capture, out, read_B, half, is_each = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
import pandas
from workbench.pipelines import follow
from workbench.pipelines.live import following

def peak_MB():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e6

os.fsync = lambda file: None  # The disk of a test machine is not measured.
following.READ_B = read_B
if is_each:
    following.WRITE_PAUSE = 0
began_s, half_MB = time.perf_counter(), 0.0
start_MB = peak_MB()
live = follow(capture, every_s=1, late_s=2, out=out)
while not live.wait(1):
    readings, late = live.readings, live.late
    if not half_MB and readings >= half:
        half_MB = peak_MB()
result = {"s": time.perf_counter() - began_s, "cpu_s": time.process_time(), "start_MB": start_MB, "half_MB": half_MB}
result |= {"end_MB": peak_MB(), "readings": live.readings, "late": live.late}
result["files"] = len(list(Path(out).glob("part-*")))
result["MB"] = sum(path.stat().st_blocks * 512 for path in Path(out).glob("part-*")) / 1e6
print(json.dumps(result))
"""
OPEN = """
import json, sys, time
capture, out = sys.argv[1:]
import pandas as pd
from workbench.pipelines import follow
began_s = time.perf_counter()
live = follow(capture, every_s=1, late_s=2, out=out)
live.wait()
live.readings, live.late
result = {"continue_s": time.perf_counter() - began_s}
began_s = time.perf_counter()
result["rows"] = len(pd.read_parquet(out))
result["read_s"] = time.perf_counter() - began_s
print(json.dumps(result))
"""


def write_capture(folder: Path, days: float) -> int:
    """Write a capture of ``days`` days into a folder; return the mean size in bytes of the lines of one second."""
    writer, seconds = Capture(folder), round(days * DAY_S)
    for begin in range(0, seconds, BLOCK_S):
        writer.append(
            Reading(time_s - 10 * (i % 100 == 99) * (time_s > 10), i % SENSORS, "TEMP", 20 + i % 977 / 100, f"R{i % 4}")
            for second in range(begin, min(begin + BLOCK_S, seconds))
            for i in range(second * SENSORS, (second + 1) * SENSORS)
            for time_s in (second + i % SENSORS / 10,)
        )
    size_B = writer.size_B
    writer.end()
    writer.close()
    return size_B // seconds


def run(checkout: Path, code: str, *arguments: object) -> dict[str, float]:
    """Run the Python program ``code`` with the workbench of a checkout, and return the JSON object that it prints."""
    process = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise SystemExit(f"{checkout}:\n{process.stderr[-2000:]}")
    return json.loads(process.stdout.splitlines()[-1])


def measure(checkout: Path, folder: Path, days: float, read_B: int, is_each: bool) -> list[str]:
    """Follow the capture with the workbench of a checkout, open the windows again, and return a row of the table.

    ``read_B`` is the number of bytes read at a time. ``is_each`` is whether the windows of each second are written.
    """
    out = folder / f"windows-{checkout.name}-{days:g}-{read_B}"
    readings = round(days * DAY_S) * SENSORS
    followed = run(checkout, FOLLOW, folder / "capture", out, read_B, readings // 2, int(is_each))
    opened = run(checkout, OPEN, folder / "capture", out)
    if followed["readings"] != readings:
        raise SystemExit(f"{checkout} counts {followed['readings']:,} readings, not {readings:,}")
    return [
        checkout.name,
        f"{days:g}",
        f"{opened['rows']:,}",
        f"{followed['files']:,}",
        f"{followed['MB']:.1f}",
        f"{followed['s']:.0f}",
        f"{followed['cpu_s']:.0f}",
        f"{followed['start_MB']:.0f}",
        f"{followed['half_MB']:.0f}",
        f"{followed['end_MB']:.0f}",
        f"{opened['continue_s']:.2f}",
        f"{opened['read_s']:.2f}",
        f"{followed['late']:,}",
    ]


def main() -> None:
    """Write the capture, measure all checkouts, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkouts", nargs="*", type=Path, metavar="checkout", help="folders of other checkouts")
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--each", action="store_true", help="write the windows of each second")
    parser.add_argument("--fast", action="store_true", help="read 1 MB at a time")
    chosen = parser.parse_args()
    print(machine(), flush=True)
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        second_B = write_capture(folder / "capture", chosen.days)
        # Less than the lines of two seconds, so that a batch closes the windows of one second, or of none.
        read_B = 1 << 20 if chosen.fast else round(1.2 * second_B)
        for checkout in (HERE, *(path.resolve() for path in chosen.checkouts)):
            rows.append(measure(checkout, folder, chosen.days, read_B, chosen.each))
            print(*rows[-1], flush=True)
    header = ["checkout", "days", "windows", "files", "MB on disk", "s", "cpu s", "MB at the start", "MB at half"]
    print(table([*header, "MB at the end", "continue, s", "read all, s", "late"], rows))


if __name__ == "__main__":
    main()
