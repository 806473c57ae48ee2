"""Presets: `Radio` values of real radios for IEEE 802.15.4 at 2.4 GHz, and the ideal radio.

A preset sets everything that the standard and the maker state: bit rate and overhead of a frame, collisions, carrier
sense, retransmissions, the limit of a frame (IEEE 802.15.4-2011: 250 kb/s, 6 bytes of PHY header, 127 bytes with a
checksum of 2, macMaxFrameRetries 3), currents and supply voltage, and the energy per byte that follows from them::

    wb.Scenario(topology, protocol, workload, radio=wb.radios.cc2420())
    wb.radios.cc2420(retries=0)  # the same radio without retransmissions
    wb.radios.cc2420(wake_interval_ms=125)  # with low-power listening: see `workbench.sim.low_power`

With low-power listening, a broadcast occupies the channel for a whole interval. So a preset with ``wake_interval_ms``
spreads broadcasts over four intervals, unless ``jitter_ms`` is given.

With ``link_quality="learned"``, nodes learn the delivery ratios of their links from beacons. Protocols that do not use
these ratios send no beacons.

The currents give ``run.energy()``: the charge of each node by the state of its radio. The metric ``energy_mJ`` counts
sending and receiving only; `workbench.sim.radio` lists what it omits. Limits: frames have no link-layer header, as the
protocols' frames contain the fields that they need of it; capture is off, as makers' figures for it were not available.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from workbench import plugins
from workbench.keywords import answer_for
from workbench.sim.radio import Radio

__all__ = ["at86rf231", "cc2340r5", "cc2420", "ideal", "nrf52840", "stm32wb55"]

BIT_RATE_BPS = 250_000
PHY_HEADER_B = 6
MAX_FRAME_B = 125  # 127 without the checksum of 2 bytes
MAX_FRAME_RETRIES = 3
_JITTER_INTERVALS = 4  # wake-up intervals over which the broadcasts of nodes that received the same frame are spread


def ideal(**fields: Any) -> Radio:
    """Return the default radio: no collisions, no carrier sense, no retransmissions; frames are lost by links alone.

    ``fields``: values for fields of `Radio`, instead of the values that this function sets.
    """
    return Radio(**fields)


def cc2420(**fields: Any) -> Radio:
    """Return the radio of MicaZ and TelosB motes: 17.4 mA sending at 0 dBm, 18.8 mA receiving, at 3 V.

    Source: data sheet SWRS041, table of electrical specifications. ``fields``: values that replace those of the preset.
    """
    return _ieee_802_15_4(17.4, 18.8, 0.001, 3.0, fields)


def at86rf231(**fields: Any) -> Radio:
    """Return the radio of the IoT-LAB M3 mote: 14 mA sending at +3 dBm, 12.3 mA receiving, at 3 V.

    Source: data sheet 8111, first page. An older edition states 14.3 mA and 13.2 mA.
    ``fields``: values that replace those of the preset.
    """
    return _ieee_802_15_4(14.0, 12.3, 0.00002, 3.0, fields)


def cc2340r5(**fields: Any) -> Radio:
    """Return the radio of the CC2340R5 in 802.15.4 mode: 5.1 mA sending at 0 dBm, 5.3 mA receiving, at 3 V.

    Source: its data sheet. The current while asleep is 0, as no figure was available. ``fields``: values that replace
    those of the preset.
    """
    return _ieee_802_15_4(5.1, 5.3, 0.0, 3.0, fields)


def nrf52840(**fields: Any) -> Radio:
    """Return the radio of the nRF52840 in 802.15.4 mode, at 3 V: 6.40 mA sending at 0 dBm, 6.53 mA receiving.

    The currents are those of the whole chip, with its DC/DC converter. Source: product specification, I_RADIO_TX5 and
    I_RADIO_RX2. The current while asleep is 0, as no figure of the maker was available. ``fields``: values that replace
    those of the preset.
    """
    return _ieee_802_15_4(6.40, 6.53, 0.0, 3.0, fields)


def stm32wb55(**fields: Any) -> Radio:
    """Return the radio of the STM32WB55: 5.2 mA sending at 0 dBm, 4.5 mA receiving, at 3.3 V.

    Source: the energy model of OpenThread's network simulator. ``fields``: values that replace those of the preset.
    """
    return _ieee_802_15_4(5.2, 4.5, 0.0, 3.3, fields)


def _ieee_802_15_4(tx_mA: float, rx_mA: float, sleep_mA: float, supply_V: float, fields: dict[str, Any]) -> Radio:
    ms_per_B = 8 * 1000 / BIT_RATE_BPS
    preset: dict[str, Any] = {
        "collisions": True,
        "csma": True,
        "retries": MAX_FRAME_RETRIES,
        "bit_rate_bps": BIT_RATE_BPS,
        "overhead_B": PHY_HEADER_B,
        "max_frame_B": MAX_FRAME_B,
        # mA * V * ms = µJ; rounded, so that a scenario file shows the number that a reader computes.
        "tx_uJ_per_B": round(tx_mA * supply_V * ms_per_B, 4),
        "rx_uJ_per_B": round(rx_mA * supply_V * ms_per_B, 4),
        "tx_mA": tx_mA,
        "rx_mA": rx_mA,
        "sleep_mA": sleep_mA,
        "supply_V": supply_V,
        "link_quality": "learned",
    }
    if fields.get("wake_interval_ms") and "jitter_ms" not in fields:
        preset["jitter_ms"] = (0.0, _JITTER_INTERVALS * fields["wake_interval_ms"])
    return Radio(**{**preset, **fields})


def named_radios() -> dict[str, Radio]:
    """Return {name: radio} for a user to choose from: the ideal channel, real radios, and the radios of plug-ins."""
    workbench_radios = {
        "ideal channel": ideal(),
        "IEEE 802.15.4": Radio(collisions=True, csma=True, retries=MAX_FRAME_RETRIES),
        "CC2420": cc2420(),
        "AT86RF231": at86rf231(),
        "CC2340R5": cc2340r5(),
        "nRF52840": nrf52840(),
        "STM32WB55": stm32wb55(),
    }
    return workbench_radios | plugins.load_all("radios", workbench_radios)


answer_for(__name__)


def describe_radio(radio: Radio) -> str:
    """Describe a radio by the most similar of `named_radios` and the fields that differ: "CC2420 with retries=0"."""
    changed_fields = {
        radio_name: [
            item.name for item in fields(Radio) if getattr(radio, item.name) != getattr(known_radio, item.name)
        ]
        for radio_name, known_radio in named_radios().items()
    }
    radio_name, differences = min(changed_fields.items(), key=lambda entry: len(entry[1]))
    difference_texts = [f"{difference}={getattr(radio, difference)}" for difference in differences]
    return f"{radio_name} with {', '.join(difference_texts)}" if difference_texts else radio_name
