"""Serial ports of this machine with the identity of their USB device, and the match of devices with a bench's boards.

A board with a USB serial number of its own is recognized at any port. Boards without one (CH340), or with the number
that their maker gives to every board (CP210x: 0001), are recognized by the identity of their chip if it is recorded and
the board can be queried. Otherwise they are recognized by the USB socket into which they are plugged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from workbench.errors import LinkError

# USB vendor -> the kind of board or bridge. Only ports of these vendors are probed without a request by the user:
# an unknown device could take the bytes of a probe for commands.
VENDORS = {
    0x10C4: "CP210x bridge",
    0x1A86: "CH340 bridge",
    0x0403: "FTDI bridge",
    0x303A: "Espressif",
    0x2E8A: "Raspberry Pi",
    0xF055: "MicroPython",
}
# (vendor, product) -> a more precise name
_PRODUCTS = {(0x1A86, 0x55D4): "CH9102 bridge", (0x303A, 0x1001): "Espressif USB-JTAG"}


class Device(NamedTuple):
    """A serial port. Fields of the USB device are None if the port is not on USB, or the system does not report them.

    ``port`` is the name under which the port is opened, such as "/dev/ttyUSB0". ``location`` is the USB socket, such as
    "1-1.2".
    """

    port: str
    vid: int | None = None
    pid: int | None = None
    serial_number: str | None = None
    location: str | None = None
    product: str | None = None

    @property
    def identity(self) -> tuple[Any, ...]:
        """The USB identity: (vendor, product, serial number), as `make_identity` returns it."""
        return make_identity(self.vid, self.pid, self.serial_number)

    @property
    def is_known_vendor(self) -> bool:
        """True if the USB vendor makes boards, or bridges that boards use."""
        return self.vid in VENDORS

    def __str__(self) -> str:
        if self.vid is None or self.pid is None:
            return self.product or "no USB device"
        vendor = _PRODUCTS.get((self.vid, self.pid)) or VENDORS.get(self.vid, "USB device")
        number = (
            f"serial number {self.serial_number}"
            if self.serial_number
            else f"no serial number, {self._usb_socket_text}"
        )
        return f"{vendor} {self.vid:04X}:{self.pid:04X}, {number}"

    @property
    def _usb_socket_text(self) -> str:
        return f"USB socket {self.location}" if self.location else "USB socket unknown"


class Match(NamedTuple):
    """The result of matching the boards of a bench with devices.

    ``devices`` is {node: device of its board}. ``problems`` is {node: a sentence with the reason why its board was not
    recognized}. ``notes`` has a sentence for each board that was recognized only by its USB socket.
    """

    devices: dict[int, Device]
    problems: dict[int, str]
    notes: list[str]


def make_identity(vid: int | None, pid: int | None, serial_number: str | None) -> tuple[Any, ...]:
    """Return the USB identity of a device: (vendor, product, serial number).

    The serial number is converted to lower case: Windows reports it in upper case, and a bench file may move between
    systems.
    """
    return vid, pid, serial_number and serial_number.lower()


def list_devices() -> list[Device]:
    """Return the serial ports of this machine, sorted by name. Raises LinkError if pyserial is missing."""
    try:
        from serial.tools.list_ports import comports
    except ImportError:
        raise LinkError("serial ports cannot be listed because pyserial is missing: pip install pyserial") from None
    return sorted(map(make_device, comports()))


def make_device(row: Any) -> Device:
    """Return the `Device` for an entry of pyserial's list of ports."""
    serial_number = row.serial_number or None
    if serial_number is not None and "&" in serial_number:
        serial_number = None  # Windows' own number of a device without one, which changes with the socket.
    return Device(row.device, row.vid, row.pid, serial_number, _parse_usb_socket(row.location), row.description)


def select_distinct(devices: Iterable[Device]) -> list[Device]:
    """Return one port for each USB device: the first port of each in ``devices``.

    macOS lists a bridge once for each driver, and a bridge with several interfaces has a port for each. Ports that are
    not on USB are all returned.
    """
    first: dict[tuple[Any, ...], Device] = {}
    for device in devices:
        is_on_usb = device.vid is not None and device.location is not None
        first.setdefault((device.identity, device.location) if is_on_usb else (device.port,), device)
    return list(first.values())


def _parse_usb_socket(location: str | None) -> str | None:
    """Return the USB socket of a location, without the interface after the colon: "1-1.2" for "1-1.2:1.0"."""
    return location.partition(":")[0] if location else None


def identity_of(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the USB identity of an entry of a bench file, in the form of `Device.identity`."""
    usb = entry["usb"]
    return make_identity(usb.get("vid"), usb.get("pid"), usb.get("serial_number"))


def match_boards(
    entries: Iterable[Mapping[str, Any]],
    devices: Iterable[Device],
    read_chip: Callable[[Device], str | None] | None = None,
) -> Match:
    """Find the device of each board of a bench.

    ``entries`` are the boards in the bench file, ``devices`` the serial ports of this machine. ``read_chip`` returns
    the identity of the chip behind a device, or None; it is called only for boards that USB serial numbers do not
    distinguish.
    """
    match = Match({}, {}, [])
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for entry in entries:
        groups.setdefault(identity_of(entry), []).append(entry)
    devices = select_distinct(devices)
    for usb_identity, group in groups.items():
        candidates = [device for device in devices if device.identity == usb_identity]
        if not candidates:
            for entry in group:
                match.problems[entry["node"]] = f"node {entry['node']}: {_describe_entry(entry)} is not connected"
        elif usb_identity[2] is not None and len(group) == len(candidates) == 1:
            match.devices[group[0]["node"]] = candidates[0]
        else:
            _match_by_chip_or_socket(group, candidates, read_chip, match)
    return match


def _match_by_chip_or_socket(
    group: list[Mapping[str, Any]],
    candidates: list[Device],
    read_chip: Callable[[Device], str | None] | None,
    match: Match,
) -> None:
    """Find the devices of boards that have equal USB identities, and add them to ``match``.

    ``group`` has the bench file's entries of these boards, ``candidates`` the devices with this USB identity. The
    boards are recognized by their chips if all chips are recorded and ``read_chip`` is given, else by their USB
    sockets.
    """
    if read_chip is not None and all(entry.get("chip_id") for entry in group):
        devices_by_chip = {chip_id: device for device in candidates if (chip_id := read_chip(device))}
        # If a board does not reveal its chip, the match by sockets could exchange it with another one.
        silent_ports = [device.port for device in candidates if device not in devices_by_chip.values()]
        for entry in group:
            if entry["chip_id"] in devices_by_chip:
                match.devices[entry["node"]] = devices_by_chip[entry["chip_id"]]
            else:
                ending = f"; no chip id was read at {', '.join(silent_ports)}" if silent_ports else ""
                match.problems[entry["node"]] = (
                    f"node {entry['node']}: no connected board has the chip id {entry['chip_id']}{ending}"
                )
        return
    for entry in group:
        location = entry["usb"].get("location")
        device = next((device for device in candidates if location and device.location == location), None)
        if device is None:
            ports = ", ".join(candidate.port for candidate in candidates)
            match.problems[entry["node"]] = (
                f"node {entry['node']}: its board has no serial number of its own, and no board of its kind (found at "
                f"{ports}) is in its USB socket, {location or 'unknown'}; plug the board into that socket, or remove "
                "its entry from the bench file and run `workbench motes name` again"
            )
        else:
            match.devices[entry["node"]] = device
            match.notes.append(
                f"node {entry['node']} is recognized by its USB socket, {location}, because its board has no serial "
                "number of its own; keep such boards in their sockets"
            )


def _describe_entry(entry: Mapping[str, Any]) -> str:
    usb = entry["usb"]
    return str(Device("", usb.get("vid"), usb.get("pid"), usb.get("serial_number"), usb.get("location"), "its board"))
