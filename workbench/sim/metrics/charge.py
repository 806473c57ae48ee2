"""The charge of a run's radios as metrics: current times time in each state (`workbench.sim.state_times`).

Only runs whose radio states its currents have these metrics. ``run.energy()`` has the charge by node and state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.sim.state_times import STATES


def charges(radio: Any, states_us: np.ndarray | None) -> dict[str, float]:
    """Return the metrics of charge, {name: value}: mean and largest charge of a node in mC, and Jain's index.

    Returns {} if ``states_us`` is None.
    """
    if states_us is None:
        return {}
    total_mC = charge_mC(radio, states_us).sum(axis=1)
    return {
        "charge_mC": float(total_mC.mean()),
        "charge_mC_max": float(total_mC.max()),
        "charge_jain": jain(total_mC),
    }


def charge_mC(radio: Any, states_us: np.ndarray) -> np.ndarray:
    """Return the charge of each node in each state in mC, float64 (nodes, len(STATES)); 1 mA for 1 s is 1 mC."""
    sending = {"transmit": radio.tx_mA, "acknowledge": radio.tx_mA}
    current_mA = dict.fromkeys(STATES, radio.rx_mA) | sending | {"sleep": radio.sleep_mA, "off": 0.0}
    return states_us / 1e6 * np.array([current_mA[state] for state in STATES])


def jain(values: np.ndarray) -> float:
    """Return Jain's fairness index of nonnegative numbers (R. Jain et al., 1984); 1.0 if all are 0."""
    squares = len(values) * float((values**2).sum())
    return float(values.sum()) ** 2 / squares if squares else 1.0
