"""Fields of captured frames according to Debian's `tshark`, the oracle of the Lua dissector."""

import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from workbench.protocols.dissection import REFUSED

LONGEST_LABEL = 200  # characters that Wireshark certainly shows
TSHARK = shutil.which("tshark")
needs_tshark = pytest.mark.skipif(TSHARK is None, reason="tshark is missing: apt-get install -y tshark")


def tshark(*arguments):
    """Return what tshark prints; raise if it fails or if a Lua script has an error."""
    done = subprocess.run([TSHARK, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "Lua" not in done.stderr, done.stderr
    return done.stdout


def packets_of(capture, script, *more):
    """Yield a dictionary for each packet: its fields of the workbench's dissector, its comment, and others."""
    pdml = Path(f"{capture}.pdml")
    with pdml.open("w") as file:
        done = subprocess.run(
            [TSHARK, "-X", f"lua_script:{script}", "-r", str(capture), "-T", "pdml", *more],
            stdout=file, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0 and "Lua" not in done.stderr, done.stderr
    for _, element in ET.iterparse(pdml):
        if element.tag == "packet":
            yield _packet(element)
            element.clear()
    pdml.unlink()


def _packet(element):
    values = {field.get("name"): field.get("show") for field in element.iter("field")}
    protocols = [proto for proto in element.findall("proto") if proto.get("name", "").startswith("wb_")]
    fields = _fields(protocols[0], int(protocols[0].get("pos"))) if protocols else None
    comment = values.get("frame.comment") or values.get("pkt_comment")
    return {"fields": fields, "comment": comment, "values": values}


def _fields(element, begin):
    """Return (label, start, end, children) of each field below an element; start and end count from the frame."""
    return [
        (field.get("showname") or field.get("show"), *_range(field, begin), _fields(field, begin))
        for field in element.findall("field")
        if field.get("name", "").startswith("wb_")
    ]


def _range(field, begin):
    start, size = int(field.get("pos")) - begin, int(field.get("size"))
    return start, start + size


def expected(fields):
    """Return the fields of `wb.dissect` in the form of `packets_of`."""
    return [
        (field.name + (f": {field.text}" if field.text else ""), field.start, field.end, expected(field.children))
        for field in fields
    ]


def is_same(shown, fields):
    """Return whether the shown fields are the expected ones; a field without bytes may have any position."""
    return len(shown) == len(fields) and all(
        _is_same_label(s[0], f[0]) and (s[1:3] == f[1:3] or f[0].startswith(REFUSED)) and is_same(s[3], f[3])
        for s, f in zip(shown, fields, strict=True)
    )


def _is_same_label(shown, label):
    """Return whether labels are equal; Wireshark cuts off long ones, and shows line breaks as escapes."""
    shown = shown.removeprefix(" [truncated]")
    return shown == label or (len(shown) >= LONGEST_LABEL and label.startswith(shown[:LONGEST_LABEL]))
