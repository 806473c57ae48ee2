"""The charge that each node's radio uses, by state, and how long a battery lasts: ``run.energy()``.

Charge is current times time, mC = mA * s. A radio that sends takes ``tx_mA`` of `Radio`, a radio that is on and does
not send takes ``rx_mA``, whether a frame is in the air or not; a failed node takes nothing. With low-power listening
(``wake_interval_ms`` of `Radio`), a radio sleeps most of the time and takes ``sleep_mA`` then. Processor, sensors and
memory are not counted, except in presets whose source states the current of the whole chip.

Energest, the energy accounting of Contiki-NG, has five states. TRANSMIT is ``transmit`` and ``acknowledge`` here,
LISTEN is all other states except ``sleep`` and ``off``. CPU, LPM and DEEP_LPM are states of the processor, which is not
simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import ParameterError, ScenarioError
from workbench.extensions import extensible
from workbench.keywords import checked
from workbench.sim.metrics.charge import charge_mC, jain
from workbench.sim.run import Run
from workbench.sim.state_times import STATES

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Energy", "energy"]
TYPICAL_BATTERY_mAh = 2500.0  # two AA cells in series
_SECONDS_PER_DAY = 86_400
_mC_PER_mAh = 3600


def energy(run: Run, battery_mAh: float = TYPICAL_BATTERY_mAh) -> Energy:
    """Return the charge that each node's radio used, by state, and the lifetime of a battery of ``battery_mAh``.

    Raises ScenarioError if the scenario's radio does not state its currents (``wb.radios`` has radios that do), and
    ParameterError if ``battery_mAh`` is not a positive number.
    """
    if isinstance(battery_mAh, bool) or not isinstance(battery_mAh, (int, float)) or not 0 < battery_mAh < 1e12:
        raise ParameterError(f"energy: battery_mAh is {battery_mAh!r:.60}; it must be a positive number of mAh")
    radio = run.scenario.radio
    if run.radio_states_us is None:
        cause = (
            "states no currents" if not radio.tx_mA else "states its currents, but the run did not record its states"
        )
        raise ScenarioError(
            f"the radio of this run {cause}, so its charge is unknown; simulate the scenario with a radio such as "
            "wb.radios.cc2420(), or with Radio(tx_mA=..., rx_mA=...)"
        )
    return Energy(run, float(battery_mAh))


@extensible
@checked
@dataclass(frozen=True, repr=False)
class Energy:
    """The charge that the radios of a run used, for each node and, in ``summary``, for the whole network."""

    run: Run
    battery_mAh: float

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """The addresses of the nodes, ascending."""
        return tuple(sorted(self.run.scenario.topology.nodes))

    @cached_property
    def states_s(self) -> pd.DataFrame:
        """Seconds that each node's radio was in each state: a row for each node, a column for each state.

        `workbench.sim.state_times` describes the states.
        """
        import pandas as pd

        assert self.run.radio_states_us is not None
        return pd.DataFrame(self.run.radio_states_us / 1e6, pd.Index(self.nodes, name="node"), list(STATES))

    @cached_property
    def charge_mC(self) -> pd.DataFrame:
        """The charge that each node's radio used in each state, in mC: a row for each node, a column for each state."""
        import pandas as pd

        assert self.run.radio_states_us is not None
        charge = charge_mC(self.run.scenario.radio, self.run.radio_states_us)
        return pd.DataFrame(charge, self.states_s.index, list(STATES))

    @cached_property
    def lifetime_days(self) -> pd.Series:
        """Days until each node's battery is empty, if its radio keeps the mean current of the run."""
        mean_mA = self.charge_mC.sum(axis=1) / self.run.scenario.duration_s
        with np.errstate(divide="ignore"):
            days = self.battery_mAh * _mC_PER_mAh / mean_mA / _SECONDS_PER_DAY
        return days.rename("lifetime_days")

    @cached_property
    def summary(self) -> pd.Series:
        """Summary statistics of the whole network, by name.

        ``charge_mC_<state>``: charge used in one state; ``charge_mC``: charge used in all states; ``energy_J``: the
        energy of this charge; ``TRANSMIT_s``, ``LISTEN_s``: Energest's times. All these are means over the nodes.
        ``charge_mC_max``: largest charge of a node; ``charge_jain``: Jain's index of the nodes' charges, from 1/n (one
        node takes all) to 1 (all take the same); ``duty_cycle``: the share of time that radios are awake;
        ``lifetime_first_days``, ``lifetime_median_days``: days until the battery of the first node is empty, and until
        the batteries of half of the nodes are empty.
        """
        import pandas as pd

        means_mC, means_s = self.charge_mC.mean(), self.states_s.mean()
        total_mC = self.charge_mC.sum(axis=1)
        sending = ["transmit", "acknowledge"]
        return pd.Series(
            {
                **{f"charge_mC_{state}": means_mC[state] for state in STATES if state != "off"},
                "charge_mC": total_mC.mean(),
                "charge_mC_max": total_mC.max(),
                "energy_J": total_mC.mean() * self.run.scenario.radio.supply_V / 1000,
                "charge_jain": jain(total_mC.to_numpy()),
                "TRANSMIT_s": means_s[sending].sum(),
                "LISTEN_s": means_s.drop([*sending, "sleep", "off"]).sum(),
                "duty_cycle": means_s.drop(["sleep", "off"]).sum() / self.run.scenario.duration_s,
                "lifetime_first_days": self.lifetime_days.min(),
                "lifetime_median_days": self.lifetime_days.median(),
            },
            name="energy",
        )

    def __repr__(self) -> str:
        summary = self.summary
        return (
            f"Energy({len(self.nodes)} nodes: mean {summary['charge_mC']:,.4g} mC, of it idle listening "
            f"{summary['charge_mC_idle']:,.4g} mC; the first battery of {self.battery_mAh:g} mAh is empty after "
            f"{summary['lifetime_first_days']:,.3g} days)"
        )
