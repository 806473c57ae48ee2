"""Motes in C: their program, compiled for the sizes of a run, and what it takes of a mote.

    program("c", protocol)           the executable of a process of this machine
    program("cortex-m3", protocol)   the image that `qemu-system-arm -M mps2-an385` runs
    footprint(protocol)              flash and RAM of that image

The sources are those of hardware/c, of the protocol's folder ``c`` and of ``c/mote`` in it. What was compiled once
stays in the user's cache folder, under a digest of sources, options and compiler.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from workbench.errors import LinkError, ScenarioError
from workbench.motes.program import HARDWARE

C, CORTEX_M3 = "c", "cortex-m3"
EMULATOR = "qemu-system-arm"
# What the calls of an image take at most, interrupts included: hardware/c_memory.py adds them up. Parts of a protocol's
# settings (filters, say) are called too.
STACK_B, STACK_WITH_PARTS_B = 1664, 1856
STACK_GUARD_B = 32  # of these, the lowest, which no call may reach; a mote whose stack does reports it
SUBSCRIPTIONS = 20  # of a node, unless a protocol or a run wants another number: the definition file's
SHORT_BODY, LONG_BODY = 1024, 2048  # bytes of a host's longest message: without keys of the user's own, and with them

_OPTIONS = ("-std=c99", "-ffp-contract=off")
_ARM = "arm-none-eabi-gcc"
_LIBRARY = "libnewlib-arm-none-eabi"
_CORTEX_M3 = (
    *("-mcpu=cortex-m3", "-mthumb", "-Os", "-ffreestanding", "-ffunction-sections", "-fdata-sections"),
    # Or a loop that copies bytes becomes a call of the function that it is in.
    "-fno-tree-loop-distribute-patterns",
    # Optimizations that make this program larger, by 350 B of flash.
    *("-fno-move-loop-invariants", "-fno-tree-forwprop", "-fno-schedule-insns2"),
    *("--specs=nano.specs", "-DENFRAMER_B=258"),
)
_LINKED = ("-nostartfiles", "-Wl,--gc-sections")
COMPILE_FOR_CORTEX_M3 = (_ARM, *_OPTIONS, *_CORTEX_M3)  # what makes an image's objects
_SECTIONS_OF_RAM = (".stack", ".data", ".bss", ".noinit")
_SECTIONS_OF_FLASH = (".text", ".ARM.exidx", ".data")


class Footprint(NamedTuple):
    """Bytes of an image: what stays in flash, and RAM, all of it and its stack."""

    flash_B: int
    ram_B: int
    stack_B: int


def missing(kind: str) -> str | None:
    """What motes of a kind lack on this machine, with its remedy, as a sentence; None if they can run."""
    if kind == C:
        return _no_program("motes in C need a compiler", "gcc", "gcc libc6-dev")
    why = _no_program("an emulated Cortex-M3 needs its compiler", _ARM, f"gcc-arm-none-eabi {_LIBRARY}")
    if why is None and not newlib():
        why = f"an emulated Cortex-M3 needs newlib, the C library of {_ARM}: apt-get install {_LIBRARY}"
    return why or _no_program("a Cortex-M3 is emulated by QEMU", EMULATOR, EMULATOR)


def _no_program(purpose: str, name: str, packages: str) -> str | None:
    if shutil.which(name):
        return None
    return f"{purpose}, and there is no `{name}` on the PATH: apt-get install {packages}"


def newlib() -> str:
    """Where the cross-compiler finds its C library for small chips; "" if it does not."""
    if shutil.which(_ARM) is None:
        return ""
    said = subprocess.run([_ARM, "-print-file-name=nano.specs"], capture_output=True, text=True, check=False).stdout
    return str(Path(said.strip()).resolve().parent) if Path(said.strip()).is_absolute() else ""


def program(
    kind: str,
    protocol: Any,
    longest_body: int = LONG_BODY,
    stack_B: int | None = None,
    nodes: int = 1,
    subscriptions: int = 0,
) -> Path:
    """The program of a mote for a protocol's sizes, compiled unless it is in the cache.

    ``longest_body``: bytes of the longest message that its host sends. ``stack_B``: of an image; what it may need if
    None. ``nodes``: of the network. ``subscriptions``: the most that the run makes at a node; a protocol without a
    limit in Python gets room for them. ScenarioError if the protocol has no program in C, LinkError if a tool is
    missing or the compiler refuses.
    """
    sizes = protocol.sizes_in_c()
    if sizes is None:
        raise ScenarioError(
            f'{type(protocol).__name__} has no program in C for motes; use kind="micropython", or simulate its nodes'
        )
    if (reason := missing(kind)) is not None:
        raise LinkError(reason)
    room = protocol.room_in_c(nodes)
    defines = {**sizes, **room, "LONGEST_BODY": longest_body}
    if subscriptions > SUBSCRIPTIONS:
        defines.setdefault("MAX_SUBSCRIPTIONS", subscriptions)
    return build(kind, folder_of(protocol), defines, stack_B or (STACK_WITH_PARTS_B if room else STACK_B))


def folder_of(protocol: Any) -> Path:
    """Where the C of a protocol's nodes is."""
    page = sys.modules[protocol.kind_of_node().__module__].__file__
    assert page is not None
    return Path(page).parent / "c"


def build(kind: str, folder: Path, defines: Mapping[str, int], stack_B: int) -> Path:
    """The program with the nodes of a folder, compiled with these definitions unless it is in the cache."""
    library, mote = HARDWARE / "c", HARDWARE / "c" / "mote"
    board = library / "boards" / ("posix" if kind == C else "mps2_an385")
    folders = (library, mote, board, folder, folder / "mote")
    named = [f"-D{name}={value}" for name, value in sorted(defines.items())]
    options = [*_OPTIONS, *named, *(["-O1", "-D_POSIX_C_SOURCE=200809L"] if kind == C else (*_CORTEX_M3, *_LINKED))]
    scripts = []
    if kind == CORTEX_M3:
        options += [f"-Wl,--defsym=STACK_B={stack_B}", f"-Wl,--defsym=STACK_GUARD_B={STACK_GUARD_B}"]
        scripts = [f"-T{board / 'mps2_an385.ld'}"]
    compiler = "gcc" if kind == C else _ARM
    cached = _cache() / f"{kind}-{_digest(compiler, options, folders)}"
    if not cached.exists():
        where = [f"-I{one}" for one in folders]
        sources = [str(path) for one in folders for path in sorted(one.glob("*.c"))]
        _compile([compiler, *options, *where, *sources, *scripts], cached)
    return cached


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "workbench", "motes")


def _digest(compiler: str, options: list[str], folders: tuple[Path, ...]) -> str:
    made = hashlib.sha256()
    for text in (platform.machine(), _version(compiler), *options):
        made.update(text.encode() + b"\0")
    for path in _files(folders):
        made.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return made.hexdigest()[:32]


def _files(folders: tuple[Path, ...]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(path for path in folder.iterdir() if path.suffix in (".c", ".h", ".ld"))


@lru_cache(maxsize=4)
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout


def _compile(command: list[str], made: Path) -> None:
    """Compile into the cache, where a file is there in whole or not at all."""
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=made.parent) as folder:
        fresh = Path(folder) / "program"
        ran = subprocess.run([*command, "-o", str(fresh)], capture_output=True, text=True, check=False)
        if ran.returncode:
            errors = [line.strip() for line in ran.stderr.splitlines() if "error" in line] or ["it says no reason"]
            raise LinkError(f"{command[0]} cannot compile the program of a mote: {errors[0]}")
        os.replace(fresh, made)


def footprint(protocol: Any, longest_body: int = SHORT_BODY, stack_B: int | None = None) -> Footprint:
    """What the image of a Cortex-M3 takes with a protocol's sizes; errors as `program`."""
    return image_footprint(program(CORTEX_M3, protocol, longest_body, stack_B))


def image_footprint(image: Path) -> Footprint:
    """What an image of a Cortex-M3 takes, by its sections."""
    said = subprocess.run(["arm-none-eabi-size", "-A", str(image)], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in said.splitlines() if line.startswith(".")]
    sizes = {row[0]: int(row[1]) for row in rows}
    flash_B = sum(sizes.get(name, 0) for name in _SECTIONS_OF_FLASH)
    return Footprint(flash_B, sum(sizes.get(name, 0) for name in _SECTIONS_OF_RAM), sizes[".stack"])
