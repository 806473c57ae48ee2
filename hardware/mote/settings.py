"""The settings of a board: the file ``settings.json`` on the board, and the file ``boot_count`` beside it.

Provisioning writes ``settings.json``; the board's driver reads it at each start. It is the only place of the Wi-Fi name
and key: no driver sends them to the host. The host and the mote use this same module, so both refuse the same files
with the same sentence.

Keys of settings.json; only ``board`` is required
    board      the driver: "esp32-espnow", "esp32-udp", "pico-udp" or "serial-radio"
    wifi       {"name": ..., "key": ...}: the access point's name, 1 to 32 bytes, and its key, "" or 8 to 63 characters.
               Boards that use UDP need it. With it, "esp32-espnow" also uses UDP, and so connects nodes of both radios
    channel    Wi-Fi channel of ESP-NOW, 1 to 13, default 1. With ``wifi``, the access point chooses the channel
    pins       {name: number of the GPIO}: "tx" and "rx" of a UART that is the line to the host (default: the line of
               MicroPython's prompt), "radio_tx" and "radio_rx" of a serial-attached radio, "sda" and "scl" of an I2C
               bus, "adc", "data" of a sensor
    baud       bits per second of these UARTs, 1200 to 3000000, default 115200
    target     {"address": ..., "port": ...}: where UDP datagrams go, by default the network's broadcast address.
               Without a port, each run has a port of its own
    sensor     {"kind": ..., ...}: the sensor on the board; chips.py lists the kinds and their keys. With "key" (number
               of the attribute's key) and "every_ms" (interval in ms) the board publishes readings by itself
    node       number of the node, 0 or above: information for the host, unused on the board

This file runs under MicroPython and under Python.
"""

import json
import os

from workbench.errors import ParameterError

SETTINGS_FILE = "settings.json"
BOOT_COUNT_FILE = "boot_count"
BOARDS = ("esp32-espnow", "esp32-udp", "pico-udp", "serial-radio")
PINS = ("tx", "rx", "radio_tx", "radio_rx", "sda", "scl", "adc", "data")
SENSOR_KINDS = ("chip", "adc", "log", "dht22", "bme280")
DEFAULTS = {"channel": 1, "baud": 115200}
NEEDS_WIFI = ("esp32-udp", "pico-udp")
_KEYS = ("board", "wifi", "channel", "pins", "baud", "target", "sensor", "node")


def read_settings(path=SETTINGS_FILE):
    """Return the checked settings of a board from a file.

    Raises ParameterError, with one sentence, if the file is missing, is not JSON, or its settings are not valid.
    """
    try:
        with open(path) as file:
            text = file.read()
    except OSError:
        raise ParameterError("%s is missing; provision the board, which writes this file" % path) from None
    except UnicodeError:
        raise ParameterError("%s is not UTF-8; provision the board again" % path) from None
    try:
        settings = json.loads(text)
    except ValueError:
        raise ParameterError("%s is not valid JSON; provision the board again" % path) from None
    return check_settings(settings)


def check_settings(settings):
    """Return a copy of the settings, in which missing ones have their values in DEFAULTS.

    Raises ParameterError, with one sentence, if they are not valid. The sentence contains neither the Wi-Fi name nor
    the key.
    """
    if not isinstance(settings, dict):
        raise ParameterError('the settings must be an object with the key "board"')
    for name in settings:
        if name not in _KEYS:
            raise ParameterError("settings.json has the key %r; it may have only %s" % (name, ", ".join(_KEYS)))
    board = settings.get("board")
    if board not in BOARDS:
        raise ParameterError("board is %r; it must be one of %s" % (board, ", ".join(BOARDS)))
    if "wifi" in settings:
        _check_wifi(settings["wifi"])
    elif board in NEEDS_WIFI:
        raise ParameterError("wifi is missing; a board %s needs the name and the key of an access point" % board)
    checked = dict(DEFAULTS)
    checked.update(settings)
    _check_number("channel", checked["channel"], 1, 13)
    _check_number("baud", checked["baud"], 1200, 3000000)
    _check_pins(checked.get("pins", {}))
    _check_target(checked.get("target", {}))
    if "node" in checked:
        _check_number("node", checked["node"], 0, 0xFFFFFFFF)
    if "sensor" in checked:
        _check_sensor(checked["sensor"], checked.get("pins", {}))
    return checked


def count_boot(path=BOOT_COUNT_FILE):
    """Return the number of earlier starts of the board, and store that number plus 1 in the file ``path``.

    The number is first written to a second file, so that a loss of power while writing does not reset it. A board whose
    file system is full or read-only returns the same number at each start.
    """
    new_path = path + ".new"
    boots = max(_read_count(path), _read_count(new_path))
    try:
        with open(new_path, "w") as file:
            file.write("%d\n" % (boots + 1))
        try:
            os.rename(new_path, path)
        except OSError:  # FAT does not rename onto an existing file.
            os.remove(path)
            os.rename(new_path, path)
    except OSError:
        pass
    return boots


def _read_count(path):
    try:
        with open(path) as file:
            return max(0, int(file.read()))
    except (OSError, ValueError):  # missing, or cut short
        return 0


def _check(is_valid, sentence, value):
    if not is_valid:
        raise ParameterError(sentence % _format_value(value))


def _format_value(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _check_number(name, value, least, most):
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        raise ParameterError(
            "%s is %s; it must be an integer from %d to %d" % (name, _format_value(value), least, most)
        )


def _check_object(name, value, keys):
    _check(isinstance(value, dict), name + " is %s; it must be an object", value)
    for key in value:
        if key not in keys:
            raise ParameterError("%s has the key %r; it may have only %s" % (name, key, ", ".join(keys)))


def _check_wifi(wifi):
    # The value itself never appears in a sentence: it may contain the key.
    if not isinstance(wifi, dict) or any(key not in ("name", "key") for key in wifi):
        raise ParameterError('wifi must be an object with "name" and "key", and nothing else')
    name, key = wifi.get("name"), wifi.get("key", "")
    if not isinstance(name, str) or not 1 <= len(name.encode()) <= 32:
        raise ParameterError("wifi.name must be a text of 1 to 32 bytes")
    if not isinstance(key, str) or (key and not 8 <= len(key) <= 63):
        raise ParameterError('wifi.key must be a text of 8 to 63 characters, or "" for an open network')


def _check_pins(pins):
    _check_object("pins", pins, PINS)
    for name in pins:
        _check_number("pins." + name, pins[name], 0, 99)
    for one_end, other_end in (("tx", "rx"), ("radio_tx", "radio_rx"), ("sda", "scl")):
        if (one_end in pins) != (other_end in pins):
            missing = other_end if one_end in pins else one_end
            raise ParameterError("pins.%s is missing; %s and %s are given together" % (missing, one_end, other_end))


def _check_target(target):
    _check_object("target", target, ("address", "port"))
    address = target.get("address", "255.255.255.255")
    octets = address.split(".") if isinstance(address, str) else ()
    if len(octets) != 4 or not all(octet.isdigit() and int(octet) < 256 for octet in octets):
        raise ParameterError(
            "target.address is %s; it must be an IPv4 address such as 192.168.4.255" % _format_value(target["address"])
        )
    if "port" in target:
        _check_number("target.port", target["port"], 1, 65535)


def _check_sensor(sensor, pins):
    _check(isinstance(sensor, dict), "sensor is %s; it must be an object", sensor)
    kind = sensor.get("kind")
    if kind not in SENSOR_KINDS:
        raise ParameterError("sensor.kind is %s; it must be one of %s" % (_format_value(kind), ", ".join(SENSOR_KINDS)))
    if ("key" in sensor) != ("every_ms" in sensor):
        missing = "every_ms" if "key" in sensor else "key"
        raise ParameterError("sensor.%s is missing; key and every_ms are given together" % missing)
    if "key" in sensor:
        _check_number("sensor.key", sensor["key"], 0, 65535)
        _check_number("sensor.every_ms", sensor["every_ms"], 1, 86400000)
    pin = {"adc": "adc", "dht22": "data", "bme280": "sda"}.get(kind)
    if pin is not None and pin not in pins:
        raise ParameterError("pins.%s is missing; a sensor of kind %s needs it" % (pin, kind))
