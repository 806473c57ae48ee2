"""From distance to packet delivery ratio: path loss, shadowing and the reception curve of IEEE 802.15.4.

Theory of operation
    received power = transmit power - loss_1m - 10 exponent log10(distance) - walls - shadowing      [dB]
    Shadowing is normal, the same in both directions of a link. Each direction adds a smaller normal variation of its
    own (transmit powers and noise floors of real motes differ), which makes links asymmetric. Both are cut off at three
    standard deviations, so a link has a greatest length. The signal-to-noise ratio then determines the bit error rate
    of 2.4 GHz O-QPSK, and that determines the share of frames without a wrong bit.

Reference
    IEEE Std 802.15.4-2006, annex E: bit error rate (E.4.1.8) and loss at 1 m, 40.2 dB (E.5.3);
    M. Zuniga, B. Krishnamachari: An analysis of unreliability and asymmetry in low-power wireless links,
    ACM TOSN 3(2), 2007 (log-normal shadowing, variance per direction).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from workbench import draws, purposes
from workbench.array_draws import mix64
from workbench.topology.graphs import number, round_pdr, whole
from workbench.topology.neighborhood import pairs_within

SHADOWING, ASYMMETRY, POSITION, ROOM = 1, 2, 3, 4  # purposes of a topology's draws
CUT_OFF = 3.0  # standard deviations
_SPARE_DB = 0.5  # more than the rounding of delivery ratios

_ORDERS = np.arange(2, 17)
_SIGNED_BINOMIALS = np.array([(-1) ** k * math.comb(16, k) for k in range(2, 17)], dtype=float)
_GOLDEN = np.uint64(draws.GOLDEN)


@dataclass(frozen=True)
class Propagation:
    """The radio environment. Raises ParameterError for a value outside its range.

    =================== ======== ===== =====================================================================
    parameter           default  unit  meaning
    =================== ======== ===== =====================================================================
    transmit_power_dBm       0   dBm   power of every transmitter (CC2420 and AT86RF231 go from -25 to 3)
    loss_1m_dB            40.2   dB    path loss at 1 m, free space at 2.4 GHz
    exponent               3.0         path loss exponent: 2 free space, 3 to 4 among people and furniture
    shadowing_dB           4.0   dB    standard deviation of the shadowing, the same in both directions
    asymmetry_dB           1.0   dB    standard deviation of each direction's own variation
    noise_dBm            -95.0   dBm   noise floor; of 40 B frames, half are lost at an SNR of -1.4 dB, and 1 %
                                       at +0.7 dB
    frame_B                 40   B     length of the frame whose delivery ratio is given
    =================== ======== ===== =====================================================================
    """

    transmit_power_dBm: float = 0.0
    loss_1m_dB: float = 40.2
    exponent: float = 3.0
    shadowing_dB: float = 4.0
    asymmetry_dB: float = 1.0
    noise_dBm: float = -95.0
    frame_B: int = 40

    def __post_init__(self) -> None:
        ranges = {
            "transmit_power_dBm": (-100, 50, "dBm"),
            "loss_1m_dB": (0, 100, "dB"),
            "exponent": (1, 10, ""),
            "shadowing_dB": (0, 30, "dB"),
            "asymmetry_dB": (0, 30, "dB"),
            "noise_dBm": (-150, 0, "dBm"),
        }
        for name, (minimum, maximum, unit) in ranges.items():
            object.__setattr__(self, name, number(name, getattr(self, name), minimum, maximum, unit))
        object.__setattr__(self, "frame_B", whole("frame_B", self.frame_B, 1, 127))

    def snr_dB(self, distance_m: npt.ArrayLike) -> np.ndarray:
        """Return the mean signal-to-noise ratio in dB at a distance (any shape); distances below 1 m count as 1 m."""
        loss_dB = self.loss_1m_dB + 10 * self.exponent * np.log10(np.maximum(distance_m, 1.0))
        return self.transmit_power_dBm - loss_dB - self.noise_dBm

    def range_m(self, pdr: float, luck_dB: float = 0.0) -> float:
        """Return the greatest distance in m at which a link still has the delivery ratio ``pdr``.

        ``luck_dB``: how much stronger the signal is than on a link without shadowing, in dB.
        """
        spare_dB = float(self.snr_dB(1.0)) + luck_dB - _snr_needed_dB(pdr, self.frame_B)
        return float(10 ** min(9.0, max(0.0, spare_dB) / (10 * self.exponent)))

    @property
    def greatest_luck_dB(self) -> float:
        """The largest possible random gain of a link, in dB: shadowing and asymmetry, both cut off."""
        return CUT_OFF * (self.shadowing_dB + self.asymmetry_dB)


def packet_reception(snr_dB: npt.ArrayLike, frame_B: int) -> np.ndarray:
    """Return the share of frames of ``frame_B`` bytes received at a signal-to-noise ratio in dB (any shape)."""
    snr = 10 ** (np.clip(snr_dB, -40, 40) / 10)
    series_terms = _SIGNED_BINOMIALS * np.exp(20 * np.asarray(snr)[..., None] * (1 / _ORDERS - 1))
    bit_error_rate = np.clip(8 / 15 / 16 * series_terms.sum(axis=-1), 0.0, 0.5)
    return (1 - bit_error_rate) ** (8 * frame_B)


def links_between(
    nodes: np.ndarray,
    positions_m: np.ndarray,
    propagation: Propagation,
    draw: tuple[int, int],
    min_pdr: float,
    walls: npt.ArrayLike = (),
    wall_dB: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return random links of ``nodes`` (n,) at ``positions_m`` (n, 2): arcs (m, 2) and their ``pdr`` (m,).

    Delivery ratios follow from distance, walls and shadowing. Each of the ``walls`` (w, 2, 2) that the line between two
    nodes crosses attenuates by ``wall_dB``. Arcs that deliver less than ``min_pdr`` are omitted. Shadowing and
    asymmetry of a link depend only on ``draw``, (seed, number of the attempt), and on the numbers of its two nodes.
    """
    pairs = pairs_within(positions_m, propagation.range_m(min_pdr, propagation.greatest_luck_dB))
    ends_m = positions_m[pairs]
    distances_m = np.hypot(*(ends_m[:, 0] - ends_m[:, 1]).T)
    snr_dB = propagation.snr_dB(distances_m) - wall_dB * _count_walls(positions_m, pairs, walls)
    # Behind walls, most links would be too weak even with the greatest luck: their random numbers are not needed.
    is_possible = snr_dB + propagation.greatest_luck_dB > _snr_needed_dB(min_pdr, propagation.frame_B) - _SPARE_DB
    pairs, snr_dB = pairs[is_possible], snr_dB[is_possible]
    return draw_links(nodes[pairs], snr_dB, propagation, draw, min_pdr)


def _count_walls(positions_m: np.ndarray, pairs: np.ndarray, walls: npt.ArrayLike) -> np.ndarray:
    """Return the number of walls (w, 2, 2) that the line between the nodes of each pair (p, 2) crosses.

    ``positions_m`` (n, 2): the positions of the nodes. If a line only touches a wall, rounding decides.
    """
    counts = np.zeros(len(pairs))
    first, second = pairs.T
    for wall in np.asarray(walls, dtype=float).reshape(-1, 2, 2):
        # Most pairs are on one side of the wall: only the others are compared with its ends.
        node_sides = _find_side(wall[0], wall[1], positions_m).astype(np.int8)
        separated_pairs = np.flatnonzero(node_sides[first] * node_sides[second] < 0)
        start_m, end_m = positions_m[first[separated_pairs]], positions_m[second[separated_pairs]]
        counts[separated_pairs] += _find_side(start_m, end_m, wall[0]) * _find_side(start_m, end_m, wall[1]) < 0
    return counts


def _find_side(start: np.ndarray, end: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Return for each point on which side of the line from start to end it is: 1 left, -1 right, 0 on the line.

    The arguments are points (x, y) in their last axis; their other axes are broadcast.
    """
    line_vector, point_vector = end - start, point - start
    return np.sign(line_vector[..., 0] * point_vector[..., 1] - line_vector[..., 1] * point_vector[..., 0])


def draw_links(
    pairs: np.ndarray, snr_dB: np.ndarray, propagation: Propagation, draw: tuple[int, int], min_pdr: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return random links of ``pairs`` (p, 2) of nodes: arcs (m, 2) and their delivery ratios (m,).

    ``snr_dB`` (p,) is the signal-to-noise ratio of a pair without shadowing. Arcs that deliver less than ``min_pdr``
    are omitted. ``draw`` is (seed, number of the attempt). The random numbers of a link depend only on ``draw`` and on
    the link's two nodes.
    """
    lower_node, higher_node = pairs.min(axis=1), pairs.max(axis=1)
    shadowing = propagation.shadowing_dB * normals(link_keys(draw, SHADOWING, lower_node, higher_node))
    directions, ratios = [], []
    for transmitter, receiver in ((lower_node, higher_node), (higher_node, lower_node)):
        variation = propagation.asymmetry_dB * normals(link_keys(draw, ASYMMETRY, transmitter, receiver))
        directions.append(np.column_stack((transmitter, receiver)))
        ratios.append(round_pdr(packet_reception(snr_dB - shadowing + variation, propagation.frame_B)))
    arcs, pdr = np.concatenate(directions), np.concatenate(ratios)
    is_link = (pdr >= min_pdr) & (pdr > 0)
    return arcs[is_link], pdr[is_link]


@lru_cache
def _snr_needed_dB(pdr: float, frame_B: int) -> float:
    """Return the signal-to-noise ratio at which the share of received frames is ``pdr``, found by bisection."""
    low_dB, high_dB = -40.0, 40.0
    for _ in range(50):
        middle_dB = (low_dB + high_dB) / 2
        low_dB, high_dB = (middle_dB, high_dB) if packet_reception(middle_dB, frame_B) < pdr else (low_dB, middle_dB)
    return low_dB


# Array versions of workbench.draws: the same numbers as its scalar functions.


def key_of(draw: tuple[int, int], purpose: int) -> int:
    """Return the 64-bit key that determines the random numbers for a ``purpose``, such as POSITION or ROOM.

    ``draw`` is (seed, number of the attempt).
    """
    seed, attempt = draw
    return draws.make_key(seed, purposes.TOPOLOGY, purpose, attempt)


def link_keys(draw: tuple[int, int], purpose: int, transmitters: npt.ArrayLike, receivers: npt.ArrayLike) -> np.ndarray:
    """Return a 64-bit key for random draws for each pair (transmitter, receiver) of two arrays of nodes.

    The key is ``draws.make_key(seed, TOPOLOGY, purpose, attempt, transmitter, receiver)``. ``draw`` is (seed, attempt);
    ``purpose`` is a number for the quantity to be drawn, such as SHADOWING.
    """
    keys = np.array([key_of(draw, purpose)], dtype=np.uint64)
    for nodes in (transmitters, receivers):
        keys = mix64(keys ^ mix64(np.asarray(nodes).astype(np.uint64) + _GOLDEN))
    return keys


def uniforms(keys: int | np.ndarray, counters: npt.ArrayLike) -> np.ndarray:
    """Return uniform random numbers in [0, 1), each determined by a key and a counter.

    ``keys`` and ``counters`` are combined by numpy's broadcasting. The numbers equal ``draws.uniform(key, counter)``.
    """
    counters = np.atleast_1d(np.asarray(counters)).astype(np.uint64)
    random_bits = mix64(np.asarray(keys, dtype=np.uint64) + (counters + np.uint64(1)) * _GOLDEN)
    return (random_bits >> np.uint64(11)).astype(float) / (1 << 53)


def normals(keys: np.ndarray) -> np.ndarray:
    """Return for each of the 64-bit ``keys`` the standard normal random number that it determines, clipped to ±3."""
    radius = np.sqrt(-2.0 * np.log(1.0 - uniforms(keys, 0)))
    return np.clip(radius * np.cos(2.0 * np.pi * uniforms(keys, 1)), -CUT_OFF, CUT_OFF)
