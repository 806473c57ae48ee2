"""Bootloader drives, which a Pico shows while it waits for firmware, and firmware in the format UF2.

A board that starts with its button BOOTSEL pressed appears as a drive with the file INFO_UF2.TXT. It takes a UF2 file
that is copied onto the drive, and restarts after the last block. Each block of 512 bytes names the chip family that it
is for, its number and the number of blocks, so a file that is damaged or for another chip is refused before the copy.

Reference
    USB Flashing Format (UF2), github.com/microsoft/uf2.
"""

from __future__ import annotations

import errno
import os
import string
import struct
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from workbench.errors import LinkError
from workbench.motes.bench.repl import LostBoardError

INFO_FILE = "INFO_UF2.TXT"
BLOCK_B = 512
_MAGIC = (0x0A324655, 0x9E5D5157, 0x0AB16F30)
_HAS_FAMILY = 0x2000
_CHUNK_BLOCKS = 64
_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC)
# Family -> (chip, the Board-ID of its bootloader's drive). RP2350 has one family for each of its instruction sets.
FAMILIES = {
    0xE48BFF56: ("RP2040", "RPI-RP2"),
    0xE48BFF59: ("RP2350", "RP2350"),
    0xE48BFF5A: ("RP2350", "RP2350"),
    0xE48BFF5B: ("RP2350", "RP2350"),
}
# A file for RP2350 may begin with a block of this family, which the bootloader ignores.
_ABSOLUTE_FAMILY = 0xE48BFF57


class Drive(NamedTuple):
    """A bootloader drive: the folder where it is mounted, its Board-ID and its model, as INFO_UF2.TXT names them."""

    folder: Path
    board_id: str
    model: str

    @property
    def chip(self) -> str | None:
        """The chip of the board, such as "RP2040", or None if the bootloader is not known."""
        return next((chip for chip, board_id in FAMILIES.values() if self.board_id.startswith(board_id)), None)


def mount_points() -> list[Path]:
    """Return the folders where this system mounts drives."""
    if sys.platform == "win32":
        return [Path(f"{name}:\\") for name in string.ascii_uppercase[2:]]
    if sys.platform == "darwin":
        return sorted(Path("/Volumes").glob("*"))
    patterns = ("media/*", "media/*/*", "run/media/*/*", "mnt/*")
    return sorted({path for pattern in patterns for path in Path("/").glob(pattern)})


def find_drives(folders: Iterable[Path] | None = None) -> list[Drive]:
    """Return the bootloader drives that are mounted at ``folders``; None: at all of `mount_points`."""
    drives = []
    for folder in mount_points() if folders is None else folders:
        try:
            text = (folder / INFO_FILE).read_text(encoding="ascii", errors="replace")
        except OSError:
            continue
        fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        drives.append(Drive(folder, fields.get("Board-ID", "unknown"), fields.get("Model", "unknown")))
    return drives


def uf2_chip(data: bytes, name: str) -> str:
    """Return the name of the chip for which a UF2 file was built, such as "RP2040".

    ``data`` is the file's content, ``name`` its name in errors. Raises LinkError if the file is damaged, incomplete or
    for a chip that is not in `FAMILIES`.
    """
    if not data or len(data) % BLOCK_B:
        raise LinkError(f"{name}: {len(data)} bytes are not a UF2 file, which consists of blocks of {BLOCK_B} bytes")
    families: set[int | None] = set()
    expected = 0
    is_complete = False
    for offset in range(0, len(data), BLOCK_B):
        start, second, flags, _, size_B, number, count, family = struct.unpack_from("<8I", data, offset)
        (end,) = struct.unpack_from("<I", data, offset + BLOCK_B - 4)
        if (start, second, end) != _MAGIC or size_B > BLOCK_B - 36:
            raise LinkError(f"{name}: block {offset // BLOCK_B} is not a block of a UF2 file; download the file again")
        if flags & _HAS_FAMILY and family == _ABSOLUTE_FAMILY:
            continue
        families.add(family if flags & _HAS_FAMILY else None)
        if number != expected or number >= count:
            raise LinkError(f"{name}: block {expected} is missing; download the file again")
        expected = number + 1
        if expected == count:
            is_complete, expected = True, 0
        else:
            is_complete = False
    if not families or not is_complete:
        raise LinkError(f"{name}: the file ends before its last block; download the file again")
    chips = {FAMILIES[family][0] if family in FAMILIES else None for family in families if family is not None}
    if None in families or None in chips or len(chips) > 1:
        text = ", ".join("none" if family is None else f"{family:08X}" for family in sorted(families, key=str))
        raise LinkError(f"{name}: UF2 family {text} is for another chip; choose a file for RP2040 or RP2350")
    return str(chips.pop())


def copy_uf2(data: bytes, name: str, drive: Drive, progress: Callable[[int, int], None] | None = None) -> None:
    """Copy a UF2 file onto a bootloader drive.

    ``data`` is the file's content, ``name`` its name in errors. ``progress`` is called with the bytes written so far
    and in total. The board restarts when it has the last block, so the drive may disappear before the file is closed.
    Raises LostBoardError if it disappears earlier, and LinkError if the file is for another chip than the drive's or
    the drive cannot be written.
    """
    chip = uf2_chip(data, name)
    if drive.chip is None:
        raise LinkError(
            f"{drive.folder}: the chip of {drive.model} ({drive.board_id}) is not known; it must be RP2040 or RP2350"
        )
    if chip != drive.chip:
        raise LinkError(
            f"{name} is for {chip}, and the board at {drive.folder} has {drive.chip} ({drive.model}); choose a file "
            f"for {drive.chip}"
        )
    written_B = 0
    try:
        with open(drive.folder / "firmware.uf2", "wb", buffering=0) as file:
            for offset in range(0, len(data), _CHUNK_BLOCKS * BLOCK_B):
                chunk = data[offset : offset + _CHUNK_BLOCKS * BLOCK_B]
                while chunk:
                    size_B = file.write(chunk)
                    written_B += size_B
                    chunk = chunk[size_B:]
                os.fsync(file.fileno())
                if progress is not None:
                    progress(written_B, len(data))
    except OSError as error:
        if error.errno in _UNWRITABLE:
            raise LinkError(
                f"{drive.folder} cannot be written after {written_B:,} of {len(data):,} bytes ({error.strerror}); "
                "check that it is mounted for writing and has space for the file"
            ) from None
        if written_B < len(data):
            raise LostBoardError(
                f"{drive.folder}: the drive disappeared after {written_B:,} of {len(data):,} bytes ({error.strerror}); "
                "connect the board with BOOTSEL pressed and repeat the command"
            ) from None
