"""Serial ports and bootloader drives that public sources show: `ports.csv` and `drives.csv`, with their sources.

A row has the fields of pyserial's `ListPortInfo`. The column `not_recorded` names the fields that the source lacks and
that were added here. A serial number that begins with "placeholder" does not belong to a board. This project has not
recorded any row itself. A Pico in BOOTSEL has a drive and no serial port, so its rows are in `drives.csv`.
"""

import csv
from pathlib import Path
from types import SimpleNamespace


def _read(name):
    with open(Path(__file__).parent / name, encoding="utf-8", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


ROWS = _read("ports.csv")
DRIVES = _read("drives.csv")


def drive_info(name):
    """Return the text of INFO_UF2.TXT on a bootloader drive."""
    row = DRIVES[name]
    return f"{row['first_line']}\r\nModel: {row['model']}\r\nBoard-ID: {row['board_id']}\r\n"


def port_info(name, **changes):
    """Return a row as pyserial's list of ports has it; ``changes`` are fields with other values."""
    row = ROWS[name]
    numbers = {field: int(row[field], 16) if row[field] else None for field in ("vid", "pid")}
    # pyserial has None on Linux and macOS, and an empty text on Windows.
    missing_number = "" if row["system"] == "Windows" else None
    fields = {
        "device": row["device"],
        **numbers,
        "serial_number": row["serial_number"] or missing_number,
        "location": row["location"] or None,
        "description": row["description"],
        "hwid": row["hwid"],
    }
    return SimpleNamespace(**(fields | changes))
