"""Parquet files of traces with a single flipped bit, and the outcomes of two queries over them."""

import random
import shutil
from collections import Counter

import workbench as wb
from workbench.errors import DataError
from workbench.pipelines import load_per_node, traces
from workbench.pipelines.queries import run_query
from workbench.records.record import write_trace
from workbench.sweeps import LocalRunner

COUNTS = "SELECT node, event, count(*) AS rows, sum(size_B) AS size_B, sum(time_us) AS at FROM {trace} GROUP BY ALL"
OUTCOMES = ("same", "sentence", "silent", "raw")


def scenario():
    """Return a scenario with a small network and losses."""
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish([5, 8], "TEMP IS 26", every_s=1, start_s=1)]
    return wb.Scenario(wb.topology.grid(3, 3), wb.Diffusion(), workload, wb.Radio(loss=0.1), duration_s=10, seed=5)


def write(folder):
    """Write two undamaged files, the traces of a sweep and the trace of a run; return {kind: path}."""
    sweep = wb.Sweep(scenario(), {"seed": [1, 2]}, engine="reference", keep="trace")
    sweep.run(out=folder / "sweep", runner=LocalRunner(), progress=False)
    (path,) = (folder / "sweep" / "_traces").glob("traces-*.parquet")
    write_trace(scenario().run("reference"), folder / "trace.parquet")
    return {"sweep": path, "run": folder / "trace.parquet"}


def numbers(path):
    """Return all numbers that two queries give for a file, as text."""
    counts = run_query(COUNTS, trace=path).sort_values(["node", "event"]).to_csv(index=False)
    if path.name.startswith("traces-"):
        counts += load_per_node(traces(path.parent)).to_csv(index=False)
    return counts


def outcomes(path, folder, flips):
    """Count the outcomes of the queries for ``flips`` random single-bit errors of a file.

    Outcomes: same (the right numbers), sentence (a DataError that names the file), silent (wrong numbers), and raw (any
    other error).
    """
    content, drawn, counts = path.read_bytes(), random.Random(7), Counter()
    expected = numbers(path)
    for flip in range(flips):
        position = drawn.randrange(len(content))
        changed = bytearray(content)
        changed[position] ^= 1 << drawn.randrange(8)
        damaged = folder / str(flip) / path.name
        damaged.parent.mkdir(parents=True)
        damaged.write_bytes(changed)
        try:
            counts["same" if numbers(damaged) == expected else "silent"] += 1
        except DataError as error:
            counts["sentence" if "\n" not in str(error) and str(damaged) in str(error) else "raw"] += 1
        except Exception:
            counts["raw"] += 1
        shutil.rmtree(damaged.parent)
    return counts
