"""``workbench data links``: convert raw logs of a testbed to a table of measured links."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from workbench.pipelines.logs.reading import Log

_NEIGHBORS = "ulb-neighbors"
_FORMATS = ("mercator", _NEIGHBORS)


def add_parser(commands: Any) -> None:
    """Add the sub-command ``data`` to the command line."""
    data = commands.add_parser("data", help="convert raw logs to tables")
    kinds = data.add_subparsers(dest="what", required=True, metavar="WHAT")
    links = kinds.add_parser("links", help="measured links: delivery ratio and RSSI per direction, channel and time")
    links.add_argument("raw", type=Path, nargs="+", metavar="RAW", help="raw logs of one format")
    links.add_argument("--out", type=Path, required=True, metavar="LINKS.csv", help="the table of links")
    links.add_argument("--format", choices=_FORMATS, default=_FORMATS[0], help="format of the logs (default: mercator)")
    links.add_argument("--channel", type=int, nargs="+", metavar="N", help="only these channels (default: all)")
    links.add_argument("--every-s", type=float, metavar="S", help="also a row for each interval of S seconds")
    links.add_argument(
        "--rejected",
        type=Path,
        metavar="REJECTED.csv",
        help="write the rejected lines into this table, with the reason of each",
    )
    links.set_defaults(command=make_links)


def make_links(options: argparse.Namespace) -> int:
    """Convert raw logs to a table of links, and print how many lines were rejected for which reason. Return 0."""
    from workbench.pipelines.logs.reading import read_log

    if options.format == _NEIGHBORS and (options.channel or options.every_s):
        raise DataError(
            f"--channel and --every-s do not apply to {_NEIGHBORS} logs, which lack channels and times; leave them out"
        )
    with tempfile.TemporaryDirectory() as folder:
        progress = _print_progress if sys.stderr.isatty() else None
        log = read_log(options.raw, options.format, out=folder, progress=progress)
        links = _compute_links(log, options)
        rejection_counts = log.reasons()
        if options.rejected is not None:
            _write_csv(_read_parquet(log.rejected), options.rejected)
    _write_csv(links, options.out)
    for rejection_count in rejection_counts.itertuples(index=False):
        print(f"{rejection_count.file}: {rejection_count.lines:,} lines left out: {rejection_count.rule}")
    print(f"wrote {len(links):,} rows of links into {options.out}")
    return 0


def _compute_links(log: Log, options: argparse.Namespace) -> pd.DataFrame:
    from workbench.pipelines.logs.links import links, links_from_neighbors

    if options.format == _NEIGHBORS:
        return links_from_neighbors(_read_parquet(log.rows))
    measured_links = links(log, every_s=options.every_s)
    if options.channel:
        measured_links = measured_links[measured_links["channel"].isin(options.channel)]
        if measured_links.empty:
            raise DataError(
                f"--channel {', '.join(map(str, options.channel))}: the logs have no frames on these channels; "
                "leave --channel out to use all channels"
            )
    return measured_links


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    return pd.read_parquet(path)


def _write_csv(table: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False)


def _print_progress(share: float) -> None:
    print(f"\r{share:.0%} read", end="\n" if share >= 1 else "", file=sys.stderr, flush=True)
