"""A board without a radio of its own, with a transparent serial radio at a UART (pins "radio_tx" and "radio_rx").

Without these pins the board's frames go over the host link, and the host is its radio. Not tried on hardware.
"""

from physical import (
    PINS,
    PROBLEM,
    RADIO_UART,
    boots,
    checked_radio,
    make_uart,
    memory,
    now_us,
    read_sensor,
    reset,
    run,
    sensor,
    write,
)

NAME = "serial-radio"
# A board without valid settings refuses its configuration when it makes its radio.
HAS_RADIO = PROBLEM is not None or "radio_tx" in PINS


def _make_radio(mote, address, settings):
    from radio_uart import UartRadio

    uart = make_uart(RADIO_UART, PINS["radio_tx"], PINS["radio_rx"])
    return UartRadio(address, settings, mote.random, uart)


def make_radio(mote, address, settings):
    """Return the radio at the UART."""
    return checked_radio(NAME, _make_radio, mote, address, settings)
