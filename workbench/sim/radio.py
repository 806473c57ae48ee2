"""The radio: a value with the settings by which the channel computes receptions, airtime and energy.

Model
    airtime      (frame + overhead_B) bytes at bit_rate_bps. 802.15.4: 250 kb/s, 6 bytes of PHY header.
    loss         "links": each arc's own delivery ratio (``pdr``); "none": every arc delivers; a number: every arc loses
                 that share. Drawn anew for each frame and receiver.
    jitter_ms    (lowest, highest) delay before a broadcast, so that neighbors that heard the same frame do not answer
                 at once. Unicast frames wait only until their own radio is free.
    collisions   a frame is lost at a receiver that hears any other transmission during its airtime, or transmits
                 itself (half duplex). Every arc of the topology is loud enough to disturb. With ``capture_dB``, a
                 frame that is stronger than each other frame by that many dB is received
                 (`workbench.sim.capture`).
    frame limit  with ``max_frame_B``, a longer frame is sent as fragments if its protocol permits (``max_fragments`` of
                 `Protocol`), and otherwise refused with an error. Fragments follow each other as a burst with one
                 back-off and one acknowledgement; each has a header of 5 bytes (RFC 4944), the radio's overhead, and a
                 pause of 640 µs before the next. The frame is received if no fragment is lost.
    csma         unslotted CSMA/CA of IEEE 802.15.4: a random back-off, then a check of the channel. If the channel is
                 busy, the node backs off again, from a larger range; after five checks the frame is given up. In a
                 channel without collisions, csma only costs time and frames.
    retries      times a unicast frame is sent again when no acknowledgement comes (802.15.4: 3). An acknowledgement is
                 lost like a frame on the reverse arc; it takes airtime, but disturbs no other frame.
    energy       per byte sent, and per byte of each frame that reaches a node to which it is addressed, even if the
                 frame collides there; overhead included. Idle listening and overhearing other nodes' unicasts are not
                 counted. Defaults: CC2420 at 3 V, 17.4 mA sending (0 dBm) and 18.8 mA receiving (its data
                 sheet, table 5).
    charge       only if the currents ``tx_mA`` and ``rx_mA`` are stated, as in the presets: the time of each radio in
                 each state (`workbench.sim.state_times`) times its current. Idle listening, overhearing,
                 acknowledgements and carrier sense are counted. ``overhearing``: how much of a frame for another
                 node is received: the whole "frame", or only the part up to its destination "address".
    link quality protocols that choose their links (Diffusion's black list, DPS's dense neighborhoods) know
                 the delivery ratios of all links from the start ("true", an oracle), or their nodes learn them
                 ("learned") from beacons (`workbench.protocols.link_estimator`). Nodes broadcast a beacon within
                 the first second, and later ones every 8 to 16 s, or 64 to 128 s with low-power listening. A beacon has
                 3 bytes and 5 for each neighbor, at most 103.
    low power    with ``wake_interval_ms`` (ContikiMAC: 125), radios sleep and wake up regularly; senders repeat a frame
                 until the receiver wakes up, and a broadcast takes a whole interval: `workbench.sim.low_power`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from workbench.errors import ParameterError, ScenarioError
from workbench.keywords import checked, documentation
from workbench.protocols.contract import Node
from workbench.protocols.link_estimator import LONGEST_ASLEEP_US, LONGEST_INTERVAL_US
from workbench.protocols.parameter import Parameter
from workbench.suggestion import meant

FRAGMENT_HEADER_B = 5  # RFC 4944, 5.3; the first fragment's has 4
FRAGMENT_GAP_US = 640  # long interframe space of IEEE 802.15.4: 40 symbols
MOST_UJ_PER_B = 1_000_000  # a joule; with any number of frames, energies stay far below the largest float
_ENERGY = f"a number of µJ from 0 to {MOST_UJ_PER_B:,}"


# Each field's range, its unit and the reason for its default, as forms display them.
PARAMETERS = (
    Parameter("loss", "links", None, None, "", "each arc's own delivery ratio, as measured or modelled"),
    Parameter(
        "collisions", False, None, None, "", "a frame is lost where another is heard during it; off: an ideal channel"
    ),
    Parameter(
        "csma",
        False,
        None,
        None,
        "",
        "listen before sending, as 802.15.4 does; without collisions this only costs time",
    ),
    Parameter(
        "capture_dB", 0.0, 0.0, 100.0, "dB", "a frame stronger by this much survives a collision; 0: no frame survives"
    ),
    Parameter(
        "max_frame_B",
        0,
        0,
        65535,
        "B",
        "longer frames are fragmented or refused; 802.15.4: 125; 0: no limit",
    ),
    Parameter("retries", 0, 0, 100, "tries", "further transmissions if no acknowledgement comes; 802.15.4: 3"),
    Parameter("jitter_ms", (1.0, 5.0), None, None, "ms", "neighbors that heard the same frame do not answer at once"),
    Parameter("bit_rate_bps", 250_000, 1, 10**10, "bit/s", "802.15.4 at 2.4 GHz"),
    Parameter("overhead_B", 6, 0, 1000, "B", "802.15.4: preamble, start of frame, length"),
    Parameter("tx_uJ_per_B", 1.67, 0.0, 1e6, "µJ/B", "CC2420 at 3 V, 0 dBm"),
    Parameter("rx_uJ_per_B", 1.80, 0.0, 1e6, "µJ/B", "CC2420 at 3 V"),
    Parameter("tx_mA", 0.0, 0.0, 1000.0, "mA", "current while sending; 0: not stated, so no charge is computed"),
    Parameter("rx_mA", 0.0, 0.0, 1000.0, "mA", "current while receiving or listening"),
    Parameter("sleep_mA", 0.0, 0.0, 1000.0, "mA", "current while asleep; most radios take a microampere"),
    Parameter("supply_V", 3.0, 0.1, 100.0, "V", "supply voltage, which turns charge into energy"),
    Parameter(
        "overhearing", "frame", ("frame", "address"), None, "", "the part of other nodes' frames that is received"
    ),
    Parameter(
        "link_quality",
        "true",
        ("true", "learned"),
        None,
        "",
        "protocols that choose links know the true delivery ratios, or learn them from beacons",
    ),
    Parameter(
        "wake_interval_ms",
        0.0,
        0.0,
        10_000.0,
        "ms",
        "between two wake-ups of a radio that sleeps; 0: it is always on; ContikiMAC: 125",
    ),
)


# Fields that version 0.1 did not have: JSON and hash of a scenario leave them out at their defaults.
ADDED = frozenset(
    (
        "tx_mA",
        "rx_mA",
        "sleep_mA",
        "supply_V",
        "overhearing",
        "wake_interval_ms",
        "capture_dB",
        "max_frame_B",
        "link_quality",
    )
)


@checked
@dataclass(frozen=True)
class Radio:
    """The settings of all radios of a network: losses, collisions, carrier sense, retries, airtime, energy.

    The default is a channel without collisions, whose only losses are those of the links. `wb.radios` has presets of
    real radios, such as ``wb.radios.cc2420()``. ``help("workbench.sim.radio")`` describes the model.
    """

    loss: Literal["links", "none"] | float = "links"
    collisions: bool = False
    jitter_ms: tuple[float, float] = (1.0, 5.0)
    csma: bool = False
    retries: int = 0
    bit_rate_bps: int = 250_000
    overhead_B: int = 6
    tx_uJ_per_B: float = 1.67
    rx_uJ_per_B: float = 1.80
    tx_mA: float = 0.0
    rx_mA: float = 0.0
    supply_V: float = 3.0
    overhearing: Literal["frame", "address"] = "frame"
    sleep_mA: float = 0.0
    wake_interval_ms: float = 0.0
    capture_dB: float = 0.0
    max_frame_B: int = 0
    link_quality: Literal["true", "learned"] = "true"

    def __post_init__(self) -> None:
        if isinstance(self.jitter_ms, (int, float)) and not isinstance(self.jitter_ms, bool):
            object.__setattr__(self, "jitter_ms", (0.0, self.jitter_ms))
        for name, is_valid, expected_text in (
            ("loss", self._is_loss_valid(), '"links", "none" or a share from 0 to 1'),
            ("jitter_ms", self._is_jitter_valid(), "(lowest, highest) in ms, 0 <= lowest <= highest <= 1,000,000"),
            ("collisions", isinstance(self.collisions, bool), "True or False"),
            ("csma", isinstance(self.csma, bool), "True or False"),
            ("retries", _is_integer(self.retries, 0, 100), "a whole number from 0 to 100"),
            ("bit_rate_bps", _is_integer(self.bit_rate_bps, 1, 10**10), "a whole number of bits per second"),
            ("overhead_B", _is_integer(self.overhead_B, 0, 1000), "a whole number of bytes from 0 to 1000"),
            ("tx_uJ_per_B", _is_number(self.tx_uJ_per_B, MOST_UJ_PER_B), _ENERGY),
            ("rx_uJ_per_B", _is_number(self.rx_uJ_per_B, MOST_UJ_PER_B), _ENERGY),
            ("tx_mA", _is_number(self.tx_mA, 1000), "a number of mA from 0 to 1000"),
            ("rx_mA", _is_number(self.rx_mA, 1000), "a number of mA from 0 to 1000"),
            ("sleep_mA", _is_number(self.sleep_mA, 1000), "a number of mA from 0 to 1000"),
            ("supply_V", _is_number(self.supply_V, 100) and self.supply_V >= 0.1, "a number of volts from 0.1 to 100"),
            ("overhearing", self.overhearing in ("frame", "address"), '"frame" or "address"'),
            ("link_quality", self.link_quality in ("true", "learned"), '"true" or "learned"'),
            ("capture_dB", _is_number(self.capture_dB, 100), "0 (no capture) or a number of dB up to 100"),
            (
                "max_frame_B",
                _is_integer(self.max_frame_B, 0, 65_535),
                "a number of bytes from 0 (no limit) to 65,535",
            ),
            ("wake_interval_ms", self._is_interval_valid(), "0 (always on) or a number of ms from 1 to 10,000"),
        ):
            if not is_valid:
                raise ParameterError(f"Radio: {name} is {getattr(self, name)!r:.60}; it must be {expected_text}")
        object.__setattr__(self, "jitter_ms", (float(self.jitter_ms[0]), float(self.jitter_ms[1])))
        if not isinstance(self.loss, str):
            object.__setattr__(self, "loss", float(self.loss))

    def _is_loss_valid(self) -> bool:
        if isinstance(self.loss, str):
            return self.loss in ("links", "none")
        return _is_number(self.loss, 1)

    def _is_jitter_valid(self) -> bool:
        jitter = self.jitter_ms
        return (
            isinstance(jitter, (tuple, list))
            and len(jitter) == 2
            and all(_is_number(value, 1_000_000) for value in jitter)
            and jitter[0] <= jitter[1]
        )

    def _is_interval_valid(self) -> bool:
        interval_ms = self.wake_interval_ms
        return _is_number(interval_ms, 10_000) and (interval_ms == 0 or interval_ms >= 1)

    @property
    def wake_interval_us(self) -> int:
        """The time between two wake-ups in µs; 0 for a radio that never sleeps."""
        return round(1000 * self.wake_interval_ms)

    @property
    def senses_carrier(self) -> bool:
        """True if nodes check the channel before they send: with ``csma``, or with low-power listening."""
        return self.csma or self.wake_interval_ms > 0

    @property
    def acknowledges(self) -> bool:
        """True if receivers acknowledge unicast frames: with ``retries``, or with low-power listening."""
        return self.retries > 0 or self.wake_interval_ms > 0

    @property
    def longest_beacon_interval_us(self) -> int:
        """The longest interval between beacons of a node that learns its link qualities, in µs."""
        return LONGEST_ASLEEP_US if self.wake_interval_ms else LONGEST_INTERVAL_US

    def airtime_us(self, frame_B: int) -> int:
        """Return the airtime in µs of a frame of ``frame_B`` bytes; overhead and pauses between fragments included."""
        fragments = count_fragments(frame_B, self.max_frame_B)
        headers_B = 0 if fragments == 1 else fragments * FRAGMENT_HEADER_B
        bits = (frame_B + headers_B + fragments * self.overhead_B) * 8
        return -(-bits * 1_000_000 // self.bit_rate_bps) + (fragments - 1) * FRAGMENT_GAP_US

    def longest_frame_B(self, max_fragments: int) -> int:
        """Return the size in bytes of the longest frame that fits in ``max_fragments`` fragments; 2^30 if unlimited."""
        if not self.max_frame_B:
            return 1 << 30
        if max_fragments == 1:
            return self.max_frame_B
        return max(self.max_frame_B, max_fragments * max(1, self.max_frame_B - FRAGMENT_HEADER_B))

    def delivery_ratio(self, pdr: float) -> float:
        """Return the share of frames, 0 to 1, that an arc delivers, by the setting ``loss`` of this radio.

        ``pdr``: the arc's delivery ratio in the topology; it counts only if ``loss`` is "links".
        """
        if self.loss == "links":
            return pdr
        return 1.0 if self.loss == "none" else 1.0 - float(self.loss)

    def to_dict(self) -> dict[str, Any]:
        """Return the radio as plain values, ready for JSON.

        Fields that were added after version 0.1 are left out if they have their defaults.
        """
        values = {**asdict(self), "jitter_ms": list(self.jitter_ms)}
        default_names = {field.name for field in fields(self) if getattr(self, field.name) == field.default}
        return {name: value for name, value in values.items() if name not in ADDED & default_names}

    @staticmethod
    def from_dict(values: Any) -> Radio:
        """Return the radio that the plain values of `to_dict` describe. Raises ScenarioError for a wrong field."""
        known_fields = [field.name for field in fields(Radio)]
        if not isinstance(values, Mapping):
            raise ScenarioError(f"radio is {values!r}; it must be an object with fields: {', '.join(known_fields)}")
        for name in values:
            if name not in known_fields:
                raise ScenarioError(
                    f"radio has no field {name!r}{meant(name, known_fields)}; it has: {', '.join(known_fields)}"
                )
        return Radio(**{**values, **({"jitter_ms": tuple(values["jitter_ms"])} if _has_jitter_list(values) else {})})


def count_fragments(frame_B: int, max_frame_B: int) -> int:
    """Return the number of fragments of a frame: 1 if the frame fits whole, and always 1 if ``max_frame_B`` is 0."""
    if max_frame_B == 0 or frame_B <= max_frame_B:
        return 1
    return -(-frame_B // max(1, max_frame_B - FRAGMENT_HEADER_B))


def share_of_whole_frames(ratio: float, fragments: int) -> float:
    """Return the share of frames, 0 to 1, of which all fragments arrive: ``ratio`` to the power of ``fragments``.

    ``ratio``: the share of fragments that the arc delivers. ``fragments``: the number of fragments of each frame.
    """
    arriving_share = ratio
    for _ in range(fragments - 1):
        arriving_share *= ratio
    return arriving_share


def describe_long_frame(radio: Radio, protocol: Any, node: int, message: str, frame_B: int) -> str:
    """Return the error message for a frame of ``frame_B`` bytes, which is too long for the radio.

    ``node``: the sender's address. ``message``: the name of the message in the frame.
    """
    protocol_name, limit_B = type(protocol).__name__, radio.longest_frame_B(protocol.max_fragments)
    fragments = f"in up to {protocol.max_fragments} fragments" if protocol.max_fragments > 1 else "without fragments"
    return (
        f"node {node} cannot send a frame of {frame_B} bytes ({message}): with the radio's max_frame_B of "
        f"{radio.max_frame_B}, {protocol_name} can send at most {limit_B} bytes {fragments}; "
        "use fewer attributes, a shorter payload, or max_frame_B=0"
    )


def is_ideal(radio: Radio, topology: Any) -> bool:
    """Return whether this radio loses no frame in this network (a networkx graph): no lossy links, no collisions."""
    if radio.collisions or (radio.loss != "links" and radio.delivery_ratio(1.0) < 1):
        return False
    return radio.loss != "links" or all(pdr == 1 for _, _, pdr in topology.edges(data="pdr"))


def uses_quality(protocol: Any) -> bool:
    """Return whether a protocol's nodes use the delivery ratios of their links."""
    return protocol.kind_of_node().link_quality is not Node.link_quality


def knows_links(radio: Radio, protocol: Any, topology: Any) -> bool:
    """Return whether nodes know the true delivery ratios of links that lose frames: an oracle that no mote has."""
    if radio.link_quality != "true" or not uses_quality(protocol):
        return False
    return radio.loss == "links" and any(pdr < 1 for _, _, pdr in topology.edges(data="pdr"))


def own_retries(protocol: Any) -> int:
    """Return how often a protocol itself repeats a message: its setting ``retries``, or 0 without this setting.

    The radio's retries are not included.
    """
    return int(protocol.settings.get("retries", 0))


Radio.__doc__ = documentation(
    Radio.__doc__ or "",
    PARAMETERS,
    types={
        "loss": "'links', 'none', or a share from 0 to 1",
        "jitter_ms": "(lowest, highest), or the highest alone",
    },
)


def _has_jitter_list(values: Mapping[Any, Any]) -> bool:
    return isinstance(values.get("jitter_ms"), list)


def _is_integer(value: Any, lowest: int, highest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest


def _is_number(value: Any, highest: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= highest
