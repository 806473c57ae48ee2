"""The metrics of a run as a pandas series that suggests the right name if a name is unknown."""

from __future__ import annotations

from typing import Any

import pandas as pd

from workbench.errors import ParameterError
from workbench.sim.metrics.shown import shown_metrics
from workbench.suggestion import meant


class UnknownMetric(ParameterError, KeyError):
    """The error for an unknown metric; also a KeyError, so that code that catches a failed look-up works."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes.


class Metrics(pd.Series):
    """The metrics of a run, by name. Slices and results of arithmetic are plain pandas series.

    The text form omits metrics that do not apply to the protocol, such as the coverage; ``metrics["coverage"]`` is NaN
    then.
    """

    @property
    def _constructor(self) -> type[pd.Series]:
        return pd.Series

    def __repr__(self) -> str:
        return shown_metrics(self).to_string(float_format="{:,.6g}".format)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str) and key not in self.index:
            raise UnknownMetric(_describe_unknown(key, list(self.index)))
        return super().__getitem__(key)

    def __getattr__(self, name: str) -> Any:
        # Only called when ordinary look-up fails: metrics read as attributes (metrics.delivery_ratio).
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_"):
                raise
            raise AttributeError(_describe_unknown(name, list(self.index))) from None


def _describe_unknown(name: str, known: list[str]) -> str:
    hint = meant(name, known)
    return f"this run lacks the metric {name!r}{hint}" + ("" if hint else f"; it has {', '.join(known)}")
