"""The frames of runs on motes: runs in lockstep can be replayed, live runs cannot."""

import pytest

import workbench as wb
from workbench import motes
from workbench.errors import ScenarioError
from workbench.motes import rack

pytestmark = pytest.mark.skipif(rack.missing() is not None, reason=str(rack.missing()))
SCENARIO = wb.Scenario(
    wb.topology.line(3),
    wb.Flooding(),
    [wb.subscribe(0, "TEMP GE 20"), wb.publish(2, "TEMP IS 26", every_s=1)],
    duration_s=3,
)


def test_frames_in_lockstep_equal_the_simulators():
    on_motes = SCENARIO.run(on=motes.virtual(lockstep=True))
    table = on_motes.frames()
    assert table.num_rows > 3 and table.equals(SCENARIO.run(engine="reference").frames())


def test_live_run_cannot_be_replayed():
    live = SCENARIO.run(on=motes.virtual(speed=10))
    for run in (live, live.so_far()):
        with pytest.raises(ScenarioError, match="a live run on motes cannot be replayed"):
            run.frames()
    assert live.wait(120)
