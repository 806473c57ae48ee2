"""The common parts of the fakes of a board's modules: configuration, random numbers and a record of injected faults.

The folder in which a driver runs has the file ``fake.json``
    mac        MAC address of the board, 12 hex digits
    port       UDP port on loopback that carries the frames of ESP-NOW and of serial radios
    loss, duplication    probabilities of each received frame, default 0
    access_point    {"name", "key"} of the network in range
    connecting_ms    time to connect to the access point, default 0
    faults     {name: at which occurrence it begins}: see the fakes

Each injected fault adds its name as a line to the file ``injected``.

This file and the other fakes run under MicroPython's port for Unix.
"""

import json

import usocket

try:
    with open("fake.json") as file:
        CONFIGURATION = json.load(file)
except OSError:
    CONFIGURATION = {}

MAC = bytes(int(CONFIGURATION.get("mac", "020000000001")[i : i + 2], 16) for i in range(0, 12, 2))
FAULTS = CONFIGURATION.get("faults", {})
MEDIUM = ("127.255.255.255", CONFIGURATION.get("port", 47799))

_random = [sum(byte << 8 * i for i, byte in enumerate(MAC)) & 0xFFFFFFFF]
_occurrences = {}
power_cycles = [0]  # how often the Wi-Fi hardware was switched off


def chance(probability):
    """Return True with a probability, from a generator that begins with the MAC address."""
    _random[0] = (_random[0] * 1664525 + 1013904223) & 0xFFFFFFFF
    return _random[0] < probability * 0x100000000


def copies():
    """Return how often a frame in the medium is received: 0, 1 or 2 times."""
    if chance(CONFIGURATION.get("loss", 0)):
        return 0
    return 2 if chance(CONFIGURATION.get("duplication", 0)) else 1


def occurs(name):
    """Count an occasion for a fault; return True from the configured one on, until the fault is repaired.

    After `repair` the fault does not occur again.
    """
    if name not in FAULTS:
        return False
    _occurrences[name] = _occurrences.get(name, 0) + 1
    return _occurrences[name] >= FAULTS[name]


def occurs_once(name):
    """Count an occasion for a fault; return True at the configured one only, and record it."""
    if name not in FAULTS or not occurs(name):
        return False
    del FAULTS[name]
    record(name)
    return True


def repair(*names):
    """End faults that a restart of the hardware ends, and record those that had occurred."""
    for name in names:
        if name in FAULTS and _occurrences.get(name, 0) >= FAULTS[name]:
            del FAULTS[name]
            record(name)


def record(name):
    """Add the name of an injected fault to the file ``injected``."""
    with open("injected", "a") as file:
        file.write(name + "\n")


def open_medium():
    """Return a socket that hears the medium of ESP-NOW or of serial radios."""
    medium = usocket.socket(usocket.AF_INET, usocket.SOCK_DGRAM)
    medium.setsockopt(usocket.SOL_SOCKET, usocket.SO_REUSEADDR, 1)
    medium.setsockopt(usocket.SOL_SOCKET, usocket.SO_BROADCAST, 1)
    medium.bind(usocket.getaddrinfo(*MEDIUM)[0][-1])
    medium.setblocking(False)
    return medium


def medium_address():
    """Return the address of the medium, for `sendto`."""
    return usocket.getaddrinfo(*MEDIUM)[0][-1]
