"""A fake of the module network: the Wi-Fi hardware and one access point. See fake.py for its configuration.

Faults
    disconnected    at this call of `isconnected`, the connection is lost until the next call of `connect`
"""

import time

import fake

STA_IF = 0
# A restart of the hardware ends these faults of the fakes.
ENDED_BY_POWER = ("irecv_silent", "irecv_stuck", "no_mem", "send_refused", "udp_silent")
_state = {"is_active": False, "channel": 1, "status": 0, "since": 0}
CONNECTING = 1


class WLAN:
    """The fake; like the original, all objects of the station interface are one."""

    IF_STA = STA_IF
    PM_NONE = 0

    def __init__(self, interface):
        pass

    def active(self, is_active=None):
        """Switch the hardware on or off; without an argument return its state."""
        if is_active is None:
            return _state["is_active"]
        if not is_active:
            _state["status"] = 0
            fake.repair(*ENDED_BY_POWER)
        _state["is_active"] = is_active
        return None

    def config(self, name=None, channel=None, pm=None):
        """Return the channel, or set the channel or the power mode."""
        if name == "channel":
            return _state["channel"]
        if channel is not None:
            _state["channel"] = channel
        return None

    def connect(self, name, key):
        """Begin to connect; a wrong name or key is shown by `status`."""
        if not _state["is_active"]:
            raise OSError("Wifi Not Started")
        _state["since"] = time.ticks_ms()
        point = fake.CONFIGURATION.get("access_point", {})
        if point.get("name") != name:
            _state["status"] = -2
        elif point.get("key", "") != key:
            _state["status"] = -3
        else:
            _state["status"] = 3

    def disconnect(self):
        """End the connection."""
        _state["status"] = 0

    def isconnected(self):
        """Return whether the board has an address."""
        if self.status() == 3 and fake.occurs_once("disconnected"):
            _state["status"] = 0
        return self.status() == 3

    def status(self):
        """Return 3 if connected, 1 while connecting, 0 if idle, -2 without the access point, -3 after a wrong key."""
        connecting_ms = fake.CONFIGURATION.get("connecting_ms", 0)
        if _state["status"] and time.ticks_diff(time.ticks_ms(), _state["since"]) < connecting_ms:
            return CONNECTING
        return _state["status"]
