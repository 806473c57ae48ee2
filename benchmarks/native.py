"""Programs that the benchmarks build and run: C and C++ from the files beside this one, with networks as text.

What is built goes into a temporary folder that is gone when the benchmarks end. `Absent` says what there is not.
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
    """Something that a contender needs is not on this machine."""


@lru_cache
def scratch() -> Path:
    """The temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="workbench-benchmarks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def need(command: str, package: str) -> None:
    """Raise Absent unless there is such a command."""
    if shutil.which(command) is None:
        raise Absent(f"there is no {command}; Debian has it in {package}")


def output(*command: object, seconds: float = LONGEST_S) -> str:
    """What a command prints; Absent with its reason if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or "without a word").splitlines()
        reason = next((line for line in lines if "error" in line.lower() or "cannot" in line), lines[-1])
        raise Absent(f"{Path(words[0]).name} failed: {reason}")
    return done.stdout


@lru_cache
def built(source: str, compiler: str = "gcc", flags: tuple[str, ...] = (), libraries: tuple[str, ...] = ()) -> Path:
    """The program or shared object made of that file with -O2; Absent if it cannot be made."""
    need(compiler, compiler)
    target = scratch() / source.replace(".", "_")
    output(compiler, "-O2", *flags, "-o", target, HERE / source, *libraries)
    return target


@lru_cache
def network_file(network: Network) -> Path:
    """A network as text: "nodes range_m", then for each node "x y degree neighbor neighbor ...", in metres."""
    lines = [f"{len(network.neighbors)} {network.range_m!r}"]
    for node, neighbors in enumerate(network.neighbors):
        x, y = network.graph.nodes[node]["pos"]
        lines.append(" ".join(map(str, (float(x), float(y), len(neighbors), *neighbors))))
    handle, name = tempfile.mkstemp(dir=scratch(), suffix=".txt", text=True)
    with open(handle, "w") as file:
        file.write("\n".join(lines) + "\n")
    return Path(name)
