"""Measure the memory of a mote in C: the whole image, the library alone, each list, and the largest stack frames.

    .venv/bin/python hardware/c_memory.py

The program is compiled for a Cortex-M3 with arm-none-eabi-gcc (Debian: gcc-arm-none-eabi, libnewlib-arm-none-eabi). The
image is the one that `wb.motes.virtual(kind="cortex-m3")` runs: program, host link, radio, stack. The stack's greatest
measured depth comes from motes that qemu-system-arm emulates. Its upper bound is the path through the call graph that
takes the most stack; the graph has no cycles. The size of a list's entry is computed from the sizes of two nodes, one
of which has a longer list.

"The definition file's sizes" are the capacities of a node's lists in c/tiny_diffusion.h, such as MAX_INTERESTS.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import definition_file

import workbench as wb
from workbench.motes import in_c
from workbench.protocols.diffusion import Diffusion
from workbench.protocols.diffusion.filters.value import IN_C, Filter

HERE = Path(__file__).resolve().parent
COMPILER = in_c.COMPILE_FOR_CORTEX_M3[0]
FOLDERS = (HERE / "c", HERE.parent / "workbench" / "protocols" / "diffusion" / "c")
PROGRAM = (HERE / "c" / "mote", HERE / "c" / "boards" / "mps2_an385", FOLDERS[1] / "mote")
OF_DIFFUSION = (
    "node",
    "interests",
    "data",
    "pacing",
    "serving",
    "reinforcement",
    "filtering",
    "interest_cache",
    "wire",
)
NEEDED = ("attributes", "division", "draws", *OF_DIFFUSION)
PROFILES = {"strict": 29, "wide": 60}
# A goal: with these sizes, and the definition file's for all other lists, an image is to take ten kilobytes at most.
SMALL = {"MAX_INTERESTS": 5, "MAX_GRADIENTS": 4, "MAX_REINFORCEMENTS": 4}
GOAL_B = 10 * 1024
FILTERS = (Filter("suppress_unchanged", 200), Filter("running_mean", 201))
# For a mote with very little memory; the other sizes are the definition file's.
SMALLER = {
    "MAX_INTERESTS": 5,
    "MAX_GRADIENTS": 4,
    "MAX_REINFORCEMENTS": 4,
    "MAX_SINKS": 4,
    "MAX_SUBSCRIPTIONS": 5,
    "MAX_BLACK": 16,
    "MAX_NEXT_HOPS": 4,
}
# Calls by pointer: part of the caller's file name -> the functions that an image's pointers can call.
DECIDERS = tuple(IN_C)
READERS = ("read_running_window", *(f"read_{name}" for name in DECIDERS if not name.startswith("running_")))
POINTERS = {
    "c/filtering.c": (*DECIDERS, "emit_average"),
    "mote/placing.c": READERS,
    "diffusion/c/": ("take_frame", "take_event"),
    "mote/framing.c": ("write_host", "write_radio"),
    "mote/mote.c": ("now_us", "used_B", "reset_board", "trouble"),
    "mps2_an385/main.c": ("mote_feed", "mote_hear"),
}
POINTER = "__indirect_call"
WITHOUT_FILTERS = ("answer_one",)  # not called in an image without filters
LIBRARY_B = 64  # assumed frame of the compiler's own functions: memcpy, arithmetic of doubles
INTERRUPT_B = 32 + 4  # stored on the stack by the chip itself
DEFAULTS = definition_file.sizes(Diffusion())
LISTS = [name for name in DEFAULTS if name not in ("MAX_ATTRIBUTES", "MAX_NEXT_HOPS", "MESSAGE_B")]


class Frame(NamedTuple):
    """A function and the size of its stack frame."""

    size_B: int
    function: str


def compiled(folder: Path, with_program: bool = False) -> list[Path]:
    """Compile the library with the definition file's sizes; return the paths of the object files in ``folder``.

    ``with_program``: whether to compile the whole program with filters, not only the library.
    """
    objects = []
    needed = (*NEEDED, "built_in") if with_program else NEEDED
    sources = [path for where in FOLDERS for path in sorted(where.glob("*.c")) if path.stem in needed]
    named = ["-DMAX_FILTERS=1"] if with_program else []
    folders = (*FOLDERS, *PROGRAM) if with_program else FOLDERS
    for source in [*sources, *(path for where in folders[len(FOLDERS) :] for path in sorted(where.glob("*.c")))]:
        objects.append(folder / f"{source.stem}.o")
        includes = [f"-I{path}" for path in folders]
        reports = ("-fstack-usage", "-fcallgraph-info=su")
        compilation = ("-c", str(source), "-o", str(objects[-1]))
        subprocess.run([*in_c.COMPILE_FOR_CORTEX_M3, *reports, *named, *includes, *compilation], check=True)
    return objects


def code_B() -> int:
    """Return the size of the library's code and constants in bytes; lists have the definition file's sizes."""
    with tempfile.TemporaryDirectory() as folder:
        objects = compiled(Path(folder))
        table = subprocess.run(["arm-none-eabi-size", *objects], capture_output=True, text=True, check=True).stdout
    return sum(int(line.split()[0]) for line in table.splitlines()[1:])


def frames() -> list[Frame]:
    """Return the stack frames of all functions of library and program, largest first."""
    lines, _ = _compile_reports()
    all_frames = [Frame(int(line.split("\t")[1]), line.split("\t")[0].rpartition(":")[2]) for line in lines]
    return sorted(all_frames, reverse=True)


def deepest_calls(has_filters: bool = False) -> list[str]:
    """Return the names of the functions on the call path from "reset" that takes the most stack.

    The path of an interrupt follows: of all call paths from interrupt handlers, the one that takes the most stack.
    ``has_filters`` is whether the program has filters.
    """
    sizes, calls = _parse_calls()
    if not has_filters:
        calls = {name: called.difference(WITHOUT_FILTERS) for name, called in calls.items()}
    path = _find_deepest_path("reset", sizes, calls, ())
    interrupt = max(
        (_find_deepest_path(name, sizes, calls, ()) for name in ("host_heard", "clock_wrapped")),
        key=_make_path_size(sizes),
    )
    return [*path, *interrupt]


def stack_bound_B(has_filters: bool = False) -> int:
    """Return an upper bound of an image's stack depth in bytes, with the definition file's sizes of lists.

    ``has_filters`` is whether the program has filters.
    """
    return _make_path_size(_parse_calls()[0])(deepest_calls(has_filters)) + INTERRUPT_B


def _make_path_size(sizes: dict[str, int]) -> Callable[[list[str]], int]:
    return lambda path: sum(sizes.get(name, LIBRARY_B) for name in path)


@lru_cache(maxsize=1)
def _compile_reports() -> tuple[list[str], list[str]]:
    """Compile library and program; return the lines of two reports of the compiler: (on stack frames, on calls)."""
    with tempfile.TemporaryDirectory() as folder:
        compiled(Path(folder), with_program=True)
        frames, calls = (
            [line for path in Path(folder).glob(f"*.{kind}") for line in path.read_text().splitlines()]
            for kind in ("su", "ci")
        )
    return frames, calls


@lru_cache(maxsize=1)
def _parse_calls() -> tuple[dict[str, int], dict[str, set[str]]]:
    """Return ({function: bytes of its stack frame}, {function: called functions}) from the compiler's reports."""
    _, lines = _compile_reports()
    sizes, calls = {}, defaultdict(set)
    for line in lines:
        if match := re.match(r'node: \{ title: "([^"]+)" label: "[^"]*\\n(\d+) bytes', line):
            sizes[_parse_function_name(match.group(1))] = int(match.group(2))
        elif match := re.match(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"(?: label: "([^"]+)")?', line):
            caller, callee, where = match.groups()
            pointed = next((names for file, names in POINTERS.items() if file in (where or caller)), ())
            calls[_parse_function_name(caller)] |= set(pointed if callee == POINTER else [_parse_function_name(callee)])
    return sizes, calls


def _parse_function_name(title: str) -> str:
    """Return the name of a function from its title in a report, without the source file and the optimizer's suffix."""
    return title.rpartition(":")[2].partition(".")[0]


def _find_deepest_path(
    name: str, sizes: dict[str, int], calls: dict[str, set[str]], above: tuple[str, ...]
) -> list[str]:
    if name in above:
        raise ValueError(f"{name} calls itself: {' -> '.join(above)}")
    below = [_find_deepest_path(callee, sizes, calls, (*above, name)) for callee in sorted(calls.get(name, ()))]
    return [name, *max(below, key=_make_path_size(sizes), default=[])]


def node_B(**defines: int) -> int:
    """Return the size of a node (`struct diffusion`) in bytes.

    ``defines``: C macros with the sizes of lists, such as MAX_INTERESTS=5; other lists have their default sizes.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, assembly = Path(folder) / "size.c", Path(folder) / "size.s"
        source.write_text('#include "diffusion.h"\nconst unsigned size_B = sizeof(struct diffusion);\n')
        named = [f"-D{name}={value}" for name, value in defines.items()]
        includes = [f"-I{path}" for path in FOLDERS]
        command = [*in_c.COMPILE_FOR_CORTEX_M3, *named, *includes, "-S", str(source), "-o", str(assembly)]
        subprocess.run(command, check=True)
        match = re.search(r"\.word\s+(\d+)", assembly.read_text())
    if match is None:
        raise ValueError("the compiler's assembly does not contain the size of a node")
    return int(match.group(1))


def entry_B(name: str, message_B: int) -> int:
    """Return the bytes that an entry of a list takes. All other lists have the definition file's sizes.

    ``name``: C macro with the list's size, such as "MAX_INTERESTS". ``message_B``: largest size of a message in bytes.
    """
    # Eight entries are measured, because structs are rounded up to whole words.
    more = {name: DEFAULTS[name] + 8, "MESSAGE_B": message_B}
    return (node_B(**more) - node_B(MESSAGE_B=message_B)) // 8


def protocol_of(defines: dict[str, int], filters: tuple[Filter, ...] = ()) -> Diffusion:
    """Return a protocol whose nodes have these list sizes and filters; ``defines``: {C macro: size}."""
    profiles = {size: name for name, size in PROFILES.items()}
    sizes = {name.lower(): value for name, value in defines.items() if name != "MESSAGE_B"}
    profile = profiles[defines.get("MESSAGE_B", DEFAULTS["MESSAGE_B"])]
    return Diffusion(**sizes, profile=profile, refresh_s=1, filters=filters)


def deepest_stack_B(protocol: Diffusion | wb.Flooding) -> int:
    """Return the greatest stack depth, in bytes, of four emulated motes that subscribe, publish and relay."""
    subscriptions = [wb.subscribe(node, f"TEMP GE {10 * node}", start_s=node / 10) for node in range(4)]
    publication = wb.publish("all", "TEMP IS 40, HUMIDITY IS 50", every_s=0.5, start_s=0.5)
    scenario = wb.Scenario(wb.topology.grid(2, 2), protocol, [*subscriptions, publication], duration_s=4)
    with wb.motes.virtual(lockstep=True, kind=in_c.CORTEX_M3) as virtual:
        scenario.run(on=virtual)
        used_B = max(used_B or 0 for used_B in virtual.memory().allocated_B.values())
        whole = in_c.image_footprint(virtual.program_of(0))
    return used_B - (whole.ram_B - whole.stack_B)


def print_images() -> None:
    """Print the memory of images with several list sizes and filters, and their measured stack depths."""
    if (reason := in_c.missing(in_c.CORTEX_M3)) is not None:
        print(f"images: {reason}")
        return
    for name, message_B in PROFILES.items():
        for size_name, sizes in (("the definition file's", {}), ("small", SMALL), ("smaller", SMALLER)):
            for count in (0, 1, 2) if sizes is SMALL else (0,):
                protocol = protocol_of({"MESSAGE_B": message_B, **sizes}, FILTERS[:count])
                print_image(f"{name}, {size_name} sizes, {count} filters", protocol)
    for max_events in (100, 1000):
        print_image(f"flooding, {max_events} publications", wb.Flooding(max_events=max_events))


def print_image(title: str, protocol: Diffusion | wb.Flooding) -> None:
    """Print the flash, RAM and measured stack depth of a protocol's image; ``title`` begins the line."""
    whole = in_c.footprint(protocol)
    print(
        f"an image, {title}: flash {whole.flash_B:,} B, RAM {whole.ram_B:,} B, {whole.stack_B:,} B of it "
        f"for the stack, which took {deepest_stack_B(protocol):,} B"
    )


def main() -> None:
    """Print the sizes of images, code, nodes and list entries, and the depths of stacks."""
    print_images()
    print(f"the library's code and constants: {code_B():,} B")
    for name, message_B in PROFILES.items():
        full, small = node_B(MESSAGE_B=message_B), node_B(MESSAGE_B=message_B, **SMALLER)
        print(f"a node, {name}: {full:,} B; smaller lists: {small:,} B")
    for name in LISTS:
        print(f"{name}: one more takes " + ", ".join(f"{entry_B(name, B)} B {p}" for p, B in PROFILES.items()))
    for has_filters in (False, True):
        about = f"the stack {'with' if has_filters else 'without'} filters"
        bound_B, stack_B = stack_bound_B(has_filters), in_c.STACK_WITH_PARTS_B if has_filters else in_c.STACK_B
        print(f"{about} can be {bound_B:,} B deep: {' > '.join(deepest_calls(has_filters))}")
        print(f"it has {stack_B:,} B: {stack_B - in_c.STACK_GUARD_B - bound_B} B remain above its guard")
    for frame in frames()[:5]:
        print(f"stack: {frame.function} {frame.size_B} B")


if __name__ == "__main__":
    main()
