"""DPS nodes in a notebook: text forms of objects, Tab completion, and names of settings."""

import inspect

import pytest

import workbench as wb
from tests.protocols.dps.peer import run
from workbench.errors import ParameterError
from workbench.protocols.dps import DPS
from workbench.protocols.dps.series import Answer, Arrival
from workbench.protocols.dps.udp import UDPNode
from workbench.protocols.dps.udp.application import DPSSeries, DPSSubscription, ReceivedPublication, payload_text
from workbench.protocols.dps.udp.blocking import BlockingNode, BlockingReceiver, BlockingSeries, BlockingSubscription

OBJECTS = (
    UDPNode,
    DPSSubscription,
    DPSSeries,
    ReceivedPublication,
    BlockingNode,
    BlockingReceiver,
    BlockingSubscription,
    BlockingSeries,
)


def test_objects_have_descriptive_text_forms():
    async def test():
        node = wb.dps_node()
        assert repr(node) == "<DPS node, closed>"
        async with node, wb.dps_node() as publisher:
            subscription = await node.subscribe("a/+", "a/#")
            await publisher.link(node.address)
            assert repr(node) == f"<DPS node at {node}: 1 link, 1 subscription>"
            series = await publisher.publish("a/b", "21.5", acknowledge=True)
            assert repr(series) == f"<series on a/b at {publisher}: 1 published, 0 waiting>"
            publication = await subscription.next()
            assert repr(publication) == f"<publication 1 on a/b: '21.5'; 1 hop, from {publisher}>"
            assert repr(subscription) == f"<subscription to a/+, a/# at {node}: 0 waiting>"
            own = await node.publish("a/c", b"\x00\xff", ttl_s=10)
            await own.expire()
            assert repr(await subscription.next()) == "<publication 1 on a/c: 00ff; from here>"
            assert repr(subscription.protocol_subscription) == "<subscription 0 to 'a/+', 'a/#'>"
            assert repr(own.protocol_series) == "<series on 'a/c', 2 published>"

    run(test())


def test_received_texts_are_shortened_and_printable():
    arrival = Arrival(
        bytes(16), 1, ("a/\x1b[2J", "\udcff" * 300), b"x" * 500, False, False, 0, 3, ("::1", 4, 0, 0), None, None
    )
    text = repr(ReceivedPublication(None, arrival))
    assert text.isprintable() and text.isascii() and len(text) < 250
    assert "3 hops, from [::1]:4" in text and "(500 bytes)" in text
    assert (payload_text(b""), payload_text("ä".encode()), payload_text(b"\xc3"), payload_text(b"\n")) == (
        "''",
        "'ä'",
        "c3",
        "0a",
    )


def test_tab_completes_existing_names():
    async def test():
        async with wb.dps_node() as node:
            subscription = await node.subscribe("a")
            series = await node.publish("a", b"x")
            publication = await subscription.next()
            names = Arrival._fields
            assert {*names, "way", "text", "acknowledge"} <= {*dir(publication)}
            assert all(getattr(publication, name) == getattr(publication.arrival, name) for name in names)
            assert {"topics", "lost", "waiting", "next", "unsubscribe"} <= {*dir(subscription)}
            assert {"topics", "publication_id", "sequence", "expire"} <= {*dir(series)}

    run(test())
    assert not any(hasattr(object_, "__getattr__") for object_ in OBJECTS)
    assert {"topics", "lost", "waiting"} <= {*dir(BlockingSubscription)}
    assert {"topics", "publication_id", "sequence", "lost", "waiting"} <= {*dir(BlockingSeries)}
    assert Answer._fields == ("sequence", "data", "sender", "way", "neighbor")


def test_a_with_block_ends_its_subscription():
    async def test():
        async with wb.dps_node() as node:
            async with await node.subscribe("a") as subscription:
                await node.publish("a", b"1")
            await node.publish("a", b"2")
            assert [publication.data async for publication in subscription] == [b"1"]

    run(test())
    with wb.dps_node() as node:
        with node.subscribe("a") as subscription:
            node.publish("a", b"1")
            assert repr(subscription) == f"<subscription to a at {node}: 1 waiting>"
        node.publish("a", b"2")
        assert [publication.data for publication in subscription] == [b"1"]
        with node.subscribe("a") as left_open:
            node.close()
        assert list(left_open) == []


def test_settings_of_a_node_equal_those_of_the_protocol():
    assert wb.dps_node().protocol == DPS()
    assert wb.dps_node(protocol=DPS(filter_bits=64)).protocol == DPS(filter_bits=64)
    with pytest.raises(ParameterError, match="it must be a wb.DPS"):
        wb.dps_node("127.0.0.1:0", 64)


def test_settings_as_keywords_of_a_node_warn():
    with pytest.warns(DeprecationWarning, match=r"dps_node\(protocol=wb.DPS\(filter_bits=64, separators='.'\)\)"):
        changed = wb.dps_node(filter_bits=64, separators=".").protocol
    assert changed == DPS(filter_bits=64, separators=".")
    with pytest.raises(ParameterError, match=r"'filter_bitz' \(did you mean filter_bits\?\)"):
        wb.dps_node(filter_bitz=64)
    with pytest.raises(ParameterError, match="cannot be given with `protocol`"):
        wb.dps_node(filter_bits=64, protocol=DPS())


@pytest.mark.parametrize("name", ["subscribe", "publish", "register", "lookup", "discover", "will_publish", "link"])
def test_a_blocking_node_has_the_parameters_of_the_node(name):
    ours, theirs = (inspect.signature(getattr(class_, name)) for class_ in (BlockingNode, UDPNode))
    assert ours.parameters == theirs.parameters
