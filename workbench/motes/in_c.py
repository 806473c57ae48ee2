"""The program of motes in C: its compilation with the list sizes that a run needs, and its memory footprint.

    program("c", protocol)           the executable of a process of this machine
    program("cortex-m3", protocol)   the image that `qemu-system-arm -M mps2-an385` runs
    footprint(protocol)              flash and RAM of that image

The sources are those of hardware/c, of the protocol's folder ``c`` and of ``c/mote`` in it. Compiled programs are
cached in a folder of the user. The file name contains a digest of sources, options and compiler.
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
# The deepest stack of an image, interrupts included, which hardware/c_memory.py computes. The objects in a protocol's
# settings (filters, for example) add calls.
STACK_B, STACK_WITH_PARTS_B = 1664, 1856
STACK_GUARD_B = 32  # the lowest bytes of the stack, which no call may reach; a mote reports a violation
SUBSCRIPTIONS = 20  # limit of a node unless a protocol or a run sets another: that of the definition file
SHORT_BODY, LONG_BODY = 1024, 2048  # bytes of a host's longest message, without and with keys of the user

_OPTIONS = ("-std=c99", "-ffp-contract=off")
_ARM = "arm-none-eabi-gcc"
_LIBRARY = "libnewlib-arm-none-eabi"
_CORTEX_M3_OPTIONS = (
    *("-mcpu=cortex-m3", "-mthumb", "-Os", "-ffreestanding", "-ffunction-sections", "-fdata-sections"),
    # Otherwise a loop that copies bytes becomes a call of the very function that contains it.
    "-fno-tree-loop-distribute-patterns",
    # These optimizations would make this program larger, by 350 B of flash.
    *("-fno-move-loop-invariants", "-fno-tree-forwprop", "-fno-schedule-insns2"),
    *("--specs=nano.specs", "-DENFRAMER_B=258"),
)
_LINK_OPTIONS = ("-nostartfiles", "-Wl,--gc-sections")
COMPILE_FOR_CORTEX_M3 = (_ARM, *_OPTIONS, *_CORTEX_M3_OPTIONS)  # the command that compiles an image's objects
_SECTIONS_OF_RAM = (".stack", ".data", ".bss", ".noinit")
_SECTIONS_OF_FLASH = (".text", ".ARM.exidx", ".data")


class Footprint(NamedTuple):
    """The memory in bytes that a Cortex-M3 image needs: flash, RAM, and the stack, which is a part of the RAM."""

    flash_B: int
    ram_B: int
    stack_B: int


def missing(kind: str) -> str | None:
    """Return a sentence on what this machine lacks for motes in C of ``kind`` and how to install it, or None."""
    if kind == C:
        return _describe_missing_program("motes in C need a compiler", "gcc", "gcc libc6-dev")
    sentence = _describe_missing_program(
        "an emulated Cortex-M3 needs its compiler", _ARM, f"gcc-arm-none-eabi {_LIBRARY}"
    )
    if sentence is None and not newlib():
        sentence = f"an emulated Cortex-M3 needs newlib, the C library of {_ARM}: apt-get install {_LIBRARY}"
    return sentence or _describe_missing_program("a Cortex-M3 is emulated by QEMU", EMULATOR, EMULATOR)


def _describe_missing_program(purpose: str, name: str, packages: str) -> str | None:
    if shutil.which(name):
        return None
    return f"{purpose}, but `{name}` is not on the PATH: apt-get install {packages}"


def newlib() -> str:
    """Return the folder of newlib, the cross-compiler's C library for small chips, or "" if it is not installed."""
    if shutil.which(_ARM) is None:
        return ""
    specs_path = subprocess.run(
        [_ARM, "-print-file-name=nano.specs"], capture_output=True, text=True, check=False
    ).stdout
    return str(Path(specs_path.strip()).resolve().parent) if Path(specs_path.strip()).is_absolute() else ""


def program(
    kind: str,
    protocol: Any,
    longest_body: int = LONG_BODY,
    stack_B: int | None = None,
    nodes: int = 1,
    subscriptions: int = 0,
) -> Path:
    """Compile a mote's program with the list sizes that a protocol needs, unless cached, and return its path.

    kind            "c" or "cortex-m3"
    longest_body    largest size in bytes of a message from the host
    stack_B         stack of a Cortex-M3 image in bytes; None: the size that the program needs
    nodes           number of nodes of the network
    subscriptions   largest number of subscriptions at a node during the run; the list of subscriptions gets this size
                    if its default size is smaller and the protocol does not define a size

    Raises ScenarioError if the protocol has no program in C, LinkError if a tool is missing or the compiler fails.
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
    """Return the folder of the C sources of a protocol's nodes."""
    path = sys.modules[protocol.kind_of_node().__module__].__file__
    assert path is not None
    return Path(path).parent / "c"


def build(kind: str, folder: Path, defines: Mapping[str, int], stack_B: int) -> Path:
    """Compile the program of a mote, unless it is cached, and return its path.

    ``kind`` is "c" or "cortex-m3". ``folder`` has the C sources of a protocol's nodes. ``defines`` is {macro: value},
    the C macros that set the capacity of lists. ``stack_B`` is the stack size of a Cortex-M3 image in bytes.
    """
    library, mote = HARDWARE / "c", HARDWARE / "c" / "mote"
    board = library / "boards" / ("posix" if kind == C else "mps2_an385")
    folders = (library, mote, board, folder, folder / "mote")
    definitions = [f"-D{name}={value}" for name, value in sorted(defines.items())]
    options = [
        *_OPTIONS,
        *definitions,
        *(["-O1", "-D_POSIX_C_SOURCE=200809L"] if kind == C else (*_CORTEX_M3_OPTIONS, *_LINK_OPTIONS)),
    ]
    linker_scripts = []
    if kind == CORTEX_M3:
        options += [f"-Wl,--defsym=STACK_B={stack_B}", f"-Wl,--defsym=STACK_GUARD_B={STACK_GUARD_B}"]
        linker_scripts = [f"-T{board / 'mps2_an385.ld'}"]
    compiler = "gcc" if kind == C else _ARM
    program_path = _find_cache_folder() / f"{kind}-{_compute_digest(compiler, options, folders)}"
    if not program_path.exists():
        include_options = [f"-I{path}" for path in folders]
        source_paths = [str(path) for source_folder in folders for path in sorted(source_folder.glob("*.c"))]
        _compile([compiler, *options, *include_options, *source_paths, *linker_scripts], program_path)
    return program_path


def _find_cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "workbench", "motes")


def _compute_digest(compiler: str, options: list[str], folders: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for text in (platform.machine(), _read_version(compiler), *options):
        digest.update(text.encode() + b"\0")
    for path in _list_sources(folders):
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:32]


def _list_sources(folders: tuple[Path, ...]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(path for path in folder.iterdir() if path.suffix in (".c", ".h", ".ld"))


@lru_cache(maxsize=4)
def _read_version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout


def _compile(command: list[str], target: Path) -> None:
    """Run a compiler command whose output becomes the file ``target``; an incomplete file never appears there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        program_draft = Path(folder) / "program"
        compilation = subprocess.run([*command, "-o", str(program_draft)], capture_output=True, text=True, check=False)
        if compilation.returncode:
            errors = [line.strip() for line in compilation.stderr.splitlines() if "error" in line] or [
                "no reason given"
            ]
            raise LinkError(f"{command[0]} cannot compile the program of a mote: {errors[0]}")
        os.replace(program_draft, target)


def footprint(protocol: Any, longest_body: int = SHORT_BODY, stack_B: int | None = None) -> Footprint:
    """Return the memory footprint (flash and RAM) of a protocol's Cortex-M3 image.

    ``longest_body`` is the largest size in bytes of a message from the host. ``stack_B`` is the size of the stack;
    None: the size that the program needs. Raises the same errors as `program`.
    """
    return image_footprint(program(CORTEX_M3, protocol, longest_body, stack_B))


def image_footprint(image: Path) -> Footprint:
    """Return the footprint of a Cortex-M3 image, from the sizes of its sections."""
    size_table = subprocess.run(
        ["arm-none-eabi-size", "-A", str(image)], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split() for line in size_table.splitlines() if line.startswith(".")]
    sizes = {row[0]: int(row[1]) for row in rows}
    flash_B = sum(sizes.get(name, 0) for name in _SECTIONS_OF_FLASH)
    return Footprint(flash_B, sum(sizes.get(name, 0) for name in _SECTIONS_OF_RAM), sizes[".stack"])
