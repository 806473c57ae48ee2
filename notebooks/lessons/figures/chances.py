"""How likely a random packet is innovative, by field: exact, and measured with the decoder.

Theory of operation
    Of the q^m - 1 encoding vectors that are drawn (zeros are drawn again), q^r - 1 depend on r independent ones that
    are there. So a packet is innovative with probability (q^m - q^r) / (q^m - 1): certain for the first, worst for the
    last, where it is about 1 - 1/q. The number of packets until all m are there follows from these by a chain over the
    rank.

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
from workbench.views.chart import line_chart
from workbench.views.drawing import Drawing

if TYPE_CHECKING:
    import pandas as pd

EXTRA = 6


def innovation_probability(order: int, generation_size: int, rank: int) -> float:
    """Of a random packet at a decoder of that rank, over the field of that order."""
    return (order**generation_size - order**rank) / (order**generation_size - 1)


def completion_probability(order: int, generation_size: int, packets: int) -> float:
    """That so many random packets are enough to decode."""
    of_rank = [1.0] + [0.0] * generation_size
    for _ in range(packets):
        rises = [innovation_probability(order, generation_size, rank) for rank in range(generation_size)] + [0.0]
        of_rank = [
            of_rank[rank] * (1 - rises[rank]) + (of_rank[rank - 1] * rises[rank - 1] if rank else 0.0)
            for rank in range(generation_size + 1)
        ]
    return of_rank[-1]


def packets_until_complete(order: int, generation_size: int, trials: int, seed: int = 1) -> list[int]:
    """How many random packets a `Decoder` took until it was complete, in each of some trials."""
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
    """Share of generations decoded after m, m + 1, ... packets: exact and measured; a row for each field and number."""
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
    """Share of generations decoded against packets beyond m: measured, with its 95 % confidence interval."""
    from workbench.sweeps.means import share_interval

    series = []
    for order in orders:
        counts = packets_until_complete(order, generation_size, trials, seed)
        done = [[float(count <= generation_size + extra) for count in counts] for extra in range(EXTRA + 1)]
        means, low, high = (list(one) for one in zip(*map(share_interval, done), strict=True))
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
