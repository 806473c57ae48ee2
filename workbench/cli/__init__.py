"""The ``workbench`` command with its sub-commands: demo, run, reproduce, publish, data, dissector, motes, warm,
lessons, lab, app and doctor.

Protocols add further sub-commands, which are listed in `public_names.COMMANDS`. The functions that execute a
sub-command take its parsed options.

For invalid input the command prints one sentence to standard error and returns exit code 2. Large packages are imported
only by the sub-commands that need them.
"""

import argparse
import importlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import workbench
from workbench.cli import data as cli_data
from workbench.cli import dissector as cli_dissector
from workbench.cli import lab as cli_lab
from workbench.cli import lessons as cli_lessons
from workbench.cli import motes as cli_motes
from workbench.cli import publish as cli_publish
from workbench.errors import ScenarioError, WorkbenchError
from workbench.public_names import COMMANDS, PROTOCOLS
from workbench.suggestion import meant

if TYPE_CHECKING:
    from workbench.sim.run import Run
    from workbench.sim.scenario import Scenario

BAD_INPUT = 2
DIFFERENT = 1  # exit code of `workbench reproduce`


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments and return its exit code; None: the arguments of this process."""
    parser = make_parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help(sys.stderr)
        parser.exit(BAD_INPUT)
    options = parser.parse_args(arguments)
    try:
        return options.command(options)
    except (WorkbenchError, OSError) as error:
        print(f"workbench {options.name}: {_describe_error(error)}", file=sys.stderr)
        return BAD_INPUT


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line with all sub-commands."""
    parser = argparse.ArgumentParser(prog="workbench", description=(workbench.__doc__ or "").partition("\n")[0])
    parser.add_argument("--version", action="version", version=f"workbench {workbench.__version__}")
    commands = parser.add_subparsers(dest="name", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="the first experiment: 64 motes on an office floor, and a small sweep")
    demo.add_argument("--out", type=Path, default=Path("out"), help="folder for demo.html and demo.png (default: out)")
    demo.add_argument("--no-sweep", action="store_true", help="leave out the sweep, which runs on Spark and needs Java")
    demo.set_defaults(command=show_demo)

    run = commands.add_parser("run", help="run a scenario from its JSON file")
    run.add_argument("scenario", type=Path, metavar="SCENARIO.json")
    run.add_argument(
        "--out", type=Path, help="folder for trace, metrics, page and picture (default: out/ and the file's name)"
    )
    run.add_argument("--engine", default="auto", help="auto (default), or the name of an engine: reference")
    run.add_argument("--pcapng", type=Path, metavar="FILE", help="also write the frames as a capture for Wireshark")
    add_import(run)
    run.set_defaults(command=run_scenario)

    reproduction = commands.add_parser(
        "reproduce",
        help="run again the scenario or sweep behind a picture, a page, a Parquet file or a folder of results",
    )
    reproduction.add_argument(
        "file", type=Path, metavar="FILE", help="a PNG, SVG, PDF, page, Parquet file, or a folder of results"
    )
    reproduction.add_argument("--engine", default="auto", help="auto (default), or the name of an engine: reference")
    reproduction.add_argument(
        "--most", type=int, metavar="N", help="run only the first N runs of a sweep (default: all)"
    )
    add_import(reproduction)
    reproduction.set_defaults(command=reproduce_file)

    cli_publish.add_parser(commands)
    cli_data.add_parser(commands)
    add_import(cli_dissector.add_parser(commands))
    cli_motes.add_parser(commands)

    warm = commands.add_parser("warm", help="compile the fast engine in advance, unless its code is on disk")
    warm.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=f"one of {', '.join(PROTOCOLS)} (default: all)")
    warm.set_defaults(command=warm_twins)

    for module in COMMANDS.values():
        importlib.import_module(f"workbench.{module}").add_parser(commands)

    cli_lessons.add_parser(commands)
    cli_lab.add_parser(commands)

    doctor = commands.add_parser("doctor", help="list what is installed, what is missing and how to install it")
    subject = doctor.add_mutually_exclusive_group()
    subject.add_argument(
        "--all", action="store_true", dest="everything", help="show a table of everything that was checked"
    )
    subject.add_argument(
        "--spark",
        metavar="URL",
        help="check a Spark session and its workers instead: local[*], spark://HOST:7077 or sc://HOST:15002",
    )
    doctor.add_argument(
        "--out", metavar="FOLDER_OR_URL", help="with --spark: the location of sweeps' results (default: results)"
    )
    doctor.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="with --spark: a setting of Spark, such as spark.driver.host=10.0.0.7; may be repeated",
    )
    doctor.set_defaults(command=show_doctor)
    return parser


def add_import(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--import MODULE`` to a parser: a module of the user that is imported first."""
    parser.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="module to import first, which defines a protocol or filters of the scenario; may be repeated",
    )


def show_demo(options: argparse.Namespace) -> int:
    """Run the demo: print its metrics, and write an HTML page and pictures into a folder."""
    from workbench.cli import demo, doctor

    java_finding = doctor.java()
    if not (options.no_sweep or java_finding.is_ok):
        print(
            f"workbench demo: the sweep is left out because Java 17 is missing: {java_finding.remedy}", file=sys.stderr
        )
    demo.main(options.out, sweep=java_finding.is_ok and not options.no_sweep)
    return 0


def _describe_error(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def run_scenario(options: argparse.Namespace) -> int:
    """Run a scenario file: print the metrics, and write the trace, the metrics, an HTML page and a picture."""
    from workbench.sim import runner, workload

    for module_name in options.modules:
        import_module(module_name)
    scenario = read_scenario(options.scenario)
    if warning := workload.describe_late(scenario.workload, scenario.duration_s):
        print(f"workbench run: {options.scenario}: {warning}", file=sys.stderr)
    run = runner.play(scenario, options.engine)
    write_results(run, options.out or Path("out", options.scenario.stem))
    if options.pcapng is not None:
        from workbench.captures.writing import save_pcapng

        save_pcapng(run, options.pcapng)
        print(f"wrote the frames into {options.pcapng}; workbench dissector writes their dissector for Wireshark")
    return 0


def reproduce_file(options: argparse.Namespace) -> int:
    """Run a stored result again and print a comparison. Return 0 if the results are identical, else 1."""
    from workbench.records.reproduction import reproduce

    for module_name in options.modules:
        import_module(module_name)
    reproduction = reproduce(
        options.file, options.engine, options.most, _show_progress if sys.stderr.isatty() else None
    )
    print(reproduction)
    return 0 if reproduction.is_identical else DIFFERENT


def _show_progress(done: int, total: int) -> None:
    if total > 1:
        print(f"\r{done:,} of {total:,} runs", end="\n" if done == total else "", file=sys.stderr, flush=True)


def warm_twins(options: argparse.Namespace) -> int:
    """Compile the fast engine's versions of protocols ("twins") in advance, and print a line for each protocol."""
    from workbench.sim import fast
    from workbench.sim.fast import code_cache, warming

    unknown_names = [protocol_name for protocol_name in options.protocols if protocol_name not in PROTOCOLS]
    if unknown_names:
        raise ScenarioError(
            f"unknown protocol {unknown_names[0]}{meant(unknown_names[0], PROTOCOLS)}; "
            f"the protocols are {', '.join(PROTOCOLS)}"
        )
    finished_twins: set[str] = set()
    for protocol_name in options.protocols or PROTOCOLS:
        protocol = getattr(importlib.import_module(f"workbench.{PROTOCOLS[protocol_name]}"), protocol_name)
        try:
            twin = fast.twin_of(protocol())
        except fast.NoFastTwinError as reason:
            print(reason, flush=True)
            continue
        if twin in finished_twins or code_cache.is_cached(twin):
            print(f"{protocol_name}: on disk", flush=True)
        else:
            print(f"{protocol_name}: compiling ...", end=" ", flush=True)
            began_s = time.perf_counter()
            warming.compile_here(twin, protocol)
            print(f"{time.perf_counter() - began_s:.0f} s", flush=True)
        finished_twins.add(twin)
    return 0


def write_results(run: "Run", out: Path) -> None:
    """Print a run's metrics, and write the run into the folder ``out``.

    The files are scenario.json, metrics.json, record.json, trace.parquet, run.html and run.png.
    """
    from workbench.analysis.explain import hint
    from workbench.records import record
    from workbench.sim.metrics.shown import shown_metrics
    from workbench.views.export import save_html
    from workbench.views.figure import network_drawing

    print(shown_metrics(run.metrics).to_string(float_format=lambda value: f"{value:.6g}"))
    if advice := hint(run.metrics["delivery_ratio"]):
        print(advice)
    record.save(run, out)
    save_html(run, out / "run.html")
    (out / "run.png").write_bytes(network_drawing(run).to_png())
    print(f"wrote scenario.json, metrics.json, record.json, trace.parquet, run.html and run.png into {out}")


def import_module(name: str) -> None:
    """Import a module of the user: one in the current folder or an installed one.

    Raises ScenarioError if the import fails for any reason.
    """
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        importlib.import_module(name)
    except Exception as error:  # The user's code may raise anything.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ScenarioError(
            f"--import {name} failed ({reason}); give a module's name, as in an import statement"
        ) from error


def read_scenario(path: Path) -> "Scenario":
    """Return the scenario in a JSON file.

    Raises ScenarioError, with the file's name, if its content is not valid, and OSError if it cannot be read.
    """
    from workbench.sim.scenario import Scenario

    try:
        return Scenario.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: the file is not UTF-8 text; Scenario.to_json() writes scenario files") from None
    except WorkbenchError as error:
        raise ScenarioError(f"{path}: {error}") from None


def show_doctor(options: argparse.Namespace) -> int:
    """Print whether everything that the workbench requires is installed; with ``--all`` also a table of all checks.

    With ``--spark``, print instead whether a Spark session and its workers can run sweeps. Return 1 if something
    required is missing, else 0.
    """
    from workbench.cli import doctor

    if options.spark:
        return _show_spark_doctor(options)
    if options.out or options.conf:
        raise ScenarioError(
            "--out and --conf apply only with --spark: workbench doctor --spark URL --out FOLDER_OR_URL"
        )

    findings = doctor.examine()
    print(doctor.report(findings, options.everything))
    return 0 if all(finding.is_ok for finding in findings if finding.is_required) else 1


def _show_spark_doctor(options: argparse.Namespace) -> int:
    from workbench.cli import spark_doctor

    config = dict(setting.partition("=")[::2] for setting in options.conf)
    if invalid_names := [name for name, value in config.items() if not (name.startswith("spark.") and value)]:
        raise ScenarioError(f"--conf has the setting {invalid_names[0]!r}; write it as spark.NAME=VALUE")
    report = spark_doctor.examine(options.spark, options.out, config)
    print(report, flush=True)
    status = 0 if report.is_ready else 1
    if spark_doctor.is_waiting():
        # At a normal exit, the client of Spark Connect would repeat its requests to a silent server for many minutes.
        os._exit(status)
    return status
