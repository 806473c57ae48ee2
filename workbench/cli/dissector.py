"""``workbench dissector``: write the Lua dissector by which Wireshark decodes the protocols' frames."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the sub-command ``dissector`` to the command line, and return its parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "dissector", help="write a Lua dissector of the protocols' frames for Wireshark"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("workbench.lua"), metavar="FILE.lua", help="(default: workbench.lua)"
    )
    parser.set_defaults(command=write_dissector)
    return parser


def write_dissector(options: argparse.Namespace) -> int:
    """Write the dissector, and print how to use it."""
    from workbench.captures.lua import save_dissector
    from workbench.cli import import_module

    for module_name in options.modules:
        import_module(module_name)
    save_dissector(options.out)
    print(f"wrote {options.out}; use it with: wireshark -X lua_script:{options.out} CAPTURE.pcapng")
    return 0
