"""Paired seeds: plans that compare protocols on the same networks and workloads, as far as possible.

Theory of operation
    Runs of two protocols with the same seed share their network and workload, so their difference varies less than each
    result. A plan crosses the compared protocols with the seeds. `paired_differences` computes the difference for each
    seed, and the interval of the mean of these differences.

Paired aspects of two runs
    the network     if ``topology`` generates one for each seed; without it all runs have the base scenario's network
    the workload    if ``workload`` makes one for each seed; staggered publications always begin at the same times
    losses          by link and time: frames that begin on the same link in the same microsecond have the same outcome
    backoffs        by number: the n-th frame of a node waits equally long if the radio settings are equal

Differences that remain
    Protocols send different frames at different times. After the first frame that only one of them sends, the two runs
    diverge and lose different frames. The random numbers of the protocols (whether to forward, a random code) are the
    same, but are used for different decisions. Runs on different networks or with different workloads are not paired.
    Pairing never makes an interval wrong: if it does not help, the interval is as wide as without pairs.
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
_MOST_CACHED = 64  # networks and workloads


class PairedSeeds(Design):
    """A plan of ``count`` consecutive seeds from ``first``, with values of other parameters computed from each seed.

    ``makers`` is {path of a parameter: function from a seed to its value}.
    """

    def __init__(self, count: int, first: int, makers: dict[str, Callable[[int], Any]]) -> None:
        self.paths = ("seed", *makers)
        self._count, self._first, self._makers = count, first, makers
        self._cached = lru_cache(maxsize=_MOST_CACHED)(self._make_value)

    def _make_value(self, path: str, seed: int) -> Any:
        value = self._makers[path](seed)
        return values.normalize_topology(value) if path == "topology" else value

    def __getstate__(self) -> dict[str, Any]:
        return {"count": self._count, "first": self._first, "makers": user_code.pickle_functions(self._makers)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**{**state, "makers": pickle.loads(state["makers"])})  # type: ignore[misc]

    def __len__(self) -> int:
        return self._count

    def overrides(self, number: int) -> dict[str, Any]:
        """Return {path of a varied parameter: its value} for point ``number``."""
        seed = self._first + number
        return {"seed": seed, **{path: self._cached(path, seed) for path in self._makers}}

    def labels(self, number: int) -> dict[str, Any]:
        """Return {path of a varied parameter: label of its value in tables} for point ``number``."""
        seed = self._first + number
        return {"seed": seed, **{path: f"{path} {seed}" for path in self._makers}}

    def probes(self) -> Sequence[int]:
        """Return the indices of the points to check before a sweep runs.

        These are only about ten points: to build a point, a random network may have to be generated, which is slow.
        """
        return evenly(self._count, PROBES // 10)

    def text(self) -> str:
        """Return a short description of the design, such as "seed, topology (30)"."""
        return f"{', '.join(self.paths)} ({self._count})"


class RedrawnNetwork:
    """A function from a seed to a random network, drawn with this seed.

    ``recipe`` has the network's generator ("kind") and its arguments.
    """

    def __init__(self, recipe: dict[str, Any]) -> None:
        self._recipe = recipe

    def __call__(self, seed: int) -> nx.DiGraph:
        return topologies.from_dict({"recipe": {**self._recipe, "seed": seed}})


def seeds(count: int, first: int = 1) -> Design:
    """Return a plan of ``count`` consecutive seeds, from ``first``.

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
    """Return a plan of ``count`` seeds, each with its own network and workload, to be crossed with other plans.

    ``topology`` is a random network (`topology.disc`, `random_geometric`, `office`), which is generated again for
    each seed, or a function from a seed to a network. ``workload`` is a function from a seed to a workload. Without
    ``topology`` all seeds use the network of the base scenario, and without ``workload`` its workload. Raises
    ScenarioError for a network that is not random.

    Runs with the same seed have the same network and workload, and the same times of staggered publications. If frames
    of two such runs begin on the same link at the same time, both are lost or both arrive. The runs diverge after the
    first frame that only one protocol sends.

    64 networks are cached. With more seeds, write the seeds as the first factor, as in
    ``paired_seeds(1000, network) * {"protocol": [...]}``. Then the points of a seed follow each other and share a
    network. In the other order each point generates its network again.

    >>> import workbench as wb
    >>> network = wb.topology.disc(20, 60, 60)
    >>> plan = grid({"protocol": [wb.Flooding(), wb.Gossip()]}) * paired_seeds(30, topology=network)
    >>> len(plan), plan.overrides(4)["topology"] is plan.overrides(34)["topology"]
    (60, True)
    """
    _check_count(count, first)
    makers: dict[str, Callable[[int], Any]] = {}
    if topology is not None:
        makers["topology"] = _make_network_maker(topology)
    if workload is not None:
        if not callable(workload):
            raise ScenarioError(
                f"the argument `workload` is {workload!r:.80}; it must be a function from a seed to a workload"
            )
        makers["workload"] = workload
    return PairedSeeds(count, first, makers)


def _check_count(count: Any, first: Any) -> None:
    if not is_whole(count) or not 1 <= count <= MOST_SEEDS:
        raise ScenarioError(f"the number of seeds is {count!r:.60}; it must be a whole number from 1 to {MOST_SEEDS}")
    if not is_whole(first):
        raise ScenarioError(f"the first seed is {first!r:.60}; it must be a whole number")


def _make_network_maker(topology: Any) -> Callable[[int], nx.DiGraph]:
    if isinstance(topology, nx.Graph):
        recipe = topology.graph.get("recipe") or {}
        if "seed" not in recipe:
            raise ScenarioError(
                "the topology is not random, so a seed does not change it; it must be from topology.disc, "
                "random_geometric or office, or a function from a seed to a network"
            )
        return RedrawnNetwork(dict(recipe))
    if not callable(topology):
        raise ScenarioError(
            f"the argument `topology` is {topology!r:.80}; "
            "it must be a random network or a function from a seed to a network"
        )
    return topology


def paired_differences(
    table: Any, y: str = "delivery_ratio", by: str = "protocol", baseline: Any = None, x: str | None = None
) -> pd.DataFrame:
    """Return the mean difference of the metric ``y`` between each value of ``by`` and the baseline, over pairs of runs.

    A difference is the metric of the value minus that of the baseline. ``baseline`` is a value of ``by``, by default
    the first. A pair is two runs that differ only in ``by``. Columns: by, x (if given), difference (mean), low, high
    (its 95 % interval), pairs (their number), and unpaired_low, unpaired_high: the interval (Welch's) without pairing.
    With ``x`` there is a row for each value of the parameter ``x``. A pair is left out if ``y`` is NaN in one of its
    runs. Raises ParameterError for a ``by`` that was not varied and for an unknown baseline.

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

    runs = _make_checked_frame(table, y, by, x)
    by_values = list(dict.fromkeys(runs[by]))
    baseline = by_values[0] if baseline is None else baseline
    if baseline not in by_values:
        raise ParameterError(
            f"the argument `baseline` is {baseline!r}; it must be one of {', '.join(map(str, by_values))}"
        )
    other_axes = list(dict.fromkeys(("seed", *(path for path in table.axes if path != by))))
    metric_values = runs.set_index([by, *other_axes])[y]
    base_values = metric_values.loc[baseline]
    difference_rows = []
    for by_value in by_values:
        pairs = pd.concat([metric_values.loc[by_value], base_values], axis=1, keys=["one", "base"]).dropna()
        groups: Any = [((), pairs)] if x is None else pairs.groupby(level=x, sort=False)
        for x_value, group in groups if by_value != baseline else ():
            x_cells = () if x is None else (x_value,)
            difference_rows.append(
                (by_value, *x_cells, *_compare_groups(group["one"].tolist(), group["base"].tolist()))
            )
    columns = ["difference", "low", "high", "pairs", "unpaired_low", "unpaired_high"]
    return pd.DataFrame(difference_rows, columns=[by, *([] if x is None else [x]), *columns])


def _compare_groups(group: list[float], base: list[float]) -> tuple[float, ...]:
    mean, half_width, pairs = interval([value - base_value for value, base_value in zip(group, base, strict=True)])
    unpaired_half_width = _welch_half_width(group, base)
    return mean, mean - half_width, mean + half_width, pairs, mean - unpaired_half_width, mean + unpaired_half_width


def _welch_half_width(group: list[float], base: list[float]) -> float:
    """Return the half-width of Welch's 95 % interval for the difference of the means of two equally large groups.

    ``group`` and ``base`` are the values of the two groups.
    """
    from scipy.stats import t

    run_count = len(group)
    if run_count < 2:
        return float("nan")
    mean_variances = [_variance(group_values) / run_count for group_values in (group, base)]
    variance_sum = sum(mean_variances)
    if variance_sum == 0:
        return 0.0
    freedom = variance_sum**2 / sum(mean_variance**2 / (run_count - 1) for mean_variance in mean_variances)
    return float(t.ppf(0.975, freedom)) * variance_sum**0.5


def _variance(numbers: list[float]) -> float:
    mean = sum(numbers) / len(numbers)
    return sum((value - mean) ** 2 for value in numbers) / (len(numbers) - 1)


def _make_checked_frame(table: Any, y: str, by: str, x: str | None) -> pd.DataFrame:
    runs = table.to_pandas()
    for axis_path in (by,) if x is None else (by, x):
        if axis_path not in table.axes:
            names_text = ", ".join(table.axes)
            raise ParameterError(
                f"{axis_path!r} was not varied in this sweep{meant(axis_path, table.axes)}; its axes are {names_text}"
            )
    if by == x:
        raise ParameterError(f"the arguments `x` and `by` are both {x!r}; they must be different")
    if y not in ("wall_s", *table.metrics):
        names_text = ", ".join(table.metrics)
        raise ParameterError(
            f"{y!r} is not a metric of this sweep{meant(y, table.metrics)}; its metrics are {names_text}"
        )
    return runs
