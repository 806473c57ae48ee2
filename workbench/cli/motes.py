"""``workbench motes``: what motes there are, a scenario on them, what one of them says, the program that goes on it."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.errors import LinkError

FAILED = 1
INTERRUPTED = 130  # as a shell has it: 128 and the signal's number


def add_parser(commands: Any) -> None:
    """Add the command and its own commands to the command line."""
    motes = commands.add_parser("motes", help="run on virtual motes or boards; listen to a mote")
    which = motes.add_subparsers(dest="motes_command", required=True, metavar="COMMAND")

    listing = which.add_parser("list", help="serial ports, and whether virtual motes can be had")
    listing.set_defaults(command=show_motes)

    run = which.add_parser("run", help="run a scenario from its JSON file on motes")
    run.add_argument("scenario", type=Path, metavar="SCENARIO.json")
    run.add_argument(
        "--on",
        action="append",
        default=[],
        metavar="URL",
        help="a board's line (/dev/ttyUSB0, socket://host:port, rfc2217://host:port); one for each node in ascending "
        "order (default: virtual motes)",
    )
    run.add_argument(
        "--kind",
        default="micropython",
        type=_kind,
        help="of virtual motes: micropython (default), c or cortex-m3; or by node, as 3=c,5=cortex-m3, the others "
        "simulated",
    )
    run.add_argument("--speed", type=float, default=1.0, help="of virtual motes' clocks (default: 1, real time)")
    run.add_argument("--lockstep", action="store_true", help="in the simulator's time: the trace is the simulator's")
    run.add_argument("--out", type=Path, help="folder for the results (default: out/ and the file's name)")
    run.set_defaults(command=run_on_motes)

    monitor = which.add_parser("monitor", help="greet a mote and print what it tells, until Ctrl-C")
    monitor.add_argument("url", metavar="URL")
    monitor.add_argument("--seconds", type=float, help="stop after that time")
    monitor.set_defaults(command=monitor_mote)

    program = which.add_parser("program", help="write the files that go on a board")
    program.add_argument("--board", required=True, help="a driver of hardware/mote/boards")
    program.add_argument("--out", type=Path, required=True, help="folder to write them into")
    program.add_argument("--source", action="store_true", help="as Python, not compiled with mpy-cross")
    program.set_defaults(command=write_files)


def show_motes(_: argparse.Namespace) -> int:
    """The serial ports, and a line on each kind of virtual motes."""
    from workbench import motes

    for url, what in motes.listing():
        print(f"{url:30} {what}")
    for kind in (motes.MICROPYTHON, motes.C, motes.CORTEX_M3):
        print(f"{f'virtual, {kind}':30} {motes.missing(kind) or 'as many as a scenario has nodes'}")
    return 0


def _kind(text: str) -> Any:
    """A kind of mote, or {node: kind} of "3=c,5=cortex-m3"."""
    if "=" not in text:
        return text
    try:
        parts = [part.partition("=") for part in text.split(",")]
        return {int(node): kind.strip() for node, _, kind in parts}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a kind nor a list such as 3=c,5=cortex-m3") from None


def run_on_motes(options: argparse.Namespace) -> int:
    """Run one scenario file on motes; print how far it is, then what `workbench run` prints and writes.

    Ctrl-C ends a live run; what has happened until then is printed and written.
    """
    from workbench import cli, motes

    scenario = cli.read_scenario(options.scenario)
    if options.on and (options.lockstep or options.speed != 1.0 or options.kind != motes.MICROPYTHON):
        raise LinkError("--speed, --lockstep and --kind are for virtual motes; leave them out with --on")
    virtual = motes.virtual(options.speed, options.lockstep, options.kind)
    where = motes.boards(options.on) if options.on else virtual
    try:
        run = where.play(scenario, _progress(scenario.duration_s) if sys.stderr.isatty() else None)
    except KeyboardInterrupt:
        print("workbench motes run: interrupted, with nothing to write yet", file=sys.stderr)
        return INTERRUPTED
    code = 0 if where.lockstep else _wait(run)
    if len(set(run.kinds.values())) > 1:
        counts = Counter(run.kinds.values())
        print("nodes: " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    cli.write_results(run, options.out or Path("out", options.scenario.stem))
    for note in getattr(run, "notes", ()):
        print(f"workbench motes run: {note}", file=sys.stderr)
    return code


def _wait(run: Any) -> int:
    """Wait for a live run's end; the exit code. What ended it early is in its notes."""
    try:
        run.wait()
    except KeyboardInterrupt:
        run.stop()  # It may have come before the wait had begun.
        return INTERRUPTED
    except Exception:
        if run.error is None:
            raise
        return FAILED
    return 0


def _progress(duration_s: float) -> Callable[[float], None]:
    """Writes how far a run is, on one line of a terminal, and ends the line with the run."""

    def progress(share: float) -> None:
        print(f"\r{share:4.0%} of {duration_s:g} s", end="\n" if share >= 1 else "", file=sys.stderr, flush=True)

    return progress


def monitor_mote(options: argparse.Namespace) -> int:
    """Print what a mote tells as it comes."""
    from workbench.attributes.text import to_text
    from workbench.motes.events import event_names
    from workbench.motes.mote import Mote

    names = event_names(())

    def tell(kind: str, value: Any) -> None:
        if kind == "event":
            time_us, number, peer, message, origin, sequence, size_B, value, detail = value
            text = detail if isinstance(detail, str) else to_text(detail)
            name = names.get(number, f"event {number}")
            print(
                f"{time_us / 1e6:12.6f} s  {name:18} peer {peer:5}  {message:14} origin {origin:5}  "
                f"sequence {sequence:<6} size {size_B:3} B  value {value}  {text}",
                flush=True,
            )
        elif kind == "send":
            destination, frame = value
            print(f"{'':14} send to {'all' if destination is None else destination}: {frame.hex(' ')}", flush=True)
        elif kind == "ready":
            print(f"{'':14} ready: {_described(value)}", flush=True)
        else:
            print(f"{'':14} {kind}: {value}", flush=True)

    with Mote(options.url, tell) as mote:
        assert mote.greeting is not None
        print(f"{options.url}: {_described(mote.greeting)}", flush=True)
        end = None if options.seconds is None else time.monotonic() + options.seconds
        try:
            while end is None or time.monotonic() < end:
                time.sleep(1 if end is None else min(1, max(0, end - time.monotonic())))
                with suppress(LinkError):  # It is lost, which was told; it is greeted until it answers.
                    mote.ask_clock()  # So that it knows it is not alone.
        except KeyboardInterrupt:
            print()
    return 0


def _described(greeting: Any) -> str:
    boot, has_radio, board = greeting
    return f"board {board}, {'a' if has_radio else 'no'} radio of its own, began {boot} times before"


def write_files(options: argparse.Namespace) -> int:
    """Write the program for a board into a folder."""
    from workbench.motes.program import write_program

    written = write_program(options.out, options.board, compiled=False if options.source else None)
    size_B = sum(path.stat().st_size for path in written)
    print(
        f"wrote {len(written)} files, {size_B:,} bytes, into {options.out}; copy them onto the board as they lie there"
    )
    return 0
