"""An ESP32 whose radio is UDP broadcasts over Wi-Fi, through an access point.

Not tried on hardware.
"""

from physical import (
    boots,
    checked_radio,
    make_udp_radio,
    memory,
    now_us,
    read_sensor,
    reset,
    run,
    sensor,
    write,
)

NAME = "esp32-udp"
HAS_RADIO = True


def make_radio(mote, address, settings):
    """Return the radio of a node with this address, which sends UDP datagrams.

    ``settings`` are the radio's settings of the run. Raises ParameterError if the board's settings are not valid.
    """
    return checked_radio(NAME, make_udp_radio, mote, address, settings)
