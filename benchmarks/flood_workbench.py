"""The flood on the workbench's engines: real frames, a radio with energy, and metrics or a whole trace.

The scenario is made beforehand, as for the runs of a sweep; only the time of `Scenario.run` counts. The compiled engine
plays one flood first, to load its code.
"""

from functools import partial

from contender import Contender
from networks import Network
from timing import Job

from workbench import Flooding, Radio, Scenario, publish, topology
from workbench.errors import ScenarioError

CSMA = Radio(csma=True, collisions=True)
_IDEAL = "a transmission", "jitter, airtime, frames, energy"
_CSMA = "3 a transmission, or more", "CSMA/CA, collisions, half duplex, frames, energy"


def scenario(network: Network, floods: int, source: int = 0, radio: Radio | None = None) -> Scenario:
    """Return a scenario in which the node ``source`` floods a publication each second, ``floods`` times.

    ``radio`` None: `Radio` with its defaults.
    """
    workload = [publish(at=source, what="TEMP IS 26", every_s=1)]
    return Scenario(network.graph, Flooding(), workload, radio or Radio(), duration_s=floods)


def receptions(scenario: Scenario, record: str = "metrics", engine: str = "reference") -> int:
    """Play a scenario, and return the number of frames received."""
    return int(scenario.run(engine=engine, record=record).metrics["receptions"])


def refusal(scenario: Scenario) -> str:
    """Return the reason why the fast engine refuses a scenario, or ""."""
    try:
        scenario.run(engine="fast", record="metrics")
    except ScenarioError as reason:
        return str(reason)
    return ""


def _contender(
    name: str, event: str, models: str, count: int, radio: Radio | None, engine: str, record: str
) -> Contender:
    def prepare(network: Network, floods: int) -> Job:
        if engine == "fast":
            receptions(scenario(network, 1, radio=radio), record, engine)
        return partial(receptions, scenario(network, floods, radio=radio), record, engine)

    def absent() -> str:
        if engine == "reference":
            return ""
        return refusal(scenario(Network("pair", topology.grid(1, 2), 10.0), 1, radio=radio))

    return Contender(name, event, models, prepare, count, absent=absent)


FAST = _contender("workbench, fast", *_IDEAL, 20_000_000, None, "fast", "metrics")
FAST_TRACE = _contender("workbench, fast, trace", *_IDEAL, 1_000_000, None, "fast", "trace")
REFERENCE = _contender("workbench, reference", *_IDEAL, 200_000, None, "reference", "metrics")
REFERENCE_TRACE = _contender("workbench, reference, trace", *_IDEAL, 200_000, None, "reference", "trace")
CSMA_FAST = _contender("workbench, fast", *_CSMA, 4_000_000, CSMA, "fast", "metrics")
CSMA_REFERENCE = _contender("workbench, reference", *_CSMA, 100_000, CSMA, "reference", "metrics")
