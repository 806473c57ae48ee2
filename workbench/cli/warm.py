"""``workbench warm``: compile the fast twins beforehand, so that nobody waits for a compiler."""

from __future__ import annotations

import argparse
import importlib
import time
from typing import Any

from workbench.errors import ScenarioError
from workbench.public_names import PROTOCOLS
from workbench.suggestion import meant


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    warm = commands.add_parser("warm", help="compile the fast engine beforehand; what is on disk is left as it is")
    warm.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=f"of {', '.join(PROTOCOLS)} (default: all)")
    warm.set_defaults(command=warm_twins)


def warm_twins(options: argparse.Namespace) -> int:
    """Compile the twins of the protocols named, one after the other, with a line for each."""
    from workbench.sim import fast
    from workbench.sim.fast import kept, warming

    unknown = [name for name in options.protocols if name not in PROTOCOLS]
    if unknown:
        raise ScenarioError(
            f"there is no protocol {unknown[0]}{meant(unknown[0], PROTOCOLS)}; there are {', '.join(PROTOCOLS)}"
        )
    done: set[str] = set()
    for name in options.protocols or PROTOCOLS:
        protocol = getattr(importlib.import_module(f"workbench.{PROTOCOLS[name]}"), name)
        try:
            twin = fast.twin_of(protocol())
        except fast.NoFastTwinError as reason:
            print(reason, flush=True)
            continue
        if twin in done or kept.is_kept(twin):
            print(f"{name}: on disk", flush=True)
        else:
            print(f"{name}: compiling ...", end=" ", flush=True)
            began_s = time.perf_counter()
            warming.compile_here(twin, protocol)
            print(f"{time.perf_counter() - began_s:.0f} s", flush=True)
        done.add(twin)
    return 0
