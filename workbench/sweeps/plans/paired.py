"""Paired seeds: protocols are compared on the same networks, with the same workload, as far as that can be.

Theory of operation
    Two protocols that run with the same seeds share what makes one run easier than the other, and their difference
    varies less than each of them. A plan crosses what is compared with the seeds; `paired_differences` then takes the
    difference seed by seed, and its interval is that of the mean of these differences.

What is paired
    the network     if ``topology`` draws one for each seed; without it all runs have the base scenario's
    the workload    if ``workload`` makes one for each seed; staggered publications begin at the same times anyway
    losses          by link and moment: frames that begin on the same link in the same microsecond are both lost or both
                    received
    backoffs        by number: the n-th frame of a node waits for as long, as far as radio settings are the same

What cannot be paired
    Protocols send other frames at other times. After the first frame that only one of them sends the two runs go apart,
    and what is lost then is another frame. What a protocol draws for itself (to forward or not, a random code) has the
    same numbers and another use. Runs on other networks or with other workloads have no pair. Pairing never makes an
    interval wrong: where it does not help, the interval is as wide as without.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import networkx as nx

from workbench import topology as topologies
from workbench.errors import ParameterError, ScenarioError
from workbench.suggestion import meant
from workbench.sweeps import user_code, values
from workbench.sweeps.design import PROBES, Design, Grid, axis, evenly
from workbench.sweeps.means import interval
from workbench.topology.graphs import is_whole

if TYPE_CHECKING:
    import pandas as pd

MOST_SEEDS = 100_000_000
_KEPT = 64  # networks and workloads that are kept while points with them may come again


class PairedSeeds(Design):
    """A seed, and what is made from it: path -> function of the seed."""

    def __init__(self, count: int, first: int, made: dict[str, Callable[[int], Any]]) -> None:
        self.paths = ("seed", *made)
        self._count, self._first, self._made = count, first, made
        self._cached = lru_cache(maxsize=_KEPT)(self._make)

    def _make(self, path: str, seed: int) -> Any:
        made = self._made[path](seed)
        return values.frozen(made) if path == "topology" else made

    def __getstate__(self) -> dict[str, Any]:
        return {"count": self._count, "first": self._first, "made": user_code.pickled(self._made)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**{**state, "made": pickle.loads(state["made"])})  # type: ignore[misc]

    def __len__(self) -> int:
        return self._count

    def overrides(self, number: int) -> dict[str, Any]:
        """path -> value of a point."""
        seed = self._first + number
        return {"seed": seed, **{path: self._cached(path, seed) for path in self._made}}

    def labels(self, number: int) -> dict[str, Any]:
        """path -> label of a point."""
        seed = self._first + number
        return {"seed": seed, **{path: f"{path} {seed}" for path in self._made}}

    def probes(self) -> Sequence[int]:
        """Some seeds: to look at one may mean to draw a network."""
        return evenly(self._count, PROBES // 10)

    def text(self) -> str:
        """How many, and what is made from them: "seed, topology (30)"."""
        return f"{', '.join(self.paths)} ({self._count})"


class Redrawn:
    """The network of a recipe with another seed."""

    def __init__(self, recipe: dict[str, Any]) -> None:
        self._recipe = recipe

    def __call__(self, seed: int) -> nx.DiGraph:
        return topologies.from_dict({"recipe": {**self._recipe, "seed": seed}})


def seeds(count: int, first: int = 1) -> Design:
    """So many seeds in a row, from ``first`` on.

    >>> len(seeds(30))
    30
    """
    _check_count(count, first)
    return Grid((axis("seed", range(first, first + count)),))


def paired_seeds(
    count: int,
    topology: nx.DiGraph | Callable[[int], nx.DiGraph] | None = None,
    workload: Callable[[int], Any] | None = None,
    first: int = 1,
) -> Design:
    """So many seeds, each with a network and a workload of its own, for all that they are crossed with.

    ``topology`` is a network that was drawn (`topology.disc`, `random_geometric`, `office`), which is drawn again with
    each seed, or a function from a seed to a network. ``workload`` is a function from a seed to a workload. Without
    them all seeds have the base scenario's. Raises ScenarioError for a network that was not drawn.

    Paired are the networks, the workloads, the times of staggered publications, and the losses of frames that begin on
    the same link at the same moment. What comes after the first frame that only one protocol sends cannot be paired.

    64 networks are kept. With more seeds each point draws its own again, unless the seeds turn slower than what is
    compared: ``paired_seeds(1000, network) * {"protocol": [...]}``.

    >>> import workbench as wb
    >>> network = wb.topology.disc(20, 60, 60)
    >>> plan = grid({"protocol": [wb.Flooding(), wb.Gossip()]}) * paired_seeds(30, topology=network)
    >>> len(plan), plan.overrides(4)["topology"] is plan.overrides(34)["topology"]
    (60, True)
    """
    _check_count(count, first)
    made: dict[str, Callable[[int], Any]] = {}
    if topology is not None:
        made["topology"] = _drawn_by(topology)
    if workload is not None:
        if not callable(workload):
            raise ScenarioError(f"workload is {workload!r:.80}; it must be a function of a seed that makes one")
        made["workload"] = workload
    return PairedSeeds(count, first, made)


def _check_count(count: Any, first: Any) -> None:
    if not is_whole(count) or not 1 <= count <= MOST_SEEDS:
        raise ScenarioError(f"the number of seeds is {count!r:.60}; it must be a whole number from 1 to {MOST_SEEDS}")
    if not is_whole(first):
        raise ScenarioError(f"the first seed is {first!r:.60}; it must be a whole number")


def _drawn_by(topology: Any) -> Callable[[int], nx.DiGraph]:
    if isinstance(topology, nx.Graph):
        recipe = topology.graph.get("recipe") or {}
        if "seed" not in recipe:
            raise ScenarioError(
                "the topology was not drawn, so that another seed does not change it; give one of topology.disc, "
                "random_geometric or office, or a function from a seed to a network"
            )
        return Redrawn(dict(recipe))
    if not callable(topology):
        raise ScenarioError(f"topology is {topology!r:.80}; it must be a network, or a function from a seed to one")
    return topology


def paired_differences(
    table: Any, y: str = "delivery_ratio", by: str = "protocol", baseline: Any = None, x: str | None = None
) -> pd.DataFrame:
    """What each value of ``by`` has more of ``y`` than ``baseline`` (its first value), pair by pair.

    A pair is two runs that differ in ``by`` alone: the same seed, the same network, the same of all else. Columns: by,
    x (if given), difference (mean), low, high (its 95 % interval), pairs, and unpaired_low, unpaired_high: the interval
    (Welch's) that one would have without pairs. Runs in which ``y`` has no value take their partner with them. Raises
    ParameterError for a ``by`` that was not varied and a baseline that is none of its values.

    >>> import workbench as wb
    >>> network = wb.topology.line(3)
    >>> workload = [wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=2, what="TEMP IS 30", every_s=1)]
    >>> scenario = wb.Scenario(network, wb.Flooding(), workload, radio=wb.Radio(loss=0.2), duration_s=10)
    >>> plan = grid({"protocol": [wb.Flooding(), wb.Gossip(forwarding_probability=0.7)]}) * paired_seeds(5)
    >>> table = wb.Sweep(scenario, plan).run(runner=wb.LocalRunner())
    >>> paired_differences(table, "transmissions").columns.tolist()
    ['protocol', 'difference', 'low', 'high', 'pairs', 'unpaired_low', 'unpaired_high']
    """
    import pandas as pd

    frame = _checked_frame(table, y, by, x)
    names = list(dict.fromkeys(frame[by]))
    baseline = names[0] if baseline is None else baseline
    if baseline not in names:
        raise ParameterError(f"baseline is {baseline!r}; it must be one of {', '.join(map(str, names))}")
    others = list(dict.fromkeys(("seed", *(path for path in table.axes if path != by))))
    wide = frame.set_index([by, *others])[y]
    base = wide.loc[baseline]
    rows = []
    for name in names:
        pairs = pd.concat([wide.loc[name], base], axis=1, keys=["one", "base"]).dropna()
        groups: Any = [((), pairs)] if x is None else pairs.groupby(level=x, sort=False)
        for at, group in groups if name != baseline else ():
            place = () if x is None else (at,)
            rows.append((name, *place, *_compared(group["one"].tolist(), group["base"].tolist())))
    told = ["difference", "low", "high", "pairs", "unpaired_low", "unpaired_high"]
    return pd.DataFrame(rows, columns=[by, *([] if x is None else [x]), *told])


def _compared(one: list[float], base: list[float]) -> tuple[float, ...]:
    mean, half, pairs = interval([value - other for value, other in zip(one, base, strict=True)])
    apart = _welch_half(one, base)
    return mean, mean - half, mean + half, pairs, mean - apart, mean + apart


def _welch_half(one: list[float], base: list[float]) -> float:
    """Half of Welch's 95 % interval of the difference of two means of as many independent runs each."""
    from scipy.stats import t

    count = len(one)
    if count < 2:
        return float("nan")
    shares = [_variance(values_) / count for values_ in (one, base)]
    total = sum(shares)
    if total == 0:
        return 0.0
    freedom = total**2 / sum(share**2 / (count - 1) for share in shares)
    return float(t.ppf(0.975, freedom)) * total**0.5


def _variance(found: list[float]) -> float:
    mean = sum(found) / len(found)
    return sum((value - mean) ** 2 for value in found) / (len(found) - 1)


def _checked_frame(table: Any, y: str, by: str, x: str | None) -> pd.DataFrame:
    frame = table.to_pandas()
    for name in (by,) if x is None else (by, x):
        if name not in table.axes:
            told = ", ".join(table.axes)
            raise ParameterError(f"{name!r} was not varied in this sweep{meant(name, table.axes)}; varied were {told}")
    if by == x:
        raise ParameterError(f"x and by are both {x!r}; they must be different")
    if y not in ("wall_s", *table.metrics):
        told = ", ".join(table.metrics)
        raise ParameterError(f"{y!r} is no metric of this sweep{meant(y, table.metrics)}; it has {told}")
    return frame
