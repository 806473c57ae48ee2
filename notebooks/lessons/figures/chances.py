"""The probability that a random packet is innovative, for several fields: exact, and measured with the decoder.

Theory of operation
    A sender draws one of q^m - 1 encoding vectors; a vector of zeros is drawn again. At a decoder of rank r, q^r - 1 of
    these vectors depend on its rows. A packet is therefore innovative with probability (q^m - q^r) / (q^m - 1). This is
    1 for the first packet and smallest for the last, about 1 - 1/q. A Markov chain over the rank gives the distribution
    of the number of packets until the rank is m.

Cost
    A measurement decodes ``trials`` generations.

Reference
    O. Trullols-Cruces et al.: Exact decoding probability under random linear network coding, IEEE Comm. Letters 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench import draws
from workbench.coding.fields import field as field_of
from workbench.coding.rlnc import Decoder, draw_coefficients
from workbench.views.charts.static import line_chart
from workbench.views.drawing import Drawing

if TYPE_CHECKING:
    import pandas as pd

EXTRA = 6


def innovation_probability(order: int, generation_size: int, rank: int) -> float:
    """Return the probability that a random packet is innovative at a decoder of this rank."""
    return (order**generation_size - order**rank) / (order**generation_size - 1)


def completion_probability(order: int, generation_size: int, packets: int) -> float:
    """Return the probability that this number of random packets is enough to decode a generation."""
    probability = [1.0] + [0.0] * generation_size
    for _ in range(packets):
        innovative = [innovation_probability(order, generation_size, rank) for rank in range(generation_size)] + [0.0]
        probability = [
            probability[rank] * (1 - innovative[rank]) + (probability[rank - 1] * innovative[rank - 1] if rank else 0.0)
            for rank in range(generation_size + 1)
        ]
    return probability[-1]


def packets_until_complete(order: int, generation_size: int, trials: int, seed: int = 1) -> list[int]:
    """Return for each trial how many random packets a `Decoder` took until it was complete."""
    random = draws.Stream(draws.make_key(seed, draws.PROTOCOL))
    field = field_of(order)
    counts = []
    for _ in range(trials):
        decoder, count = Decoder(generation_size, field, bulk=False), 0
        while not decoder.is_complete:
            decoder.add(draw_coefficients(field, generation_size, random), bytes(field.size_B(1)))
            count += 1
        counts.append(count)
    return counts


def completion_table(generation_size: int, orders: Sequence[int], trials: int, seed: int = 1) -> pd.DataFrame:
    """Tabulate the share of generations decoded after m, m + 1, ... packets, exact and measured, for each field."""
    import pandas as pd

    rows = []
    for order in orders:
        counts = packets_until_complete(order, generation_size, trials, seed)
        for extra in range(EXTRA + 1):
            packets = generation_size + extra
            measured = sum(count <= packets for count in counts) / trials
            exact = completion_probability(order, generation_size, packets)
            rows.append((repr(field_of(order)), extra, exact, measured))
    return pd.DataFrame(rows, columns=["field", "packets beyond m", "exact", "measured"])


def completion_chart(generation_size: int, orders: Sequence[int], trials: int, seed: int = 1) -> Drawing:
    """Chart the measured share of generations decoded against the packets beyond m, with 95 % confidence intervals."""
    from workbench.sweeps.means import share_interval

    series = []
    for order in orders:
        counts = packets_until_complete(order, generation_size, trials, seed)
        done = [[float(count <= generation_size + extra) for count in counts] for extra in range(EXTRA + 1)]
        means, low, high = (list(values) for values in zip(*map(share_interval, done), strict=True))
        series.append(
            {"name": repr(field_of(order)), "x": list(range(EXTRA + 1)), "y": means, "low": low, "high": high}
        )
    return line_chart(
        series,
        x_label=f"packets beyond m = {generation_size}",
        y_label="share of generations decoded",
        note=f"{trials} generations for each field, with 95 % confidence interval",
        y_range=(0.0, 1.0),
    )
