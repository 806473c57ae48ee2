"""The Wi-Fi connection of a board to an access point: it is kept up without ever waiting for it.

Not tried on hardware.

This file runs under MicroPython.
"""

import network

CHECK_US = 1000000
# An attempt that has not connected by then is repeated: some attempts end without an error.
ATTEMPT_US = 15000000


class Wifi:
    """The connection to an access point. ``settings`` is {"name": ..., "key": ...}, of the file settings.json."""

    def __init__(self, settings):
        self._name = settings["name"]
        self._key = settings.get("key", "")
        self._checked_us = None
        self._attempt_us = None
        self._fault = None
        self._was_connected = False
        self._wlan = network.WLAN(network.STA_IF)
        self._connect()

    @property
    def is_connected(self):
        """True if the board has an address of the access point's network."""
        return self._wlan.isconnected()

    def check(self, now):
        """Connect again if the connection is lost; return the name of a fault in datagrams.FAULTS, or None.

        ``now`` is a time in µs. A fault that lasts is returned once, and the connection is checked at most every
        CHECK_US.
        """
        if self._checked_us is not None and 0 <= now - self._checked_us < CHECK_US:
            return None
        self._checked_us = now
        if self._wlan.isconnected():
            self._attempt_us = self._fault = None
            self._was_connected = True
            return None
        fault = self._find_fault()
        if fault == "no_network" and self._fault is not None:
            fault = self._fault  # During an attempt the hardware does not report why the last one failed.
        if self._attempt_us is None and not self._was_connected:
            self._attempt_us = now  # The first attempt began before the clock was known.
        elif self._attempt_us is None or not 0 <= now - self._attempt_us < ATTEMPT_US:
            self._attempt_us = now
            self._connect()
        is_new = fault != self._fault
        self._fault = fault
        return fault if is_new else None

    def restart(self):
        """Restart the Wi-Fi hardware and connect again. Raises OSError if the hardware does not start."""
        self._wlan.active(False)
        self._connect()

    def _find_fault(self):
        status = self._wlan.status()
        # On the Pico W -3 is a wrong key and -2 a missing access point. On the ESP32 201 is a missing access point, 202
        # a wrong key, and 204 a handshake that timed out, which a wrong key causes too.
        if status in (-3, 202, 204):
            return "wrong_key"
        if status in (-2, 201):
            return "no_access_point"
        return "no_network"

    def _connect(self):
        self._wlan.active(True)
        try:
            # In power save mode broadcasts are lost. 0xa11140 is the Pico W's mode without it, 0 the ESP32's.
            self._wlan.config(pm=getattr(network.WLAN, "PM_NONE", 0xA11140))
        except (OSError, ValueError):
            pass  # firmware without this setting
        try:
            self._wlan.disconnect()
        except OSError:
            pass  # It was not connected.
        self._wlan.connect(self._name, self._key)
