"""Live sources: a run on motes, and subscriptions of nodes on this machine's network."""

import pytest

import workbench as wb
from tests.until import PATIENCE_S, wait_until
from workbench.motes import rack
from workbench.pipelines import captured, follow, stream


@pytest.mark.skipif(rack.missing() is not None, reason=str(rack.missing()))
def test_a_run_on_motes_is_captured_while_it_runs(tmp_path):
    items = [wb.subscribe(0, "TEMP GE 25"), wb.publish(2, "TEMP IS 26, APP IS Temperature", every_s=0.3, start_s=0.3)]
    scenario = wb.Scenario(wb.topology.line(3), wb.Flooding(), items, duration_s=7)
    run = scenario.run(on=wb.motes.virtual(speed=2))
    running_stream = run.stream(tmp_path, regions={2: "far"})
    wait_until(lambda: running_stream.rows > 2)
    assert run.is_running
    with follow(running_stream, every_s=1, late_s=0.5) as following:
        assert following.wait(PATIENCE_S)
    assert running_stream.wait() and not run.is_running
    delivered = [row for row in run.trace.to_pylist() if row["event"] == "delivered"]
    table = captured(tmp_path).to_pandas()
    assert len(table) == len(delivered) == following.readings
    assert {*zip(table["node"], table["sink"], table["region"], table["key"], table["value"], strict=True)} == {
        (2, 0, "far", "TEMP", 26.0)
    }
    assert (table["arrived_s"] > table["time_s"] - 1).all()  # The times are from the clocks of two motes.
    published = {row["time_us"] / 1e6 for row in run.trace.to_pylist() if row["event"] == "published"}
    # A delivery is sometimes reported before its publication, which another mote reports.
    assert table["time_s"].isin(published).any()
    assert (table["time_s"].isin(published) | (table["time_s"] == table["arrived_s"])).all()


def test_rows_of_a_run_on_motes_are_returned_once_and_in_order_of_arrival():
    from workbench.motes.live.recorder import LiveRecorder

    recorder, seen = LiveRecorder(), []
    for i in range(12_000):
        recorder.append((12_000 - i, 0, "sent", -1, "flood", 0, i, 10, 0, ""))
        recorder.flush_if_large()
        if i % 1700 == 0:
            seen += recorder.rows_since(len(seen)).column("sequence").to_pylist()
    seen += recorder.rows_since(len(seen)).column("sequence").to_pylist()
    assert seen == list(range(12_000))
    assert len(recorder.rows_since(12_000)) == 0


def test_a_subscription_on_the_network_is_captured_until_it_ends(tmp_path):
    with wb.dps_node() as publisher, wb.dps_node() as subscriber:
        subscription = subscriber.subscribe("house/+/temp", expired=True)
        publisher.link(str(subscriber), timeout_s=PATIENCE_S)
        running_stream = stream(subscription, tmp_path)
        kitchen = publisher.publish("house/kitchen/temp", "21.5", ttl_s=50)
        kitchen.publish("22.5", ttl_s=50)
        kitchen.publish("hot", ttl_s=50)
        publisher.publish("house/cellar/temp", "9")
        kitchen.expire()
        wait_until(lambda: running_stream.rows == 3 and running_stream.refused)
        subscription.unsubscribe()
        assert running_stream.wait(PATIENCE_S)
    table = captured(tmp_path).to_pandas().sort_values(["region", "sequence"])
    rows = table[["region", "key", "value", "sequence"]].values.tolist()
    assert rows == [
        ["house/cellar", "temp", 9.0, 1],
        ["house/kitchen", "temp", 21.5, 1],
        ["house/kitchen", "temp", 22.5, 2],
    ]
    assert running_stream.refused == {"value is not a finite number": 1}
    assert table["node"].nunique() == 2


def test_a_mesh_of_processes_is_captured_until_it_is_closed(tmp_path):
    with wb.dps_mesh(2) as mesh:
        mesh.subscribe(0, "house/+/temp")
        mesh.subscribe(1, "house/kitchen/temp")
        mesh.settle()
        running_stream = stream(mesh, tmp_path)
        for topic, text in (("house/kitchen/temp", "21.5"), ("house/cellar/temp", "9"), ("house/cellar/temp", "10")):
            assert not mesh.publish(1, topic, text).missing
        wait_until(lambda: running_stream.rows == 4)
    assert running_stream.wait(PATIENCE_S)
    table = captured(tmp_path).to_pandas()
    assert sorted(table[["sink", "region", "value"]].values.tolist()) == [
        [0, "house/cellar", 9.0],
        [0, "house/cellar", 10.0],
        [0, "house/kitchen", 21.5],
        [1, "house/kitchen", 21.5],
    ]
    assert (table["key"] == "temp").all()


def test_a_stream_of_a_node_that_is_closed_ends(tmp_path):
    with wb.dps_node() as node:
        running_stream = stream(node.subscribe("a/b"), tmp_path)
        node.publish("a/b", "1")
        wait_until(lambda: running_stream.rows == 1)
    assert running_stream.wait(PATIENCE_S)
    assert running_stream.lost == 0
