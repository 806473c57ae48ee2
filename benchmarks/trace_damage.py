"""Flipped bits in files of traces: ``benchmarks/trace_damage.py [--flips 250]``, a table with and without checks.

Single bits are flipped, one at a time, in two kinds of files: the traces of a sweep and the trace of one run. In
rows "after", the checks of `workbench.pipelines.damage` run; in rows "before", DuckDB alone reads the same files.
"""

import argparse
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.pipelines import flipped
from workbench.pipelines import damage


def main() -> None:
    """Print the number of each outcome, for each kind of files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--flips", type=int, default=250, help="of each kind of files")
    options = parser.parse_args()
    print("file   checks ", *(f"{outcome:>8}" for outcome in flipped.OUTCOMES))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, path in flipped.write(folder).items():
            for checks in ("before", "after"):
                with _disable_checks() if checks == "before" else nullcontext():
                    counts = flipped.outcomes(path, folder / kind, options.flips)
                print(f"{kind:<6} {checks:<7}", *(f"{counts[outcome]:>8}" for outcome in flipped.OUTCOMES), flush=True)


def _disable_checks() -> mock._patch:
    """Return a context manager in which queries do not check the checksums of files."""
    nothing = {"check": lambda path: None, "trace_in": lambda path: None, "check_with_duckdb": lambda path: None}
    return mock.patch.multiple(damage, **nothing)


if __name__ == "__main__":
    main()
