"""Generate the header file of a protocol's nodes in C, `frames.h`, from the table of the protocol's fields.

    python hardware/frame_header.py diffusion > workbench/protocols/diffusion/c/frames.h

For each message, the file has its type and the offsets of the numbers at the beginning of its frame. The "body" begins
after these numbers. The flags of a number follow its offset.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from struct import calcsize

import workbench.protocols
from workbench.protocols.field_tables import Message, Number, header, layout

_TOP = """\
/* The layout of the frames of the protocol {name}.
 *
 * `hardware/frame_header.py` makes it of the table in `workbench/protocols/{name}/dissector.py`:
 * change that, not this file. */
#ifndef FRAMES_H
#define FRAMES_H
"""


def text(name: str) -> str:
    """Return the text of the header file for the protocol whose package has this name, such as "diffusion"."""
    messages: dict[int, Message] = import_module(f"workbench.protocols.{name}.dissector").MESSAGES
    return "\n".join([_TOP.format(name=name), *(_format_enum(byte, messages[byte]) for byte in messages), "#endif\n"])


def _format_enum(type_byte: int, message: Message) -> str:
    prefix = message.name.upper().replace(" ", "_")
    numbers = header(message)
    lines = [f"    {prefix}_TYPE = {type_byte},"]
    for name, (number, offset) in numbers.items():
        lines.append(f"    {prefix}_{name.upper()}_AT = {offset},")
        lines += _format_flags(prefix, name, number)
    lines.append(f"    {prefix}_BODY_AT = {calcsize(layout(message))}")
    return "\n".join(["enum {", *lines, "};\n"])


def _format_flags(prefix: str, name: str, number: Number) -> list[str]:
    """Return the lines of C constants for the flags of a number in a frame; [] if it has no flags.

    There is a line for each flag, and one with the mask of the bits that are not flags.
    """
    if not number.flags:
        return []
    rest = (1 << 8 * calcsize("<" + number.code)) - 1 - sum(flag.bit for flag in number.flags)
    lines = [f"    {prefix}_{flag.name.upper()} = {flag.bit}," for flag in number.flags]
    return [*lines, f"    {prefix}_{name.upper()}_BITS = {rest},"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print the header file frames.h of a protocol's nodes in C.")
    folders = Path(workbench.protocols.__path__[0]).glob("*/c/")
    parser.add_argument("protocol", choices=sorted(folder.parent.name for folder in folders))
    print(text(parser.parse_args().protocol), end="")
