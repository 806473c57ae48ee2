"""The command ``workbench dps``: its options (options.py, keys.py), actions (commands.py) and output (output.py)."""

from workbench.protocols.dps.cli.options import add_parser

__all__ = ["add_parser"]
