"""A run: the result of a scenario, with its trace, its metrics, and ways to display them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from workbench.errors import ScenarioError
from workbench.extensions import extensible
from workbench.keywords import checked, refuse_unknown
from workbench.sim import metrics as metrics_module
from workbench.sim import trace as trace_module

if TYPE_CHECKING:
    import pandas as pd


@extensible
@checked
class Run:
    """The result of running a scenario: its ``trace`` and ``metrics``, with methods to display and export it.

    ``engine`` is "reference" or "fast"; ``engine_reason`` explains why the fast engine was not used. ``kinds``: for
    runs on motes, {address of the node: kind of mote}.
    """

    kinds: Mapping[int, str] = {}

    def __init__(self, scenario: Any, engine: str, recorder: Any, engine_reason: str = "") -> None:
        self.scenario = scenario
        self.engine = engine
        self.engine_reason = engine_reason
        self._recorder = recorder

    @property
    def has_trace(self) -> bool:
        """True if the run has a full trace."""
        return not self._recorder.metrics_only

    @cached_property
    def _rows(self) -> pa.Table:
        return self._recorder.table()

    @property
    def radio_states_us(self) -> np.ndarray | None:
        """The time in µs that each radio spent in each state, int64 (nodes, states); None without `Radio.tx_mA`.

        Nodes are in ascending order of their addresses; `workbench.sim.state_times` describes the states.
        """
        states_us: np.ndarray | None = self._recorder.radio_states_us
        return states_us

    @property
    def trace(self) -> pa.Table:
        """The table with one row per event; `workbench.sim.trace` describes the columns."""
        if not self.has_trace:
            raise ScenarioError('this run has no trace; run the scenario with record="trace" to record one')
        return self._rows

    @cached_property
    def trace_hash(self) -> str:
        """The SHA-256 digest of the trace; it is equal for all runs of the same scenario."""
        return trace_module.digest(self.trace)

    @cached_property
    def metrics(self) -> pd.Series:
        """Delivery, latency, cost and losses as numbers; `workbench.sim.metrics` describes each."""
        if self._recorder.metrics_only:
            counts, sizes = self._recorder.tally()
        else:
            counts, sizes = trace_module.tally(self._rows)
        return metrics_module.compute(self.scenario, self._rows, counts, sizes, self.radio_states_us)

    if not TYPE_CHECKING:  # otherwise the type checker would accept any name

        def __getattr__(self, name: str) -> Any:
            if name in metrics_module.COMMON:
                raise AttributeError(f"Run has no attribute {name!r}; it is a metric: run.metrics[{name!r}]")
            return refuse_unknown(self, name)

    def __repr__(self) -> str:
        m = self.metrics
        delivery = f"delivery ratio {m['delivery_ratio']:.3f}" if m["expected"] else "no reading expected"
        return f"Run({self.scenario!r}, engine={self.engine!r}: {delivery}, {m['transmissions']:.0f} transmissions)"
