"""Traces of many runs, asked for the load of each node: ``benchmarks/pipelines.py [--quick] [--folder PATH] [part]``.

"traces": 10^7 and 10^8 rows in Parquet, made in chunks, asked in processes of their own by Spark, with a driver of 1 GB
on two cores, and by DuckDB, with a limit of 1 GB on two threads. The rows are those of one flood, again and again under
other scenarios, with its nodes renumbered each time. Seconds are wall times of the question alone; memory is the most
that the process and Java beside it had at once (RSS), as sampled ten times a second. "keep": a sweep with and without
keep="trace". ``--quick``: a tenth of the rows.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from peak_memory import Peak
from tables import table

import workbench as wb
from workbench.sweeps.store import traces as kept

PARTS = ("keep", "traces")
ROWS = (10**7, 10**8)
QUICK_ROWS = (10**6, 10**7)
RUN_ROWS = 500_000
RUNS_A_FILE = 100
MEMORY = "1g"


def flood(seconds: float = 50.0) -> wb.Scenario:
    """A flood on a grid of 12 by 12, with collisions: its trace has half a million rows."""
    work = [wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=[80, 140], what="TEMP IS 26.5", every_s=0.2)]
    return wb.Scenario(wb.topology.grid(12, 12), wb.Flooding(), work, wb.Radio(loss=0.1, collisions=True), seconds)


# The rows


def make(folder: Path, rows: int, base: pa.Table) -> int:
    """Write runs of `RUN_ROWS` rows into Parquet files, as a sweep does; returns how many runs."""
    runs = rows // len(base)
    hashes = sorted(f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}" for number in range(1, runs + 1))
    for first in range(0, runs, RUNS_A_FILE):
        some = hashes[first : first + RUNS_A_FILE]
        path = folder / f"traces-{first:06}.parquet"
        kept.write(path, ((one, "made", _renumbered(base, int(one, 16))) for one in some))
    return runs


def _renumbered(base: pa.Table, seed: int) -> Iterator[pa.RecordBatch]:
    """The batches of a trace with its nodes in another order."""
    order = np.append(np.random.default_rng(seed).permutation(144), -1).astype(np.int32)
    for batch in base.to_batches(kept.ROWS_IN_GROUP):
        columns = {name: batch.column(name) for name in batch.schema.names}
        for name in ("node", "peer", "origin"):
            columns[name] = pa.array(order[columns[name].to_numpy()])
        yield pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


# The question, in a process of its own


def ask(engine: str, folder: str) -> None:
    """Put the question, and print what it took."""
    most = Peak(os.getpid())
    begin = time.perf_counter()
    if engine == "spark":
        session = wb.pipelines.spark("local[2]", driver_memory=MEMORY)
        source = wb.pipelines.traces(folder, session)
        ready = time.perf_counter()
        loads = wb.pipelines.load_per_node(source, over_runs=True).toPandas()
    else:
        from workbench.pipelines import queries as duck

        duck.LIMITS.update(memory_limit=MEMORY.upper() + "B", threads="2")
        ready = time.perf_counter()
        loads = wb.pipelines.load_per_node(wb.pipelines.traces(folder), over_runs=True)
    end = time.perf_counter()
    told = {"start_s": ready - begin, "s": end - ready, "MB": most.stop_MB()}
    told |= {"runs": int(loads["runs"].max()), "sent": float((loads["sent"] * loads["runs"]).sum())}
    print(json.dumps(told))


# Parts


def traces(folder: Path, is_quick: bool) -> str:
    """Both engines over a tenth and over all rows, each answer checked against what was made."""
    base = flood().run(engine="reference").trace.slice(0, RUN_ROWS)
    sent = base.column("event").to_pylist().count("sent")
    lines, before = [], {}
    for rows in QUICK_ROWS if is_quick else ROWS:
        place = folder / f"traces-{rows}"
        begin = time.perf_counter()
        if not place.exists():
            place.mkdir(parents=True)
            make(place, rows, base)
        made_s = time.perf_counter() - begin
        disk_MB = sum(path.stat().st_size for path in place.glob("*")) / 1e6
        print(f"{rows:,} rows made in {made_s:.0f} s, {disk_MB:.0f} MB", flush=True)
        for engine in ("duckdb", "spark"):
            told = _asked(engine, place)
            runs = rows // len(base)
            if (told["runs"], round(told["sent"])) != (runs, runs * sent):
                raise SystemExit(f"{engine} counts {told['sent']:.0f} frames in {told['runs']} runs, not {runs * sent}")
            growth = f"{told['s'] / before[engine]:.1f} x" if engine in before else ""
            before[engine] = told["s"]
            cells = [f"{rows:.0e}", engine, f"{told['s']:.1f}", f"{rows / told['s'] / 1e6:.1f}", f"{told['MB']:.0f}"]
            lines.append([*cells, growth])
            print(*lines[-1], flush=True)
    return table(["rows", "engine", "s", "million rows/s", "peak MB", "growth"], lines)


def _asked(engine: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--ask", engine, str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{engine}: {ran.stderr[-2000:]}")
    return json.loads(ran.stdout.splitlines()[-1])


def keep(folder: Path, is_quick: bool) -> str:
    """A sweep in this process on the reference engine, without traces and with them."""
    seeds, lines = range(4 if is_quick else 16), []
    flood(1).run(engine="reference")  # loads what a run needs
    for how in ("metrics", "trace"):
        sweep = wb.Sweep(flood(5), {"seed": seeds}, engine="reference", keep=how)
        with tempfile.TemporaryDirectory(dir=folder) as out:
            begin = time.perf_counter()
            sweep.run(out=out, runner=wb.LocalRunner(), progress=False)
            seconds = time.perf_counter() - begin
            found = kept.files(out)
            rows = sum(run.rows for path in found for run in kept.File(path).runs)
            size_MB = sum(path.stat().st_size for path in found) / 1e6
        lines.append([how, f"{len(seeds)}", f"{seconds:.2f}", f"{rows:,}", f"{size_MB:.1f}"])
    return table(["keep", "points", "s", "rows", "MB"], lines)


def main() -> None:
    """Run the parts, and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", type=Path, help="where rows are kept for the next time")
    parser.add_argument("--ask", nargs=2, metavar=("ENGINE", "FOLDER"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.ask:
        ask(*chosen.ask)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for part in chosen.parts or PARTS:
            print(f"\n{part}\n{ {'traces': traces, 'keep': keep}[part](folder, chosen.quick) }")


if __name__ == "__main__":
    main()
