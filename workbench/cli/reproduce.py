"""``workbench reproduce``: run again what a file has a record of, and say whether it comes out the same."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

DIFFERENT = 1


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    from workbench.cli import add_import

    again = commands.add_parser(
        "reproduce", help="run again what a picture, a page, a Parquet file or a sweep's folder was made of"
    )
    again.add_argument("file", type=Path, metavar="FILE", help="a PNG, SVG, page, Parquet file, or a folder of results")
    again.add_argument("--engine", default="auto", help="auto (default), or the name of an engine: reference")
    again.add_argument("--most", type=int, metavar="N", help="of a sweep: the first N runs (default: all)")
    add_import(again)
    again.set_defaults(command=reproduce_file)


def reproduce_file(options: argparse.Namespace) -> int:
    """Print the answer; exit code 0 for "identical", 1 for anything else."""
    from workbench.cli import import_module
    from workbench.records.reproduction import reproduce

    for name in options.modules:
        import_module(name)
    answer = reproduce(options.file, options.engine, options.most, _tell if sys.stderr.isatty() else None)
    print(answer)
    return 0 if answer.is_identical else DIFFERENT


def _tell(done: int, total: int) -> None:
    if total > 1:
        print(f"\r{done:,} of {total:,} runs", end="\n" if done == total else "", file=sys.stderr, flush=True)
