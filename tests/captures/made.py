"""Captures for tests: of given frames, and of the distinct frames of a scenario."""

from functools import cache

import workbench as wb
from tests.repository import REPOSITORY
from workbench.captures import blocks, ieee802154

GOLDEN = REPOSITORY / "tests" / "golden"
NAMES = sorted(path.name.removesuffix(".scenario.json") for path in GOLDEN.glob("*.scenario.json"))


def write_capture(path, frames):
    """Write (protocol, frame, whether it is a broadcast) of each frame as a packet from node 1 to node 2."""
    with path.open("wb") as file:
        file.write(blocks.section_block([]) + blocks.interface_block(ieee802154.TAP, "test", ""))
        for number, (protocol, frame, broadcast) in enumerate(frames):
            pan = ieee802154.pan_id(protocol)
            mac_frame = ieee802154.data_frame(pan, number, None if broadcast else 2, 1, True, frame)
            data = ieee802154.tap_header(26, None, None) + mac_frame
            file.write(blocks.packet_block(0, number, data, []))
    return path


@cache
def distinct_frames(name, most=None):
    """Return (protocol, frame, whether it is a broadcast) of the distinct ones among the first ``most`` frames."""
    scenario = wb.Scenario.from_json((GOLDEN / f"{name}.scenario.json").read_text())
    rows = scenario.run().frames(most=most).to_pylist()
    frames = dict.fromkeys((row["frame"], row["peer"] == -1) for row in rows)
    return [(scenario.protocol, frame, broadcast) for frame, broadcast in frames]
