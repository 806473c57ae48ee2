"""A run: what came of a scenario. Its trace, its metrics, and ways to look at it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workbench.errors import ScenarioError
from workbench.keywords import UnknownName, checked
from workbench.sim import metrics as metrics_module
from workbench.sim import trace as trace_module

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.explain import Explanation
    from workbench.pipelines.live.bridge import Stream


@checked
class Run:
    """What came of a scenario: ``scenario``, ``engine``, ``trace``, ``metrics``; ``show()`` and the exports draw it.

    ``engine`` is "reference" or "fast"; ``engine_reason`` says why it was not the fast one. ``kinds``: what each node
    ran on, where some ran on motes.
    """

    kinds: Mapping[int, str] = {}

    def __init__(self, scenario: Any, engine: str, recorder: Any, engine_reason: str = "") -> None:
        self.scenario = scenario
        self.engine = engine
        self.engine_reason = engine_reason
        self._recorder = recorder

    @property
    def has_trace(self) -> bool:
        """Whether the run was recorded in full."""
        return not self._recorder.metrics_only

    @cached_property
    def _rows(self) -> pa.Table:
        return self._recorder.table()

    @property
    def trace(self) -> pa.Table:
        """One row per thing that happened; the columns are described in `workbench.sim.trace`."""
        if not self.has_trace:
            raise ScenarioError('this run kept no trace; run the scenario with record="trace" to have one')
        return self._rows

    @cached_property
    def trace_hash(self) -> str:
        """sha256 of the trace: equal wherever the same scenario ran."""
        return trace_module.digest(self.trace)

    @cached_property
    def metrics(self) -> pd.Series:
        """Delivery, latency, cost and losses as numbers; each is described in `workbench.sim.metrics`."""
        if self._recorder.metrics_only:
            counts, sizes = self._recorder.tally()
        else:
            counts, sizes = trace_module.tally(self._rows)
        return metrics_module.compute(self.scenario, self._rows, counts, sizes)

    def frames(
        self, rows: Iterable[int] | None = None, until_s: float | None = None, most: int | None = None
    ) -> pa.Table:
        """The frames that were sent, with their bytes; the columns are described in `workbench.analysis.frames`.

        A trace has no bytes, so the scenario is played once more, as far as is needed. ``rows``: of these rows of the
        trace alone. ``until_s``: those whose airtime has ended by then. ``most``: the first so many. ScenarioError if
        the run cannot be played again, or comes out otherwise.
        """
        from workbench.analysis import frames

        return frames.frames(self, rows, until_s, most)

    def explain(self) -> Explanation:
        """Return why little or nothing was delivered, as text; the scenario or the rows of the run prove each line."""
        from workbench.analysis import explain

        return explain.explain(self)

    def stream(self, out: str | Path, **settings: Any) -> Stream:
        """Capture the readings that were delivered in a folder, in the background, for others to follow.

        ``settings``: those of `wb.pipelines.stream`.
        """
        from workbench import pipelines

        return pipelines.stream(self, out, **settings)

    def save(self, folder: str | Path) -> Path:
        """Write scenario.json, metrics.json, record.json and (if there is a trace) trace.parquet into a folder.

        record.json says which versions and engine made them, and with which hashes; `wb.reproduce` takes the folder.
        Returns the folder.
        """
        from workbench.records import record, record_of

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "scenario.json").write_text(self.scenario.to_json() + "\n")
        (folder / "metrics.json").write_text(self.metrics.to_json(indent=2) + "\n")
        (folder / "record.json").write_text(json.dumps(record_of(self), indent=2) + "\n")
        if self.has_trace:
            record.write_trace(self, folder / "trace.parquet")
        return folder

    # Views. Imported when they are used: a sweep on a worker never draws.

    def show(self) -> Any:
        """The run to watch: network, gradients, packets, timeline, with play and scrub."""
        from workbench import views

        return views.show(self)

    def figure(self, time_s: float | None = None, dark: bool = False, layers: Iterable[str] | None = None) -> Any:
        """The network at a time (None: the end) as a static drawing with ``to_svg()`` and ``to_png()``.

        dark: for a dark ground. layers: the names of those to draw, as the player has them; None: those on at first.
        """
        from workbench import views

        return views.network_drawing(self, time_s, dark=dark, layers=None if layers is None else tuple(layers))

    def save_html(self, path: str | Path, extra: tuple = ()) -> Path:
        """Write what ``show()`` shows as one page that needs neither kernel nor network."""
        from workbench import views

        return views.save_html(self, path, extra)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from workbench import views

        return views.bundle(self)

    def __getattr__(self, name: str) -> Any:
        # Only called when ordinary look-up fails.
        if name in metrics_module.COMMON:
            raise AttributeError(f"Run has no attribute {name!r}; it is a metric: run.metrics[{name!r}]")
        if name.startswith("_") or hasattr(type(self), name):
            return object.__getattribute__(self, name)
        raise UnknownName("Run", name, dir(self))

    def __repr__(self) -> str:
        m = self.metrics
        delivery = f"delivery ratio {m['delivery_ratio']:.3f}" if m["expected"] else "no reading expected"
        return f"Run({self.scenario!r}, engine={self.engine!r}: {delivery}, {m['transmissions']:.0f} transmissions)"
