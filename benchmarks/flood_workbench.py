"""The flood on the workbench's reference engine: real frames, a radio with energy, and metrics or a whole trace."""

from networks import Network

from workbench import Flooding, Scenario, publish


def scenario(network: Network, floods: int, source: int = 0) -> Scenario:
    """The flood as a scenario."""
    workload = [publish(at=source, what="TEMP IS 26", every_s=1)]
    return Scenario(network.graph, Flooding(), workload, duration_s=floods)


def flood(scenario: Scenario, record: str) -> int:
    """Play the flood; returns how many frames were received."""
    return int(scenario.run(engine="reference", record=record).metrics["receptions"])
