"""Write firmware that the user provides: onto an ESP32 by esptool, or onto a Pico's bootloader drive.

This is the only module that uses esptool. It checks the file before it writes: a file for another chip is refused.
esptool compares the digest of the flash with the file's afterwards. Both chips have their bootloader in read-only
memory, so a board whose flash is incomplete can always be flashed again.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from workbench.errors import LinkError
from workbench.motes.bench.drives import copy_uf2, find_drives
from workbench.motes.bench.provision import wait_for_port
from workbench.motes.bench.repl import REMEDY, LostBoardError

BAUD = 460800
_ROM_BAUD = 115200
_IMAGE_MAGIC = 0xE9
_HEADER_B = 24
_OFFSET_OF_CHIP = 12
# Chip in an image's header -> (the chip's name, the address of the image in flash).
CHIPS = {
    0: ("ESP32", 0x1000),
    2: ("ESP32-S2", 0x1000),
    5: ("ESP32-C3", 0x0),
    9: ("ESP32-S3", 0x0),
    12: ("ESP32-C2", 0x0),
    13: ("ESP32-C6", 0x0),
    16: ("ESP32-H2", 0x0),
}
MOST_ATTEMPTS = 3

Progress = Callable[[int, int], None]


class Firmware(NamedTuple):
    """A firmware file: its name, content, SHA-256 as hexadecimal digits, and whether its format is UF2."""

    name: str
    data: bytes
    digest: str
    is_uf2: bool


def missing() -> str | None:
    """Return a sentence on how to install esptool, or None if it is installed."""
    if importlib.util.find_spec("esptool") is not None:
        return None
    return f"an ESP32 cannot be flashed because esptool is missing: {REMEDY}"


def read_firmware(path: Path) -> Firmware:
    """Return the firmware in a file. Raises LinkError if the file is missing or is neither UF2 nor an ESP32's image."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LinkError(f"{path}: {error.strerror}") from None
    firmware = Firmware(path.name, data, hashlib.sha256(data).hexdigest(), data[:4] == b"UF2\n")
    if not firmware.is_uf2:
        chip_of(firmware)
    return firmware


def chip_of(firmware: Firmware) -> tuple[str, int]:
    """Return (name of the chip, address in flash) for an image of an ESP32. Raises LinkError for any other file."""
    data = firmware.data
    if len(data) < _HEADER_B or data[0] != _IMAGE_MAGIC:
        raise LinkError(
            f"{firmware.name}: the file is neither UF2 nor an image for an ESP32; download the .uf2 file of a Pico W "
            "or the .bin file of an ESP32 from micropython.org"
        )
    number = int.from_bytes(data[_OFFSET_OF_CHIP : _OFFSET_OF_CHIP + 2], "little")
    if number not in CHIPS:
        chips = ", ".join(name for name, _ in CHIPS.values())
        raise LinkError(f"{firmware.name}: the image is for chip number {number}; it must be for one of {chips}")
    return CHIPS[number]


def flash_drive(
    firmware: Firmware,
    folder: Path | None = None,
    report: Callable[[str], None] | None = None,
    progress: Progress | None = None,
    patience_s: float = 60.0,
) -> Path:
    """Copy UF2 firmware onto a bootloader drive, and return the drive's folder.

    ``folder`` is where the drive is mounted; None: the only bootloader drive of this machine. Wait ``patience_s`` for
    the drive, and again if it disappears during the copy. ``report`` is called with sentences for the user,
    ``progress`` with the bytes written so far and in total. Raises LinkError if no drive appears, or if several are
    connected.
    """
    folders = None if folder is None else [folder]

    def find_drive() -> str | None:
        drives = find_drives(folders)
        if len(drives) > 1:
            places = ", ".join(str(drive.folder) for drive in drives)
            raise LinkError(f"several bootloader drives are connected: {places}; give the one to flash by --drive")
        return str(drives[0].folder) if drives else None

    for attempt in range(1, MOST_ATTEMPTS + 1):
        if find_drive() is None and report is not None:
            report("no bootloader drive yet: hold BOOTSEL while you connect the board")
        place = find_drive() or wait_for_port(find_drive, patience_s)
        if place is None:
            raise LinkError("no bootloader drive appeared; hold BOOTSEL while you connect the board, and repeat")
        try:
            for drive in find_drives([Path(place)]):
                copy_uf2(firmware.data, firmware.name, drive, progress)
                return drive.folder
            raise LostBoardError(f"{place}: the drive disappeared before the copy began; repeat the command")
        except LostBoardError as error:
            if attempt == MOST_ATTEMPTS:
                raise
            if report is not None:
                report(str(error))
    raise AssertionError("unreachable")


def flash_esp32(
    find_port: Callable[[], str | None],
    firmware: Firmware,
    report: Callable[[str], None] | None = None,
    progress: Progress | None = None,
    patience_s: float = 60.0,
    connect: str = "default-reset",
    baud: int = BAUD,
) -> str:
    """Write an image into the flash of an ESP32, verify it and restart the board; return the chip's name.

    ``find_port`` returns the port of the board, or None while it is not connected. If the cable is disconnected, wait
    ``patience_s`` for the board and begin again. ``report`` is called with sentences for the user, ``progress`` with
    the bytes written so far and in total. ``connect`` is esptool's way to reach the bootloader: "default-reset",
    "usb-reset" or "no-reset"; ``baud`` is the line's speed in bits per second. Raises LinkError if esptool is missing,
    the image is for another chip, or writing fails.
    """
    if sentence := missing():
        raise LinkError(sentence)
    chip_of(firmware)
    url = find_port()
    for attempt in range(1, MOST_ATTEMPTS + 1):
        if url is None:
            raise LinkError("the board is not connected; connect it and repeat the command")
        try:
            return _write_image(url, firmware, progress, connect, baud)
        except LostBoardError as error:
            if attempt == MOST_ATTEMPTS:
                raise
            if report is not None:
                report(f"{error}; connect the board again to continue")
            url = wait_for_port(find_port, patience_s)
    raise AssertionError("unreachable")


def _write_image(url: str, firmware: Firmware, progress: Progress | None, connect: str, baud: int) -> str:
    import serial
    from esptool.cmds import attach_flash, detect_chip, reset_chip, run_stub, write_flash
    from esptool.util import FatalError

    chip, address = chip_of(firmware)
    _install_logger().report_progress = _convert_progress(progress, len(firmware.data))
    loader: Any = None
    is_connected = False
    try:
        loader = detect_chip(url, _ROM_BAUD, connect)
        is_connected = True
        if chip != loader.CHIP_NAME:
            raise LinkError(
                f"{url}: {firmware.name} is for {chip}, and the board has {loader.CHIP_NAME}; choose a file for this "
                "chip"
            )
        loader = run_stub(loader)
        if baud != _ROM_BAUD:
            loader.change_baud(baud)
        attach_flash(loader)
        # esptool repeats a write after a lost connection only on the same port; `flash_esp32` finds the new port.
        loader.WRITE_FLASH_ATTEMPTS = 1
        write_flash(loader, [(address, firmware.data)], no_progress=False)
        if connect != "no-reset":
            reset_chip(loader, "hard-reset")
        return chip
    except (serial.SerialException, OSError) as error:
        sentence = f"the connection to {url} is lost: {error}" if is_connected else f"{url} cannot be opened: {error}"
        raise (LostBoardError if is_connected else LinkError)(sentence) from None
    except FatalError as error:
        reason = " ".join(str(error).split())
        if not is_connected and "Could not open" in reason:
            raise LinkError(f"{url} cannot be opened: {reason.partition(' Hint:')[0]}") from None
        if not is_connected:
            raise LinkError(
                f"{url}: the bootloader of an ESP32 does not answer ({reason}); check the port, or hold BOOT while you "
                "press the board's reset button"
            ) from None
        if not _is_connected(url):
            raise LostBoardError(f"the connection to {url} is lost: {reason}") from None
        raise LinkError(f"{url}: writing failed ({reason}); repeat the command") from None
    finally:
        if loader is not None and loader._port is not None:
            loader._port.close()


def _is_connected(url: str) -> bool:
    """Return whether a serial port still exists."""
    return "://" in url or not url.startswith("/") or Path(url).exists()


def _convert_progress(progress: Progress | None, total_B: int) -> Progress:
    """Return a function that converts esptool's progress, in compressed bytes, and passes it to ``progress``.

    ``progress`` gets the bytes of the image written so far, and ``total_B``.
    """

    def report(done: int, total: int) -> None:
        if progress is not None and total:
            progress(total_B * done // total, total_B)

    return report


@lru_cache(maxsize=1)
def _install_logger() -> Any:
    """Install a logger in esptool that prints nothing and forwards esptool's progress; return the logger.

    esptool accepts one logger per process. So each use sets the logger's attribute ``report_progress`` to a new
    function.
    """
    from esptool.logger import TemplateLogger, log

    class Logger(TemplateLogger):
        report_progress: Progress = staticmethod(lambda done, total: None)

        def print(self, *args: Any, **kwargs: Any) -> None:
            pass

        def note(self, message: str) -> None:
            pass

        def warning(self, message: str) -> None:
            pass

        def error(self, message: str) -> None:
            pass

        def stage(self, finish: bool = False) -> None:
            pass

        def set_verbosity(self, verbosity: str) -> None:
            pass

        def progress_bar(
            self, cur_iter: int, total_iters: int, prefix: str = "", suffix: str = "", bar_length: int = 30
        ) -> None:
            self.report_progress(cur_iter, total_iters)

    logger = Logger()
    log.set_logger(logger)
    return logger
