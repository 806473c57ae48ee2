"""What a mote in C takes: the whole image by profile and sizes, the library alone, each list, the largest stack frames.

    .venv/bin/python hardware/c_memory.py

It is compiled for a Cortex-M3 with arm-none-eabi-gcc (Debian: gcc-arm-none-eabi, libnewlib-arm-none-eabi). The image is
the one that `wb.motes.virtual(kind="cortex-m3")` runs: program, host link, radio, stack. How deep the stack has been is
measured on motes that qemu-system-arm emulates. How deep it can be is the longest way through the calls, which never
come back to where they were: there is no recursion. What an entry of a list costs is the difference between a node with
more of it and a node without.
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
OF_DIFFUSION = ("node", "interests", "data", "serving", "reinforcement", "filtering", "interest_cache", "wire")
NEEDED = ("attributes", "division", "draws", *OF_DIFFUSION)
PROFILES = {"strict": 29, "wide": 60}
# A goal: with these sizes, and the definition file's for all other lists, an image is to take ten kilobytes at most.
SMALL = {"MAX_INTERESTS": 5, "MAX_GRADIENTS": 4, "MAX_REINFORCEMENTS": 4}
GOAL_B = 10 * 1024
FILTERS = (Filter("suppress_unchanged", 200), Filter("running_mean", 201))
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
# Whom functions call by pointer: where the caller stands -> the functions that the pointers of an image lead to.
DECIDERS = tuple(IN_C)
READERS = ("read_running_window", *(f"read_{name}" for name in DECIDERS if not name.startswith("running_")))
POINTERS = {
    "c/filtering.c": DECIDERS,
    "mote/placing.c": READERS,
    "diffusion/c/": ("take_frame", "take_event"),
    "mote/framing.c": ("write_host", "write_radio"),
    "mote/mote.c": ("now_us", "used_B", "reset_board", "trouble"),
    "mps2_an385/main.c": ("mote_feed", "mote_hear"),
}
POINTER = "__indirect_call"
WITHOUT_FILTERS = ("answer_one",)  # is never called: it hands a message to the filters
LIBRARY_B = 64  # taken for what comes with the compiler: memcpy and its like, the arithmetic of doubles
INTERRUPT_B = 32 + 4  # what the chip itself puts on the stack
DEFAULTS = definition_file.sizes(Diffusion())
LISTS = [name for name in DEFAULTS if name not in ("MAX_ATTRIBUTES", "MAX_NEXT_HOPS", "MESSAGE_B")]


class Frame(NamedTuple):
    """What one function takes of the stack."""

    size_B: int
    function: str


def compiled(folder: Path, with_program: bool = False) -> list[Path]:
    """The library's objects at the definition file's sizes; those of the program around it, and filters, if wanted."""
    objects = []
    needed = (*NEEDED, "built_in") if with_program else NEEDED
    sources = [path for where in FOLDERS for path in sorted(where.glob("*.c")) if path.stem in needed]
    named = ["-DMAX_FILTERS=1"] if with_program else []
    folders = (*FOLDERS, *PROGRAM) if with_program else FOLDERS
    for source in [*sources, *(path for where in folders[len(FOLDERS) :] for path in sorted(where.glob("*.c")))]:
        objects.append(folder / f"{source.stem}.o")
        where = [f"-I{one}" for one in folders]
        told = ("-fstack-usage", "-fcallgraph-info=su")
        made = ("-c", str(source), "-o", str(objects[-1]))
        subprocess.run([*in_c.COMPILE_FOR_CORTEX_M3, *told, *named, *where, *made], check=True)
    return objects


def code_B() -> int:
    """Bytes of code and constants, at the definition file's sizes."""
    with tempfile.TemporaryDirectory() as folder:
        objects = compiled(Path(folder))
        said = subprocess.run(["arm-none-eabi-size", *objects], capture_output=True, text=True, check=True).stdout
    return sum(int(line.split()[0]) for line in said.splitlines()[1:])


def frames() -> list[Frame]:
    """The stack frames of all functions, the program's too, largest first."""
    lines, _ = _reports()
    found = [Frame(int(line.split("\t")[1]), line.split("\t")[0].rpartition(":")[2]) for line in lines]
    return sorted(found, reverse=True)


def deepest_calls(has_filters: bool = False) -> list[str]:
    """The functions on the way through an image's calls that takes the most stack, and then those of an interrupt."""
    sizes, calls = _calls()
    if not has_filters:
        calls = {name: called.difference(WITHOUT_FILTERS) for name, called in calls.items()}
    way = _deepest("reset", sizes, calls, ())
    interrupt = max((_deepest(name, sizes, calls, ()) for name in ("host_heard", "clock_wrapped")), key=_way_B(sizes))
    return [*way, *interrupt]


def stack_bound_B(has_filters: bool = False) -> int:
    """How deep the stack of an image can be, at the definition file's sizes."""
    return _way_B(_calls()[0])(deepest_calls(has_filters)) + INTERRUPT_B


def _way_B(sizes: dict[str, int]) -> Callable[[list[str]], int]:
    return lambda way: sum(sizes.get(name, LIBRARY_B) for name in way)


@lru_cache(maxsize=1)
def _reports() -> tuple[list[str], list[str]]:
    """What the compiler reports of the library and the program around it: lines on stack frames, lines on calls."""
    with tempfile.TemporaryDirectory() as folder:
        compiled(Path(folder), with_program=True)
        frames, calls = (
            [line for path in Path(folder).glob(f"*.{kind}") for line in path.read_text().splitlines()]
            for kind in ("su", "ci")
        )
    return frames, calls


@lru_cache(maxsize=1)
def _calls() -> tuple[dict[str, int], dict[str, set[str]]]:
    """(function -> its stack frame, function -> whom it calls), as the compiler has seen them."""
    _, lines = _reports()
    sizes, calls = {}, defaultdict(set)
    for line in lines:
        if found := re.match(r'node: \{ title: "([^"]+)" label: "[^"]*\\n(\d+) bytes', line):
            sizes[_name(found.group(1))] = int(found.group(2))
        elif found := re.match(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"(?: label: "([^"]+)")?', line):
            caller, callee, where = found.groups()
            pointed = next((names for place, names in POINTERS.items() if place in (where or caller)), ())
            calls[_name(caller)] |= set(pointed if callee == POINTER else [_name(callee)])
    return sizes, calls


def _name(title: str) -> str:
    """A function's name, without its file and what the optimizer has put behind it."""
    return title.rpartition(":")[2].partition(".")[0]


def _deepest(name: str, sizes: dict[str, int], calls: dict[str, set[str]], above: tuple[str, ...]) -> list[str]:
    if name in above:
        raise ValueError(f"{name} calls itself: {' -> '.join(above)}")
    below = [_deepest(one, sizes, calls, (*above, name)) for one in sorted(calls.get(name, ()))]
    return [name, *max(below, key=_way_B(sizes), default=[])]


def node_B(**defines: int) -> int:
    """Bytes of a node: of `struct diffusion`."""
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "size.c", Path(folder) / "size.s"
        source.write_text('#include "diffusion.h"\nconst unsigned size_B = sizeof(struct diffusion);\n')
        named = [f"-D{name}={value}" for name, value in defines.items()]
        where = [f"-I{one}" for one in FOLDERS]
        command = [*in_c.COMPILE_FOR_CORTEX_M3, *named, *where, "-S", str(source), "-o", str(made)]
        subprocess.run(command, check=True)
        found = re.search(r"\.word\s+(\d+)", made.read_text())
    if found is None:
        raise ValueError("the compiler has not said how large a node is")
    return int(found.group(1))


def entry_B(name: str, message_B: int) -> int:
    """Bytes of one more entry of a list, the lists around it being of the definition file's sizes."""
    # Of eight, for structs are rounded up to whole words.
    more = {name: DEFAULTS[name] + 8, "MESSAGE_B": message_B}
    return (node_B(**more) - node_B(MESSAGE_B=message_B)) // 8


def protocol_of(defines: dict[str, int], filters: tuple[Filter, ...] = ()) -> Diffusion:
    """The protocol whose nodes have these sizes, and these filters."""
    profiles = {size: name for name, size in PROFILES.items()}
    sizes = {name.lower(): value for name, value in defines.items() if name != "MESSAGE_B"}
    profile = profiles[defines.get("MESSAGE_B", DEFAULTS["MESSAGE_B"])]
    return Diffusion(**sizes, profile=profile, refresh_s=1, filters=filters)


def deepest_stack_B(protocol: Diffusion | wb.Flooding) -> int:
    """How much stack a protocol's motes have taken at most, in a network where each asks, answers and relays."""
    wanted = [wb.subscribe(node, f"TEMP GE {10 * node}", start_s=node / 10) for node in range(4)]
    made = wb.publish("all", "TEMP IS 40, HUMIDITY IS 50", every_s=0.5, start_s=0.5)
    scenario = wb.Scenario(wb.topology.grid(2, 2), protocol, [*wanted, made], duration_s=4)
    with wb.motes.virtual(lockstep=True, kind=in_c.CORTEX_M3) as on:
        scenario.run(on=on)
        used_B = max(used_B or 0 for used_B in on.memory().allocated_B.values())
        whole = in_c.image_footprint(on.program_of(0))
    return used_B - (whole.ram_B - whole.stack_B)


def print_images() -> None:
    """What images take, and how much of the stack that is in it they use."""
    if (reason := in_c.missing(in_c.CORTEX_M3)) is not None:
        print(f"images: {reason}")
        return
    for name, message_B in PROFILES.items():
        for said, sizes in (("the definition file's", {}), ("small", SMALL), ("smaller", SMALLER)):
            for count in (0, 1, 2) if sizes is SMALL else (0,):
                protocol = protocol_of({"MESSAGE_B": message_B, **sizes}, FILTERS[:count])
                print_image(f"{name}, {said} sizes, {count} filters", protocol)
    for most in (100, 1000):
        print_image(f"flooding, {most} publications", wb.Flooding(max_events=most))


def print_image(said: str, protocol: Diffusion | wb.Flooding) -> None:
    """What the image of a protocol's nodes takes."""
    whole = in_c.footprint(protocol)
    print(
        f"an image, {said}: flash {whole.flash_B:,} B, RAM {whole.ram_B:,} B, {whole.stack_B:,} B of it "
        f"for the stack, which took {deepest_stack_B(protocol):,} B"
    )


def main() -> None:
    """Print the tables."""
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
