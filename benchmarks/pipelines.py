"""Queries over the traces of many runs: ``benchmarks/pipelines.py [--quick] [--folder PATH] [part]``.

"traces": separate processes compute the load of each node from 10^7 and 10^8 rows in Parquet files: Spark with a driver
of 1 GB on two cores, and DuckDB with a limit of 1 GB on two threads. The rows are those of one flood, repeated under
other scenarios with renumbered nodes. Seconds are wall times of the query alone. Memory is the peak of the process and
its Java (RSS), sampled ten times a second. "keep": a sweep with and without keep="trace". ``--quick``: a tenth of the
rows.
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
from workbench.sweeps.store import traces as stored_traces

PARTS = ("keep", "traces")
ROWS = (10**7, 10**8)
QUICK_ROWS = (10**6, 10**7)
RUN_ROWS = 500_000
RUNS_A_FILE = 100
MEMORY = "1g"


def flood(seconds: float = 50.0) -> wb.Scenario:
    """Return a flood on a grid of 12 by 12 nodes, with collisions; its trace has half a million rows."""
    work = [wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=[80, 140], what="TEMP IS 26.5", every_s=0.2)]
    return wb.Scenario(wb.topology.grid(12, 12), wb.Flooding(), work, wb.Radio(loss=0.1, collisions=True), seconds)


# The rows


def write_traces(folder: Path, rows: int, base: pa.Table) -> int:
    """Write ``rows`` rows of runs into Parquet files, as a sweep does; return the number of runs.

    Each run has the rows of ``base``, a trace of `RUN_ROWS` rows, with renumbered nodes.
    """
    runs = rows // len(base)
    hashes = sorted(f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}" for number in range(1, runs + 1))
    for first in range(0, runs, RUNS_A_FILE):
        some = hashes[first : first + RUNS_A_FILE]
        path = folder / f"traces-{first:06}.parquet"
        stored_traces.write(path, ((run, "made", _renumbered(base, int(run, 16))) for run in some))
    return runs


def _renumbered(base: pa.Table, seed: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches of the trace ``base`` with its nodes renumbered at random."""
    order = np.append(np.random.default_rng(seed).permutation(144), -1).astype(np.int32)
    for batch in base.to_batches(stored_traces.ROWS_IN_GROUP):
        columns = {name: batch.column(name) for name in batch.schema.names}
        for name in ("node", "peer", "origin"):
            columns[name] = pa.array(order[columns[name].to_numpy()])
        yield pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


# The query, in a separate process


def run_query(engine: str, folder: str) -> None:
    """Run the query on the traces in ``folder`` with an engine, "spark" or "duckdb".

    Print times, memory and a checksum as JSON.
    """
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
    numbers = {"start_s": ready - begin, "s": end - ready, "MB": most.stop_MB()}
    numbers |= {"runs": int(loads["runs"].max()), "sent": float((loads["sent"] * loads["runs"]).sum())}
    print(json.dumps(numbers))


# Parts


def query_traces(folder: Path, is_quick: bool) -> str:
    """Query traces with DuckDB and Spark, over a tenth of the rows and over all; return the table.

    The answers are checked. ``is_quick``: use a tenth of the rows in both cases.
    """
    base = flood().run(engine="reference").trace.slice(0, RUN_ROWS)
    sent = base.column("event").to_pylist().count("sent")
    lines, before = [], {}
    for rows in QUICK_ROWS if is_quick else ROWS:
        row_folder = folder / f"traces-{rows}"
        begin = time.perf_counter()
        if not row_folder.exists():
            row_folder.mkdir(parents=True)
            write_traces(row_folder, rows, base)
        made_s = time.perf_counter() - begin
        disk_MB = sum(path.stat().st_size for path in row_folder.glob("*")) / 1e6
        print(f"{rows:,} rows made in {made_s:.0f} s, {disk_MB:.0f} MB", flush=True)
        for engine in ("duckdb", "spark"):
            numbers = _query_in_process(engine, row_folder)
            runs = rows // len(base)
            if (numbers["runs"], round(numbers["sent"])) != (runs, runs * sent):
                counted = f"{numbers['sent']:.0f} frames in {numbers['runs']} runs"
                raise SystemExit(f"{engine} counts {counted}, not {runs * sent}")
            growth = f"{numbers['s'] / before[engine]:.1f} x" if engine in before else ""
            before[engine] = numbers["s"]
            rate = f"{rows / numbers['s'] / 1e6:.1f}"
            lines.append([f"{rows:.0e}", engine, f"{numbers['s']:.1f}", rate, f"{numbers['MB']:.0f}", growth])
            print(*lines[-1], flush=True)
    return table(["rows", "engine", "s", "million rows/s", "peak MB", "growth"], lines)


def _query_in_process(engine: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--ask", engine, str(folder)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise SystemExit(f"{engine}: {process.stderr[-2000:]}")
    return json.loads(process.stdout.splitlines()[-1])


def measure_keeping(folder: Path, is_quick: bool) -> str:
    """Run a sweep in this process on the reference engine, without and with storing traces.

    Return a table of the times, rows and sizes.
    """
    seeds, lines = range(4 if is_quick else 16), []
    flood(1).run(engine="reference")  # loads the modules of a run
    for record in ("metrics", "trace"):
        sweep = wb.Sweep(flood(5), {"seed": seeds}, engine="reference", keep=record)
        with tempfile.TemporaryDirectory(dir=folder) as out:
            begin = time.perf_counter()
            sweep.run(out=out, runner=wb.LocalRunner(), progress=False)
            seconds = time.perf_counter() - begin
            files = stored_traces.files(out)
            rows = sum(run.rows for path in files for run in stored_traces.File(path).runs)
            size_MB = sum(path.stat().st_size for path in files) / 1e6
        lines.append([record, f"{len(seeds)}", f"{seconds:.2f}", f"{rows:,}", f"{size_MB:.1f}"])
    return table(["keep", "points", "s", "rows", "MB"], lines)


def main() -> None:
    """Run the parts, and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", type=Path, help="a folder that keeps the rows for the next run")
    parser.add_argument("--ask", nargs=2, metavar=("ENGINE", "FOLDER"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.ask:
        run_query(*chosen.ask)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for part in chosen.parts or PARTS:
            print(f"\n{part}\n{ {'traces': query_traces, 'keep': measure_keeping}[part](folder, chosen.quick) }")


if __name__ == "__main__":
    main()
