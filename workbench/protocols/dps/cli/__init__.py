"""``workbench dps``: options.py what there is to say, commands.py what is done, output.py what is printed."""

from workbench.protocols.dps.cli.options import add_parser

__all__ = ["add_parser"]
