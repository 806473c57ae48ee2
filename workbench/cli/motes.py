"""The command ``workbench motes``: run a scenario on motes, measure links, monitor a mote, write a board's program.

`bench` has the commands that prepare boards: list, name, provision and flash.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.cli import bench
from workbench.errors import LinkError

FAILED = 1
INTERRUPTED = 130  # as in shells: 128 plus the number of the signal


def add_parser(commands: Any) -> None:
    """Add the sub-command ``motes`` to the command line."""
    motes = commands.add_parser("motes", help="run on virtual motes or boards; listen to a mote")
    subcommands = motes.add_subparsers(dest="motes_command", required=True, metavar="COMMAND")

    bench.add_parsers(subcommands)

    run = subcommands.add_parser("run", help="run a scenario from its JSON file on motes")
    run.add_argument("scenario", type=Path, metavar="SCENARIO.json")
    _add_board_options(run)
    run.add_argument(
        "--kind",
        default="micropython",
        type=_parse_kind,
        help="kind of virtual motes: micropython (default), c or cortex-m3; or by node, as 3=c,5=cortex-m3, with the "
        "others simulated",
    )
    run.add_argument("--speed", type=float, default=1.0, help="speed of virtual motes' clocks (default: 1, real time)")
    run.add_argument(
        "--lockstep", action="store_true", help="run in simulated time, with the same trace as the simulator"
    )
    run.add_argument("--out", type=Path, help="folder for the results (default: out/ and the file's name)")
    run.set_defaults(command=run_on_motes)

    measure = subcommands.add_parser(
        "measure", help="measure the links between boards by probes, and write them as a table; Ctrl-C ends early"
    )
    measure.add_argument(
        "scenario",
        type=Path,
        nargs="?",
        metavar="SCENARIO.json",
        help="measure only the links of this scenario's network; required for virtual motes, whose links are simulated",
    )
    _add_board_options(measure)
    measure.add_argument("--seconds", type=float, default=60.0, help="duration of the measurement (default: 60 s)")
    measure.add_argument(
        "--interval",
        type=float,
        metavar="S",
        help="longest interval of Trickle, with one probe in each (default: 0.5 s)",
    )
    measure.add_argument("--size", type=int, default=32, metavar="B", help="size of a probe (default: 32 bytes)")
    measure.add_argument("--speed", type=float, default=1.0, help="speed of virtual motes' clocks (default: 1)")
    measure.add_argument("--out", type=Path, default=Path("links.csv"), help="table to write (default: links.csv)")
    measure.set_defaults(command=measure_links)

    monitor = subcommands.add_parser("monitor", help="connect to a mote and print its reports, until Ctrl-C")
    place = monitor.add_mutually_exclusive_group(required=True)
    place.add_argument("url", metavar="URL", nargs="?", help="the port of the mote")
    place.add_argument("--node", type=int, help="the mote of this node of the bench file")
    bench.add_bench(monitor)
    monitor.add_argument("--seconds", type=float, help="stop after this time")
    monitor.set_defaults(command=monitor_mote)

    program = subcommands.add_parser("program", help="write the program files for a board")
    program.add_argument("--board", required=True, help="name of a driver in hardware/mote/boards")
    program.add_argument("--out", type=Path, required=True, help="folder to write the files into")
    program.add_argument("--source", action="store_true", help="write Python source, not compiled with mpy-cross")
    program.set_defaults(command=write_files)


def _add_board_options(parser: argparse.ArgumentParser) -> None:
    """Add the options ``--on``, ``--bench`` and ``--radio``, which choose boards."""
    parser.add_argument(
        "--on",
        action="append",
        default=[],
        metavar="URL",
        help="port of a board (/dev/ttyUSB0, socket://host:port, rfc2217://host:port); one for each node in ascending "
        "order (default: virtual motes)",
    )
    parser.add_argument(
        "--bench",
        type=Path,
        metavar="FILE",
        help="use the boards of this bench file, wherever they are connected (default: virtual motes)",
    )
    parser.add_argument(
        "--radio",
        action="append",
        default=[],
        type=bench.parse_setting,
        metavar="NAME=VALUE",
        help="a setting of the boards' own radios, with --on or --bench; may be repeated",
    )


def _choose_boards(options: argparse.Namespace) -> Any:
    """Return the `Boards` that the options ``--on``, ``--bench`` and ``--radio`` specify, or None for virtual motes."""
    from workbench import motes

    if options.on and options.bench:
        raise LinkError("--on and --bench both name the boards; give one of them")
    if not options.on and not options.bench:
        if options.radio:
            raise LinkError("--radio applies to boards with a radio of their own; give it with --on or --bench")
        return None
    return motes.boards(options.bench or options.on, dict(options.radio))


def _parse_kind(text: str) -> Any:
    """Parse the option ``--kind``: return a kind of motes, or {node: kind} for a text such as "3=c,5=cortex-m3"."""
    if "=" not in text:
        return text
    try:
        node_kinds = [pair_text.partition("=") for pair_text in text.split(",")]
        return {int(node): kind.strip() for node, _, kind in node_kinds}
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of node=kind; write one kind for all motes, or a list such as 3=c,5=cortex-m3"
        ) from None


def run_on_motes(options: argparse.Namespace) -> int:
    """Run a scenario file on motes: print the progress, then print and write the same results as `workbench run`.

    Ctrl-C ends a live run. Its result so far is printed and written.
    """
    from workbench import cli, motes

    scenario = cli.read_scenario(options.scenario)
    boards = _choose_boards(options)
    if boards is not None and (options.lockstep or options.speed != 1.0 or options.kind != motes.MICROPYTHON):
        raise LinkError(
            "--speed, --lockstep and --kind apply to virtual motes only; leave them out with --on and --bench"
        )
    chosen_motes = boards or motes.virtual(options.speed, options.lockstep, options.kind)
    try:
        run = chosen_motes.play(scenario, _make_progress_printer(scenario.duration_s) if sys.stderr.isatty() else None)
    except KeyboardInterrupt:
        print("workbench motes run: interrupted, with nothing to write yet", file=sys.stderr)
        return INTERRUPTED
    exit_code = 0 if chosen_motes.lockstep else _wait_for_end(run)
    if len(set(run.kinds.values())) > 1:
        kind_counts = Counter(run.kinds.values())
        print("nodes: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kind_counts.items())))
    cli.write_results(run, options.out or Path("out", options.scenario.stem))
    for note in getattr(run, "notes", ()):
        print(f"workbench motes run: {note}", file=sys.stderr)
    return exit_code


def _wait_for_end(run: Any) -> int:
    """Wait for the end of a live run and return the exit code; Ctrl-C stops the run.

    If the run failed, its notes have the reason.
    """
    try:
        run.wait()
    except KeyboardInterrupt:
        run.stop()  # The signal may have arrived before run.wait() began.
        return INTERRUPTED
    except Exception:
        if run.error is None:
            raise
        return FAILED
    return 0


def _make_progress_printer(duration_s: float) -> Callable[[float], None]:
    """Return a function that prints the elapsed share of ``duration_s``, always on the same line of the terminal.

    The function's argument is the share, 0 to 1.
    """

    def progress(share: float) -> None:
        print(f"\r{share:4.0%} of {duration_s:g} s", end="\n" if share >= 1 else "", file=sys.stderr, flush=True)

    return progress


def measure_links(options: argparse.Namespace) -> int:
    """Measure the links between motes: print and write the table of links. Ctrl-C ends the measurement early."""
    from workbench import cli, motes

    boards = _choose_boards(options)
    if boards is not None and options.speed != 1.0:
        raise LinkError("--speed applies to virtual motes only; leave it out with --on and --bench")
    if boards is None and options.scenario is None:
        raise LinkError(
            "neither boards nor a scenario are given; give --on or --bench to measure boards, or a scenario to measure "
            "virtual motes in its network"
        )
    scenario = None if options.scenario is None else cli.read_scenario(options.scenario)
    chosen_motes = boards or motes.virtual(options.speed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # The notes are printed below.
        try:
            links = chosen_motes.measure(
                None if scenario is None else scenario.topology,
                duration_s=options.seconds,
                interval_s=options.interval,
                size_B=options.size,
                radio=None if scenario is None else scenario.radio,
                progress=_make_progress_printer(options.seconds) if sys.stderr.isatty() else None,
            )
        except KeyboardInterrupt:
            links = None
    for note in () if links is None else links.attrs["notes"]:
        print(f"workbench motes measure: {note}", file=sys.stderr)
    exit_code = INTERRUPTED if links is None or links.attrs["is_stopped"] else 0
    if links is None or links.empty:
        print("workbench motes measure: no link was measured, so there is nothing to write", file=sys.stderr)
        return exit_code or FAILED
    options.out.parent.mkdir(parents=True, exist_ok=True)
    links.to_csv(options.out, index=False, float_format="%.6g")
    print(links.to_string(index=False, float_format="%.3f", na_rep="-"))
    print(f"wrote {len(links)} links (a row for each direction) into {options.out}")
    return exit_code


def monitor_mote(options: argparse.Namespace) -> int:
    """Connect to a mote and print its reports as they arrive, until Ctrl-C or for a given time in s. Return 0."""
    from workbench.attributes.text import to_text
    from workbench.motes.events import event_names
    from workbench.motes.mote import Mote

    url = options.url
    if url is None:
        from workbench.motes.bench.ports import find_ports

        url = find_ports(options.bench, [options.node])[options.node]
    names_by_event = event_names(())

    def report(kind: str, value: Any) -> None:
        if kind == "event":
            time_us, event_number, peer, message, origin, sequence, size_B, value, detail = value
            detail_text = detail if isinstance(detail, str) else to_text(detail)
            name = names_by_event.get(event_number, f"event {event_number}")
            print(
                f"{time_us / 1e6:12.6f} s  {name:18} peer {peer:5}  {message:14} origin {origin:5}  "
                f"sequence {sequence:<6} size {size_B:3} B  value {value}  {detail_text}",
                flush=True,
            )
        elif kind == "send":
            destination, frame = value
            print(f"{'':14} send to {'all' if destination is None else destination}: {frame.hex(' ')}", flush=True)
        elif kind == "ready":
            print(f"{'':14} ready: {_describe_greeting(value)}", flush=True)
        else:
            print(f"{'':14} {kind}: {value}", flush=True)

    with Mote(url, report) as mote:
        assert mote.greeting is not None
        print(f"{url}: {_describe_greeting(mote.greeting)}", flush=True)
        end_s = None if options.seconds is None else time.monotonic() + options.seconds
        try:
            while end_s is None or time.monotonic() < end_s:
                time.sleep(1 if end_s is None else min(1, max(0, end_s - time.monotonic())))
                with suppress(LinkError):  # A lost link is already reported, and the driver reconnects.
                    mote.request_clock()  # so that the mote knows that its host is alive
        except KeyboardInterrupt:
            print()
    return 0


def _describe_greeting(greeting: Any) -> str:
    boot, has_radio, board = greeting
    return f"board {board}, {'with' if has_radio else 'without'} a radio of its own, earlier starts: {boot}"


def write_files(options: argparse.Namespace) -> int:
    """Write the files of a board's program into a folder."""
    from workbench.motes.program import write_program

    written_paths = write_program(options.out, options.board, compiled=False if options.source else None)
    size_B = sum(path.stat().st_size for path in written_paths)
    print(
        f"wrote {len(written_paths)} files, {size_B:,} bytes, into {options.out}; "
        "copy the folder's content onto the board"
    )
    return 0
