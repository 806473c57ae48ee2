"""The common parts of the drivers of physical boards: line, clock, boot count, sensor, Wi-Fi and the main loop.

A driver in boards/ imports these names and adds NAME, HAS_RADIO and `make_radio` (by `checked_radio`). `SETTINGS` are
those of the file settings.json on the board. If that file is missing or not valid, the board still answers its host: it
has no radio, and `PROBLEM` is the sentence that it returns to each configuration.

The line to the host is the line of MicroPython's prompt (USB or UART 0), or UART 1 if the settings have the pins "tx"
and "rx". The prompt's line returns single bytes, so that a UART of its own is better above 115200 baud.

Nothing in this file was tried on hardware. Tests run it under MicroPython's port for Unix, with fakes of the modules
machine, network and espnow.

This file runs under MicroPython.
"""

import gc
import select
import sys
import time

import machine
import micropython
from settings import count_boot, read_settings

from workbench.errors import ParameterError

POLL_MS = 5  # of a radio or a line that `select` cannot wait for
LONGEST_WAIT_MS = 1000
MOST_BYTES = 512  # that are read from the prompt's line before the mote's next step
LINE_UART, RADIO_UART = 1, 0  # UART 0 of a Pico is free: its prompt is on USB
# MicroPython collects garbage when the heap is full, and then long objects find no room between those that stay. With
# regular collections the programs need a third less (hardware/board_memory.py).
COLLECTED_B = 8192

if hasattr(gc, "threshold"):
    gc.threshold(COLLECTED_B)

PROBLEM = None
try:
    SETTINGS = read_settings()
except ParameterError as error:
    PROBLEM = str(error)
    SETTINGS = {"board": None, "baud": 115200, "channel": 1}

PINS = SETTINGS.get("pins", {})
_sensor_settings = SETTINGS.get("sensor", {})
# A sensor with a key and an interval publishes by itself; without them, the host's configuration gives both. The name
# is in lower case since the mote's program has it already: a new one would take memory.
sensor = None
if "every_ms" in _sensor_settings and "key" in _sensor_settings:
    sensor = {"kind": "board", "key": _sensor_settings["key"], "every_ms": _sensor_settings["every_ms"]}

_clock = [0, 0]  # µs so far, and the last reading of the counter
_state = {"boots": None, "wifi": None, "sensor": None, "uart": None}


def boots():
    """Return the number of earlier starts of the board.

    The first call also stores this start in the file ``boot_count``.
    """
    if _state["boots"] is None:
        _state["boots"] = count_boot()
    return _state["boots"]


def now_us():
    """Return the time of a monotonic clock in µs."""
    ticks = time.ticks_us()  # It wraps after 17 minutes on boards. `run` reads it every second.
    _clock[0] += time.ticks_diff(ticks, _clock[1]) if _clock[0] else 1
    _clock[1] = ticks
    return _clock[0]


def memory():
    """Return (bytes allocated, bytes free) of the heap."""
    return gc.mem_alloc(), gc.mem_free()


def write(data):
    """Write bytes to the line to the host."""
    (_open_line_uart() or sys.stdout.buffer).write(data)


def reset():
    """Restart the board."""
    machine.reset()


def read_sensor(number):
    """Return the board's sensor reading in wire units; ``number`` selects a reading of a recorded log.

    Raises ParameterError if the settings have no sensor, or OSError if the sensor does not answer.
    """
    if _state["sensor"] is None:
        if not _sensor_settings:
            raise ParameterError("this board has no sensor; add one to settings.json")
        from chips import make_reader

        _state["sensor"] = make_reader(_sensor_settings, PINS)
    return _state["sensor"](number)


def checked_radio(name, make, mote, address, settings):
    """Check the board's settings, and return the radio that ``make(mote, address, settings)`` makes.

    ``name`` is the name of the driver. If the node learns its link qualities from beacons, the result is a
    `LearningRadio` around that radio. Raises ParameterError if the board has no valid settings for the driver.
    """
    _require_settings(name)
    radio = make(mote, address, settings)
    if settings.get("link_quality") != "learned":
        return radio
    from radio_learning import LearningRadio

    return LearningRadio(mote, radio, address)


def _require_settings(name):
    if PROBLEM is not None:
        raise ParameterError(PROBLEM)
    if SETTINGS["board"] != name:
        raise ParameterError(
            "settings.json is for the driver %s, the program has the driver %s; provision the board again"
            % (SETTINGS["board"], name)
        )


def wifi():
    """Return the board's `Wifi`; the first call connects it."""
    if _state["wifi"] is None:
        from wifi import Wifi

        _state["wifi"] = Wifi(SETTINGS["wifi"])
    return _state["wifi"]


def make_udp_radio(mote, address, settings):
    """Return a radio of UDP datagrams, to the target in settings.json."""
    from radio_udp import UdpRadio

    target = SETTINGS.get("target", {})
    settings = dict(settings)
    settings["to"] = target.get("address", "255.255.255.255")
    if "port" in target:
        settings["port"] = target["port"]
    return UdpRadio(address, settings, mote.random, wifi())


def make_uart(number, transmitter, receiver):
    """Return UART ``number`` at the pins ``transmitter`` and ``receiver``, with the baud rate in settings.json."""
    return machine.UART(number, SETTINGS["baud"], tx=machine.Pin(transmitter), rx=machine.Pin(receiver), rxbuf=2048)


def run(mote):
    """Serve the line and the radio for ever."""
    prompt = None
    if _open_line_uart() is None:
        if hasattr(micropython, "kbd_intr"):
            micropython.kbd_intr(-1)  # A byte of value 3 would end the program, as Ctrl-C does.
        prompt = select.poll()
        prompt.register(sys.stdin, select.POLLIN)
    while True:
        wait_us = mote.step()
        wait_ms = LONGEST_WAIT_MS if wait_us is None else min(LONGEST_WAIT_MS, (wait_us + 999) // 1000)
        if prompt is None or (mote.radio is not None and not mote.radio.is_serial):
            wait_ms = min(wait_ms, POLL_MS)
        if prompt is not None:
            data = _read_prompt(prompt, wait_ms)
        else:
            time.sleep_ms(wait_ms)
            data = _open_line_uart().read()
        now_us()
        if data:
            mote.feed(data)


def _open_line_uart():
    if "tx" in PINS and _state["uart"] is None:
        _state["uart"] = make_uart(LINE_UART, PINS["tx"], PINS["rx"])
    return _state["uart"]


def _read_prompt(prompt, wait_ms):
    data = bytearray()
    stream = sys.stdin.buffer
    while len(data) < MOST_BYTES and prompt.poll(0 if data else wait_ms):
        byte = stream.read(1)  # A longer read would wait until all its bytes have arrived.
        if not byte:
            break
        data += byte
    return data
