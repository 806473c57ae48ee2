"""The command ``workbench publish``, which makes and checks the artifact of a paper, or writes a template."""

import argparse
import ast
import sys
from pathlib import Path
from typing import Any

from workbench.errors import ParameterError

DIFFERENT = 1  # exit code of --check if claims differ


def add_parser(commands: Any) -> None:
    """Add the sub-command ``publish`` to the command line."""
    publish = commands.add_parser(
        "publish", help="execute a notebook and write a paper (HTML, PDF) with an artifact that others can check"
    )
    subject = publish.add_mutually_exclusive_group(required=True)
    subject.add_argument("notebook", type=Path, nargs="?", metavar="NOTEBOOK.ipynb")
    subject.add_argument(
        "--check",
        type=Path,
        metavar="ARTIFACT",
        help="execute the notebook of an artifact (folder or ZIP file) and compare its claims; executes its code",
    )
    subject.add_argument("--template", type=Path, metavar="FILE.ipynb", help="write a notebook to begin a paper with")
    publish.add_argument(
        "--out",
        type=Path,
        help="folder of the artifact, with its ZIP file beside it (default: out/NOTEBOOK); with --check, a folder for "
        "the claims, page and figures of this execution (default: they are not kept)",
    )
    publish.add_argument(
        "-p",
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="replace a parameter of the notebook; VALUE is a Python literal; may be repeated",
    )
    publish.add_argument(
        "--small", action="store_true", help="a draft: use the small values in the metadata of the cell of parameters"
    )
    publish.add_argument("--no-pdf", action="store_true", help="leave out paper.pdf, which needs Chromium")
    publish.add_argument("--date", default="", help="day of the release, such as 2026-11-29")
    publish.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Publish a notebook, check an artifact, or write the template; return 1 if a check finds other claims, else 0."""
    if options.notebook is None and (options.parameter or options.small or options.no_pdf or options.date):
        raise ParameterError(
            "--parameter, --small, --no-pdf and --date apply to a notebook; leave them out with --check and --template"
        )
    if options.template is not None:
        return _write_template(options.template)
    if options.check is not None:
        return _check_artifact(options)
    return _publish_paper(options)


def _publish_paper(options: argparse.Namespace) -> int:
    from workbench.publishing import publish

    artifact = publish(
        options.notebook,
        options.out or Path("out", options.notebook.stem),
        parameters=dict(map(read_parameter, options.parameter)),
        small=options.small,
        pdf=not options.no_pdf,
        released=options.date,
    )
    for problem in artifact.problems:
        print(f"workbench publish: {options.notebook}: {problem}", file=sys.stderr)
    verdicts = [claim["verdict"] for claim in artifact.claims]
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts)]
    size_MB = artifact.archive.stat().st_size / 1e6
    print(f"{artifact.archive}: {size_MB:.1f} MB, {len(verdicts)} claims{': ' if counts else ''}{', '.join(counts)}")
    print(f"executed in {artifact.measured['minutes']:g} min with {artifact.measured['peak_memory_MB']:,} MB")
    return 0


def _check_artifact(options: argparse.Namespace) -> int:
    from workbench.publishing import check

    outcome = check(options.check, options.out)
    print(outcome)
    return 0 if outcome.is_same else DIFFERENT


def _write_template(path: Path) -> int:
    from workbench.publishing import write_template

    print(f"wrote {write_template(path)}; workbench publish {path} executes it")
    return 0


def read_parameter(text: str) -> tuple[str, Any]:
    """Return (name, value) for an option "NAME=VALUE"; a value that is not a Python literal is returned as text.

    Raises ParameterError if ``text`` does not have this form.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ParameterError(f"--parameter is {text!r}; write it as NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value
