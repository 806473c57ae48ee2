"""An ESP32 whose radio is ESP-NOW; with ``wifi`` in settings.json it also uses UDP, and connects the nodes of both.

Not tried on hardware.
"""

from physical import (
    SETTINGS,
    boots,
    checked_radio,
    make_udp_radio,
    memory,
    now_us,
    read_sensor,
    reset,
    run,
    sensor,
    wifi,
    write,
)

NAME = "esp32-espnow"
HAS_RADIO = True


def _make_radio(mote, address, settings):
    from radio_espnow import EspNowRadio

    if "wifi" not in SETTINGS:
        return EspNowRadio(address, settings, mote.random, SETTINGS["channel"])
    from radio_both import BothRadios

    nearby = EspNowRadio(address, settings, mote.random, SETTINGS["channel"], wifi())
    return BothRadios(nearby, make_udp_radio(mote, address, settings))


def make_radio(mote, address, settings):
    """Return the radio of a node with this address: ESP-NOW, together with UDP if settings.json has ``wifi``.

    ``settings`` are the radio's settings of the run. Raises ParameterError if the board's settings are not valid.
    """
    return checked_radio(NAME, _make_radio, mote, address, settings)
