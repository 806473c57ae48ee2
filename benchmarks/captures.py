"""The cost of a capture for Wireshark: ``benchmarks/captures.py [publications]``.

Prints frames written per second, bytes per packet, and how much the process's peak memory rises while the capture is
written. The scenario is a flood on a grid of 10 x 10 nodes, of 200 publications or the given number. With tshark, also
prints the packets per second that it dissects with the Lua dissector.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import machine
from peak_memory import peak_MB

import workbench as wb


def main(publications: int) -> None:
    """Measure the writing of one capture with this number of publications, and print speed, size and memory."""
    workload = [wb.publish(0, "TEMP IS 26", every_s=1)]
    scenario = wb.Scenario(
        wb.topology.grid(10, 10), wb.Flooding(), workload, wb.Radio(loss=0.2), duration_s=publications
    )
    run = scenario.run()
    events = run.trace["event"].to_pylist()
    sent, packets = events.count("sent"), sum(event in ("sent", "received", "lost") for event in events)
    before_MB = peak_MB()
    with tempfile.TemporaryDirectory() as folder:
        began_s = time.perf_counter()
        capture = run.save_pcapng(Path(folder) / "run.pcapng")
        took_s = time.perf_counter() - began_s
        size_B = capture.stat().st_size
        print(f"{machine()}\n")
        print(f"{sent:,} frames, {packets:,} packets: {took_s:.1f} s, {packets / took_s:,.0f} packets/s")
        print(f"{size_B / packets:.0f} bytes per packet; the peak memory rose by {peak_MB() - before_MB:.1f} MB")
        if shutil.which("tshark"):
            script = wb.captures.save_dissector(Path(folder) / "workbench.lua")
            began_s = time.perf_counter()
            command = ["tshark", "-X", f"lua_script:{script}", "-r", str(capture), "-V"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            print(f"tshark -V: {packets / (time.perf_counter() - began_s):,.0f} packets/s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
