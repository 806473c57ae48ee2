"""The core stands alone: protocols run and are drawn without compilers, Spark, widgets, threads and sockets."""

import subprocess
import sys

import pytest

from tests.repository import REPOSITORY
from workbench.public_names import PROTOCOLS

PACKAGES = ("attributes", "coding", "protocols", "topology", "datasets", "sim", "analysis", "fuzzing", "records")
# Parts that are compiled, and parts with a protocol's own network.
OUTSIDE = ("fast", "bulk", "arrays", "kernels", "udp", "cli", "processes")
BLOCK = """
import socket, sys, threading
for library in ("numba", "galois", "pyspark", "bokeh", "ipywidgets"):
    sys.modules[library] = None  # importing it raises ImportError
def refuse(*_, **__):
    raise RuntimeError("the core started a thread or opened a socket")
threading.Thread.start = socket.socket.__init__ = refuse
"""
PLAY = """
import workbench as wb
for name in sys.argv[1:]:
    items = [wb.subscribe(at=0, what="TEMP GE 3"), wb.publish(at=8, what="TEMP IS 5", start_s=20)]
    run = wb.Scenario(wb.topology.grid(3, 3), getattr(wb, name)(), items, duration_s=30).run(engine="reference")
    assert run.metrics["expected"] and run.frames(most=1).num_rows and run.explain().headline
    assert run.figure(25).to_svg() and run._repr_mimebundle_()["text/html"]
"""


def alone(code, *arguments):
    """Run code in a process without other libraries, threads and sockets; return the last line of its error, or ""."""
    command = [sys.executable, "-c", BLOCK + code, *arguments]
    process = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=False)
    return "".join(process.stderr.splitlines()[-1:]) if process.returncode else ""


def test_the_core_runs_each_protocol_without_other_packages():
    paths = [path.relative_to(REPOSITORY) for path in sorted((REPOSITORY / "workbench").rglob("*.py"))]
    core = [path.with_suffix("").parts for path in paths if path.parts[1] in PACKAGES]
    names = [".".join(parts) for parts in core if not {*parts} & {*OUTSIDE}]
    assert len(names) > 150
    imports = "".join(f"import {name.removesuffix('.__init__')}\n" for name in names)
    assert not alone(imports + PLAY, *PROTOCOLS)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import workbench.sim.fast.loop", "import of numba halted"),
        ("threading.Thread(target=print).start()", "the core started a thread"),
        ("socket.create_connection(('localhost', 9))", "opened a socket"),
    ],
)
def test_libraries_threads_and_sockets_are_blocked_for_the_core(code, error):
    assert error in alone(code)
