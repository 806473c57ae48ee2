"""What the C library takes of a mote: code, memory by profile and sizes, the largest stack frames.

    .venv/bin/python hardware/c_memory.py

It is compiled for a Cortex-M3 with arm-none-eabi-gcc (Debian: gcc-arm-none-eabi, libnewlib-arm-none-eabi). What an
entry of a list costs is the difference between a node with more of it and a node without.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import definition_file

from workbench.protocols.diffusion import Diffusion

HERE = Path(__file__).resolve().parent
COMPILER = "arm-none-eabi-gcc"
OPTIONS = ("-mcpu=cortex-m3", "-mthumb", "-Os", "-std=c99", "-ffp-contract=off", "-ffunction-sections")
FOLDERS = (HERE / "c", HERE.parent / "workbench" / "protocols" / "diffusion" / "c")
NEEDED = ("attributes", "draws", "node", "interests", "data", "reinforcement", "filtering", "interest_cache", "wire")
PROFILES = {"strict": 29, "wide": 60}
# Of a mote with next to no memory; what is not said is the definition file's.
SMALLER = {
    "MAX_INTERESTS": 5,
    "MAX_GRADIENTS": 4,
    "MAX_REINFORCEMENTS": 4,
    "MAX_SINKS": 4,
    "MAX_SUBSCRIPTIONS": 5,
    "MAX_BLACK": 16,
    "MAX_NEXT_HOPS": 4,
}
DEFAULTS = definition_file.sizes(Diffusion())
LISTS = [name for name in DEFAULTS if name not in ("MAX_ATTRIBUTES", "MAX_NEXT_HOPS", "MESSAGE_B")]


class Frame(NamedTuple):
    """What one function takes of the stack."""

    size_B: int
    function: str


def compiled(defines: dict[str, int], folder: Path) -> list[Path]:
    """The library's objects for these sizes."""
    objects = []
    for source in [path for where in FOLDERS for path in sorted(where.glob("*.c")) if path.stem in NEEDED]:
        objects.append(folder / f"{source.stem}.o")
        named = [f"-D{name}={value}" for name, value in defines.items()]
        where = [f"-I{one}" for one in FOLDERS]
        command = [COMPILER, *OPTIONS, "-fstack-usage", *named, *where, "-c", str(source), "-o", str(objects[-1])]
        subprocess.run(command, check=True)
    return objects


def code_B() -> int:
    """Bytes of code and constants, at the definition file's sizes."""
    with tempfile.TemporaryDirectory() as folder:
        objects = compiled({}, Path(folder))
        said = subprocess.run(["arm-none-eabi-size", *objects], capture_output=True, text=True, check=True).stdout
    return sum(int(line.split()[0]) for line in said.splitlines()[1:])


def frames() -> list[Frame]:
    """The stack frames of all functions, largest first."""
    with tempfile.TemporaryDirectory() as folder:
        compiled({}, Path(folder))
        lines = [line for path in Path(folder).glob("*.su") for line in path.read_text().splitlines()]
    found = [Frame(int(line.split("\t")[1]), line.split("\t")[0].rpartition(":")[2]) for line in lines]
    return sorted(found, reverse=True)


def node_B(**defines: int) -> int:
    """Bytes of a node: of `struct diffusion`."""
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "size.c", Path(folder) / "size.s"
        source.write_text('#include "diffusion.h"\nconst unsigned size_B = sizeof(struct diffusion);\n')
        named = [f"-D{name}={value}" for name, value in defines.items()]
        where = [f"-I{one}" for one in FOLDERS]
        subprocess.run([COMPILER, *OPTIONS, *named, *where, "-S", str(source), "-o", str(made)], check=True)
        found = re.search(r"\.word\s+(\d+)", made.read_text())
    if found is None:
        raise ValueError("the compiler has not said how large a node is")
    return int(found.group(1))


def entry_B(name: str, message_B: int) -> int:
    """Bytes of one more entry of a list, the lists around it being of the definition file's sizes."""
    # Of eight, for structs are rounded up to whole words.
    more = {name: DEFAULTS[name] + 8, "MESSAGE_B": message_B}
    return (node_B(**more) - node_B(MESSAGE_B=message_B)) // 8


def main() -> None:
    """Print the tables."""
    print(f"code and constants: {code_B():,} B")
    for name, message_B in PROFILES.items():
        full, small = node_B(MESSAGE_B=message_B), node_B(MESSAGE_B=message_B, **SMALLER)
        print(f"a node, {name}: {full:,} B; smaller lists: {small:,} B")
    for name in LISTS:
        print(f"{name}: one more takes " + ", ".join(f"{entry_B(name, B)} B {p}" for p, B in PROFILES.items()))
    for frame in frames()[:5]:
        print(f"stack: {frame.function} {frame.size_B} B")


if __name__ == "__main__":
    main()
