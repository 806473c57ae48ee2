"""Programs that the benchmarks build and run: C and C++ files of this folder, with networks as text.

Built files are in a temporary folder that is deleted when the benchmarks end. `Absent` names a missing tool.
"""

import atexit
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from networks import Network

HERE = Path(__file__).parent
LONGEST_S = 600


class Absent(Exception):
    """The error that a program or library that a contender needs is missing on this machine."""


@lru_cache
def scratch_folder() -> Path:
    """Return the temporary folder of built files; the first call creates it."""
    folder = Path(tempfile.mkdtemp(prefix="workbench-benchmarks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def require_command(command: str, package: str) -> None:
    """Raise Absent, with the name of Debian's ``package``, unless the command is installed."""
    if shutil.which(command) is None:
        raise Absent(f"{command} is missing; Debian has it in {package}")


def run_command(*command: object, seconds: float = LONGEST_S) -> str:
    """Run a command and return its output. Raises Absent, with the command's message, if it fails or takes too long."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or "without a message").splitlines()
        reason = next((line for line in lines if "error" in line.lower() or "cannot" in line), lines[-1])
        raise Absent(f"{Path(words[0]).name} failed: {reason}")
    return done.stdout


@lru_cache
def compile_source(
    source: str, compiler: str = "gcc", flags: tuple[str, ...] = (), libraries: tuple[str, ...] = ()
) -> Path:
    """Compile the file ``source`` with -O2 to a program or shared object, and return its path.

    Raises Absent on failure.
    """
    require_command(compiler, compiler)
    target = scratch_folder() / source.replace(".", "_")
    run_command(compiler, "-O2", *flags, "-o", target, HERE / source, *libraries)
    return target


@lru_cache
def write_network(network: Network) -> Path:
    """Write a network as text: "nodes range_m", then for each node "x y degree neighbor neighbor ...", in metres."""
    lines = [f"{len(network.neighbors)} {network.range_m!r}"]
    for node, neighbors in enumerate(network.neighbors):
        x, y = network.graph.nodes[node]["pos"]
        lines.append(" ".join(map(str, (float(x), float(y), len(neighbors), *neighbors))))
    handle, name = tempfile.mkstemp(dir=scratch_folder(), suffix=".txt", text=True)
    with open(handle, "w") as file:
        file.write("\n".join(lines) + "\n")
    return Path(name)
