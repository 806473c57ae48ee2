"""A comparison of this checkout with another: scenarios, metrics and layers of a trace, and a cold start.

    .venv/bin/python benchmarks/two_checkouts.py ../other-checkout [ROUNDS [WORD]]

WORD: only the measurements with this word in their names, such as "layers".

Theory of operation
    Each measurement is a separate process that imports the workbench of one checkout, plays a scenario twice and prints
    the processor seconds of the second time, which exclude loading. A cold start is measured in wall time. Processes of
    the two checkouts alternate, so that other load affects both. Metrics and layers are those of a trace with 40,000 to
    two million rows; their processes print the shortest of seven times. The last column is other / this: above 1 this
    checkout is faster. Machine code is compiled once for each checkout before any measurement.

Limits
    The scenarios use names that both checkouts have; ``engine="compiled"`` is the older name of "fast".
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]

WORKLOAD = '[wb.subscribe(0, "TEMP GE 20"), wb.publish("all", "TEMP IS 26", every_s=5, stagger=True)]'
RADIO = "wb.Radio(collisions=True, csma=True, retries=3)"
SCENARIOS = {
    "flood": "wb.Scenario(wb.topology.disc(1500, 500, 200, seed=1), wb.Flooding(), "
    '[wb.publish(range(40), "TEMP IS 20", stagger=True, every_s=10)], duration_s=10)',
    "diffusion": f"wb.Scenario(wb.topology.grid(15, 15), wb.Diffusion(), {WORKLOAD}, {RADIO}, duration_s=30)",
    "coded diffusion": "wb.Scenario(wb.topology.grid(12, 12), wb.CodedDiffusion(generation_size=4, "
    'bootstrap_factor=4), [wb.publish(range(10), "TEMP IS 26", every_s=2)], duration_s=10)',
    "TinyMQ": f"wb.Scenario(wb.topology.grid(12, 12), wb.TinyMQ(roots=(0, 143)), {WORKLOAD}, duration_s=30)",
    "DPS": f"wb.Scenario(wb.topology.grid(7, 7), wb.DPS(), {WORKLOAD}, duration_s=30)",
}
PLAY = """
import time
import workbench as wb
scenario = {scenario}
scenario.run(engine={engine!r}, record="metrics")
began_s = time.process_time()
scenario.run(engine={engine!r}, record="metrics")
print(time.process_time() - began_s)
"""
READ = """
import time
import workbench as wb
from workbench.sim import metrics, trace
from workbench.views.seeing import see
run = {scenario}.run(engine="compiled")
rows, times_s = run.trace, []
for _ in range(8):
    began_s = time.process_time()
    {read}
    times_s.append(time.process_time() - began_s)
print(min(times_s[1:]))
"""
READINGS = {"metrics": "metrics.compute(run.scenario, rows, *trace.tally(rows))", "layers": "see(run)"}
COLD = """
import time
began_s = time.perf_counter()
import workbench as wb
scenario = {scenario}
scenario.run(engine={engine!r}).metrics
print(time.perf_counter() - began_s)
"""
SMALL = (
    'wb.Scenario(wb.topology.grid(6, 6), wb.Diffusion(), [wb.subscribe(0, "TEMP GE 20"), wb.publish(35, "TEMP IS 26")])'
)


def seconds(checkout: Path, code: str) -> float:
    """Run the Python program ``code`` with the workbench of a checkout, and return the seconds that it prints."""
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    if process.returncode:
        raise SystemExit(f"{checkout}:\n{process.stderr}")
    return float(process.stdout)


def measurements() -> dict[str, str]:
    """Return {name: program} of all measurements."""
    programs = {}
    for name, scenario in SCENARIOS.items():
        for engine in ("reference", "compiled"):
            programs[f"{name}, {'fast' if engine == 'compiled' else engine}"] = PLAY.format(
                scenario=scenario, engine=engine
            )
        for reading, read in READINGS.items():
            programs[f"{name}, {reading} of a trace"] = READ.format(scenario=scenario, read=read)
    programs["cold start, reference"] = COLD.format(scenario=SMALL, engine="reference")
    programs["cold start, fast (machine code on disk)"] = COLD.format(scenario=SMALL, engine="compiled")
    return programs


def main() -> None:
    """Run the measurements on both checkouts, and print the table."""
    other, rounds = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    word = sys.argv[3] if len(sys.argv) > 3 else ""
    print(f"{'':42}{'this, s':>10}{'other, s':>10}{'other / this':>14}")
    for name, program in measurements().items():
        if word not in name:
            continue
        for checkout in (HERE, other):
            seconds(checkout, program)
        pairs = [(seconds(HERE, program), seconds(other, program)) for _ in range(rounds)]
        ours, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(f"{name:42}{ours:10.3f}{theirs:10.3f}{theirs / ours:14.2f}", flush=True)


if __name__ == "__main__":
    main()
