"""Measure the memory of a mote's program: each file, each entry of TinyDiffusion's lists, and coded diffusion.

    .venv/bin/python hardware/memory.py

Theory of operation
    The program of `workbench.motes.program` is compiled with mpy-cross and loaded file by file into MicroPython on
    Node.js, a machine of 32 bits like most motes. After each file the allocated bytes are counted without garbage. Then
    a node is filled through its own interface (filling.py). The size of a list's entry is computed from two nodes that
    received the same messages: in one the list has its default size, in the other it has 1 entry. In both, all other
    lists have 1 entry.

    Coded diffusion is measured at its maximum (filling_coded.py): with a decoded event that is stored until a timer
    fires, and all temporary objects of decoding.

Limits
    A board's driver is not included: board_memory.py measures the programs of boards. A board that runs code from flash
    needs less memory than measured here.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import interpreter  # noqa: E402

from workbench.motes.measuring import LinkProbes  # noqa: E402
from workbench.motes.program import compile_file, program_files  # noqa: E402
from workbench.protocols.coded_diffusion import CodedDiffusion  # noqa: E402
from workbench.protocols.diffusion import Diffusion  # noqa: E402

BUDGET_B = 64 * 1024
BOARD = "virtual"

# The files that a mote loads, each after the files that it imports. The other files (names and text of attributes,
# filters, other protocols, sensors) are loaded only if a configuration needs them.
_FIRST = (
    "workbench/errors",
    "workbench/draws",
    "workbench/attributes/model",
    "workbench/attributes/wire",
    "workbench/protocols/subscriptions",
    "workbench/protocols/contract",
)
_LAST = (
    "workbench/motes/framing",
    "workbench/motes/messages",
    "radio_serial",
    "mote",
)
LOADED = (
    *_FIRST,
    "workbench/attributes/interests",
    "workbench/protocols/diffusion/wire",
    "workbench/protocols/diffusion/events",
    "workbench/protocols/recent",
    "workbench/protocols/diffusion/rules",
    "workbench/protocols/diffusion/interest_cache",
    "workbench/protocols/diffusion/reinforcement",
    "workbench/protocols/diffusion/node",
    *_LAST,
)
LOADED_CODED = (
    *_FIRST,
    "workbench/coding/fields",
    "workbench/coding/rlnc",
    "workbench/attributes/event_bytes",
    "workbench/protocols/coded_diffusion/wire",
    "workbench/protocols/coded_diffusion/rules",
    "workbench/protocols/coded_diffusion/node",
    *_LAST,
)
LOADED_PROBES = (*_FIRST, *_LAST, "workbench/motes/probes")
# Generation size and bytes of payload of an event: 16 chunks of 64 bytes are a kilobyte, and fewer are longer.
DECODED = ((16, 64), (2, 1024), (4, 1024), (8, 1024), (16, 1024))
SMALLER = {"max_interests": 5, "max_gradients": 4, "max_reinforcements": 4}
SIZES = ("max_interests", "max_gradients", "max_reinforcements", "max_data", "max_seen_interests")


class Loaded(NamedTuple):
    """A file of the program: the size of its bytecode, and the heap that importing the file takes, both in bytes."""

    name: str
    size_B: int
    heap_B: int


class Setting(NamedTuple):
    """A setting of Diffusion that is the size of a list: its default, and the bytes of heap for each list entry."""

    name: str
    default: int
    entry_B: float


def mote_files() -> dict[str, bytes]:
    """Return {path on the mote: bytes} for the program's compiled files."""
    return dict(program_files(BOARD, compiled=True))


@lru_cache
def loaded_files(loaded: tuple[str, ...] = LOADED) -> tuple[Loaded, ...]:
    """Import files of the program in the order of ``loaded``; return name, bytecode size and heap use of each file.

    Names in ``loaded`` that the program does not contain are skipped.
    """
    files = mote_files()
    names = [name for name in loaded if f"{name}.mpy" in files]
    modules = [name.replace("/", ".") for name in names]
    empty_B, *after_B = interpreter.measure(files, ["", *(f"import {module}" for module in modules)])
    before_B = [empty_B, *after_B[:-1]]
    return tuple(
        Loaded(name, len(files[f"{name}.mpy"]), after - before)
        for name, before, after in zip(names, before_B, after_B, strict=True)
    )


def nodes_B(*nodes: str, loaded: tuple[str, ...] = LOADED, filling: str = "filling") -> list[int]:
    """Return the bytes of heap that each node takes; each is measured in an interpreter of its own.

    ``nodes``: Python source of calls that return the nodes, such as "full_node({...})". ``loaded``: files that are
    loaded before the calls. ``filling``: module that defines the called functions, "filling" or "filling_coded".
    """
    files = mote_files() | dict([compile_file("filling.py", HERE / f"{filling}.py")])
    modules = ", ".join(file.name.replace("/", ".") for file in loaded_files(loaded))
    # One interpreter for each: the collector may keep a node alive to which an old value on the stack still points.
    begin = f"import {modules}, filling\nnode = None"
    allocated_B = [interpreter.measure(files, (begin, f"node = filling.{node}")) for node in nodes]
    return [after - before for before, after in allocated_B]


def settings_table() -> list[Setting]:
    """Return a `Setting` for each setting in SIZES: its default, and the bytes of heap that an entry takes."""
    default = Diffusion().settings
    lean = dict.fromkeys(SIZES, 1)
    variants = [lean, *(lean | {name: default[name]} for name in SIZES)]
    base, *full = nodes_B(*map(full_node, variants))
    return [
        Setting(name, default[name], (full_B - base) / (default[name] - 1))
        for name, full_B in zip(SIZES, full, strict=True)
    ]


def totals_B() -> dict[str, int]:
    """Return {state of the node: bytes of heap that the program and the node take together}.

    The states are: empty, in use, full, and full with the smaller list sizes in SMALLER.
    """
    program = sum(file.heap_B for file in loaded_files())
    empty, used, full, smaller = nodes_B(
        *(f"{state}_node({Diffusion().on_a_mote()})" for state in ("empty", "used", "full")), full_node(SMALLER)
    )
    return {
        "empty": program + empty,
        "in use": program + used,
        "full": program + full,
        f"full, with {', '.join(f'{name}={value}' for name, value in SMALLER.items())}": program + smaller,
    }


def coded_totals_B(order: int = 256) -> dict[str, int]:
    """Return {state of a node of coded diffusion: bytes of heap that program and node take together}.

    The states are: empty, and after decoding an event, for each (generation size, bytes of payload) in DECODED.
    ``order`` is the number of elements of the finite field.
    """
    program = sum(file.heap_B for file in loaded_files(LOADED_CODED))
    calls = [f"empty_node({CodedDiffusion().on_a_mote()})"]
    for size, payload_B in DECODED:
        settings = CodedDiffusion(generation_size=size, field=order).on_a_mote()
        calls.append(f"decoding_node({settings}, {payload_B})")
    nodes = nodes_B(*calls, loaded=LOADED_CODED, filling="filling_coded")
    names = ["empty", *(f"{payload_B} B in a generation of {size}" for size, payload_B in DECODED)]
    return {name: program + node_B for name, node_B in zip(names, nodes, strict=True)}


def estimator_B(neighbors: int = 20) -> tuple[int, float]:
    """Return (bytes of heap of a link estimator without neighbors, additional bytes for each neighbor).

    ``neighbors`` is the number of neighbors from which the mean is computed.
    """
    module = "workbench.protocols.link_estimator"
    loaded = "; ".join(f"import {file.name.replace('/', '.')}" for file in loaded_files())
    fill = f"for n in range({neighbors}):\n for k in range(12): estimator.receive(n, bytes((0xBE, k, 0)))"
    made = f"from {module} import LinkEstimator\nestimator = LinkEstimator(1000)"
    before, empty, full = interpreter.measure(mote_files(), [loaded, made, fill])
    return empty - before, (full - empty) / neighbors


def probes_B(neighbors: int = 20) -> tuple[int, int, float]:
    """Return (bytes of heap of the program, of a node, of each neighbor) for a mote that measures links.

    The program contains only the node that measures links. ``neighbors`` is the number of neighbors from which the mean
    is computed.
    """
    loaded = "; ".join(f"import {name.replace('/', '.')}" for name in LOADED_PROBES)
    settings = LinkProbes().on_a_mote()
    made = (
        f"node = {LOADED_PROBES[-1].replace('/', '.')}.ProbeNode(1000, contract.Settings({settings}), draws.Stream(1))"
    )
    program = f"{loaded}\nfrom workbench import draws\nfrom workbench.protocols import contract"
    header = "b'P' + n.to_bytes(4, 'little') + k.to_bytes(4, 'little')"
    fill = f"for n in range({neighbors}):\n for k in range(40): node.receive({header}, n, 0); node.take_events()"
    start, before, empty, full = interpreter.measure(mote_files(), ["", program, f"{made}\nnode.start(0)", fill])
    return before - start, empty - before, (full - empty) / neighbors


def full_node(settings: dict[str, int]) -> str:
    return f"full_node({Diffusion(**settings).on_a_mote()})"


def main() -> None:
    """Print the tables of files, settings and nodes."""
    missing = interpreter.why_missing()
    if missing:
        sys.exit(missing)
    print(f"{'file':36}{'.mpy, B':>9}{'heap, B':>9}")
    heap_B = {file.name: file.heap_B for file in loaded_files()}
    for path, contents in sorted(mote_files().items()):
        name = path.removesuffix(".mpy")
        print(f"{path:36}{len(contents):9}{heap_B.get(name, 'if asked'):>9}")
    print(f"{'the program, with TinyDiffusion':36}{'':9}{sum(heap_B.values()):9}\n")
    print(f"{'setting of Diffusion':26}{'default':>9}{'an entry takes, B':>19}")
    for setting in settings_table():
        print(f"{setting.name:26}{setting.default:9}{setting.entry_B:19.0f}")
    print(f"\nprogram and node, of {BUDGET_B} B:")
    _print_totals(totals_B())
    print(f"\nthe same with coded diffusion over GF(2^8), of {BUDGET_B} B:")
    _print_totals(coded_totals_B())
    program_B, neighbor_B = estimator_B()
    print(f"\nestimator of link qualities: {program_B} B, and {neighbor_B:.0f} B for each neighbor")
    program_B, node_B, neighbor_B = probes_B()
    print(f"measurement of links: program {program_B} B, node {node_B} B, and {neighbor_B:.0f} B for each neighbor")


def _print_totals(totals: dict[str, int]) -> None:
    for state, allocated_B in totals.items():
        print(f"{allocated_B:8} B{BUDGET_B - allocated_B:8} B left  {state}")


if __name__ == "__main__":
    main()
