"""The stack of an emulated Cortex-M3: the host learns that it reached its guard, or that it overflowed."""

import contextlib

import pytest

import workbench as wb
from tests.until import wait_until
from workbench.errors import LinkError
from workbench.motes import CORTEX_M3, in_c, messages
from workbench.motes.mote import Mote
from workbench.motes.processes import CortexM3
from workbench.motes.session import protocol_on_a_mote

missing = in_c.missing(CORTEX_M3)
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

PROTOCOL = wb.Flooding(max_events=20)


@contextlib.contextmanager
def opened(stack_B):
    """Yield a mote with a stack of ``stack_B`` bytes, and the list of its complaints."""
    complaints = []

    def collect(kind, value):
        if kind == "event" and value[1] == messages.FIRST_OWN_EVENT + messages.OWN_EVENTS.index("told"):
            complaints.append(value[8])

    process = CortexM3(in_c.program(CORTEX_M3, PROTOCOL, stack_B=stack_B))
    try:
        with Mote(process.url, collect) as mote:
            yield mote, complaints
    finally:
        process.kill()


def work(mote):
    """Let the node subscribe and publish; return the greatest depth of its stack in bytes."""
    mote.configure(1, protocol_on_a_mote(PROTOCOL), 1)
    mote.subscribe(wb.parse("TEMP GE 25"))
    mote.publish(wb.parse("TEMP IS 26"))
    whole = in_c.footprint(PROTOCOL, in_c.LONG_BODY)
    return mote.allocated_B() - (whole.ram_B - whole.stack_B)


@pytest.fixture(scope="module")
def depth_B():
    """Return the depth, in bytes, of a stack that has enough room."""
    with opened(in_c.STACK_B) as (mote, complaints):
        depth_B = work(mote)
        mote.command(messages.PING)
        assert complaints == []
    assert 0 < depth_B < in_c.STACK_B - in_c.STACK_GUARD_B
    return depth_B


def test_stack_that_reaches_its_guard_is_reported_once_to_each_host_and_the_mote_goes_on(depth_B):
    with opened((depth_B + in_c.STACK_GUARD_B // 2) // 8 * 8) as (mote, complaints):
        work(mote)
        wait_until(lambda: complaints)
        assert mote.publish(wb.parse("TEMP IS 27")) == 1
        assert complaints == ["the stack reached its guard"]
        assert not mote.is_lost


def test_stack_that_overflows_restarts_the_mote_which_reports_why(depth_B):
    with opened((depth_B - 64) // 8 * 8) as (mote, complaints):
        with contextlib.suppress(LinkError):
            work(mote)
        wait_until(lambda: complaints)
        assert set(complaints) == {"restarted: the stack overflowed"}
        assert mote.greeting.boot >= 1


def test_mote_that_is_reset_has_nothing_to_report():
    with opened(in_c.STACK_B) as (mote, complaints):
        mote.reset()
        wait_until(lambda: mote.greeting.boot == 1 and not mote.is_lost)
        work(mote)
        mote.command(messages.PING)
        assert complaints == []


def test_run_in_lockstep_warns_that_the_stack_reached_its_guard(depth_B, monkeypatch):
    monkeypatch.setattr(in_c, "STACK_B", (depth_B + in_c.STACK_GUARD_B // 2) // 8 * 8)
    workload = [wb.subscribe(0, "TEMP GE 25"), wb.publish(0, "TEMP IS 26", start_s=0.5)]
    scenario = wb.Scenario(wb.topology.line(2), PROTOCOL, workload, duration_s=2)
    with pytest.warns(RuntimeWarning, match="node 0: the mote reports: the stack reached its guard"):
        run = scenario.run(on=wb.motes.virtual(lockstep=True, kind={0: CORTEX_M3}))
    assert run.trace_hash == scenario.run(engine="reference").trace_hash
