"""A scripted neighbor plays the C node's datagrams from a real socket; our node's are compared with the C node's.

The ports are free ones, because those of the capture may be in use; mesh and publication ids are those of the capture.
All other bytes are the C node's.
"""

import pytest

import workbench as wb
from tests.protocols.dps.peer import Peer, run, until
from workbench.protocols.dps import cose, wire

SUBSCRIBER, PUBLISHER = 40001, 40002
SEPARATORS = "/."


class Exchange:
    """The messages of a captured scenario, with the ports of this test."""

    def __init__(self, captured, scenario, own, node, peer):
        ports = {own: node.address[1], SUBSCRIBER + PUBLISHER - own: peer.port}
        self.frames = {}
        for message in captured["messages"]:
            if message["scenario"] == scenario:
                frame = bytes.fromhex(message["hex"])
                for captured_port, port in ports.items():
                    frame = with_port(frame, captured_port, port)
                self.frames[message["name"].removeprefix(f"{scenario}_")] = frame
        self.node, self.peer = node, peer

    def __getitem__(self, name):
        return self.frames[name]

    def message(self, name):
        return wire.decode(self.frames[name])

    def send(self, name):
        self.peer.send(self.frames[name], self.node)

    async def receive(self, name):
        assert (await self.peer.receive_frame()).hex(" ") == self.frames[name].hex(" ")


def with_port(frame, old, new):
    """Return a frame with another port in its first field."""
    marked = b"\x01\x19" + old.to_bytes(2, "big")
    at = frame.find(marked, 0, 8)
    return frame if at < 0 else frame[:at] + b"\x01\x19" + new.to_bytes(2, "big") + frame[at + 4 :]


def test_our_subscriber_answers_the_publisher_of_the_capture_like_the_c_node(dps_captured):
    async def test():
        async with wb.dps_node(protocol=wb.DPS(separators=SEPARATORS)) as node:
            with Peer() as publisher:
                exchange = Exchange(dps_captured, "basic", SUBSCRIBER, node, publisher)
                node.core.links.start(exchange.message("01_sak").mesh_id)
                subscription = await node.subscribe("a/b/c")
                exchange.send("00_sub")
                await exchange.receive("01_sak")
                exchange.send("02_sak")
                exchange.send("03_pub")
                publication = await subscription.next()
                assert publication.data == exchange.message("03_pub").data
                publication.acknowledge(exchange.message("04_ack").data)
                await exchange.receive("04_ack")
                exchange.send("05_sub")
                await exchange.receive("06_sak")
                assert (node.links, node.drops) == ({}, {})

    run(test())


def test_our_publisher_plays_the_exchange_of_the_capture_like_the_c_node(dps_captured):
    async def test():
        async with wb.dps_node(protocol=wb.DPS(separators=SEPARATORS)) as node:
            with Peer() as subscriber:
                exchange = Exchange(dps_captured, "basic", PUBLISHER, node, subscriber)
                captured = exchange.message("03_pub")
                node.core.links.start(exchange.message("00_sub").mesh_id)
                await node.keep_linked(subscriber.address)
                await exchange.receive("00_sub")
                exchange.send("01_sak")
                await exchange.receive("02_sak")
                halves = [captured.publication_id[:8], captured.publication_id[8:]]
                node.core._random_bytes = lambda: halves.pop(0)
                series = await node.publish(captured.topics, captured.data, acknowledge=True)
                await exchange.receive("03_pub")
                exchange.send("04_ack")
                assert (await series.next()).data == exchange.message("04_ack").data
                await node.unlink(subscriber.address)
                await exchange.receive("05_sub")
                exchange.send("06_sak")
                await until(lambda: not node.links)
                assert node.drops == {}

    run(test())


def keys(captured):
    store = cose.KeyStore()
    for key in captured["test_keys_A256KW"]:
        store.add_symmetric(bytes.fromhex(key["kid"]), bytes.fromhex(key["key"]))
    return store


def test_encrypted_publication_of_the_capture_is_decrypted_and_acknowledged_with_its_key(dps_captured):
    async def test():
        store = keys(dps_captured)
        async with wb.dps_node(protocol=wb.DPS(separators=SEPARATORS), security=cose.Security(store)) as node:
            with Peer() as publisher:
                exchange = Exchange(dps_captured, "enc1", SUBSCRIBER, node, publisher)
                opened = cose.Security(store).open(exchange.message("03_pub"))
                subscription = await node.subscribe(*opened.message.topics)
                exchange.send("03_pub")
                publication = await subscription.next()
                assert publication.data == opened.message.data
                publication.acknowledge(b"secret thanks")
                answer = await publisher.receive()
                assert answer.data is None
                answer = cose.Security(store).open(answer)
                assert (answer.message.data, answer.recipient, answer.way) == (
                    b"secret thanks",
                    opened.recipient,
                    cose.A256KW,
                )

    run(test())


def test_publications_for_others_are_not_readable_and_are_dropped_as_sealed(dps_captured):
    async def test():
        other_keys = cose.KeyStore()
        other_keys.add_symmetric("someone", bytes(32))
        for security in (None, cose.Security(other_keys)):
            async with wb.dps_node(protocol=wb.DPS(separators=SEPARATORS), security=security) as node:
                with Peer() as publisher:
                    exchange = Exchange(dps_captured, "enc1", SUBSCRIBER, node, publisher)
                    topics = cose.Security(keys(dps_captured)).open(exchange.message("03_pub")).message.topics
                    await node.subscribe(*topics)
                    exchange.send("03_pub")
                    await until(lambda node=node: node.drops)
                    assert node.drops["sealed"] == 1

    run(test())


@pytest.mark.parametrize("method", [cose.IMPLICIT, cose.DIRECT, cose.A256KW])
def test_our_own_nodes_publish_and_acknowledge_encrypted(method):
    async def test():
        store = cose.KeyStore()
        store.add_symmetric("ours", bytes(range(32)))
        async with (
            wb.dps_node(security=cose.Security(store, method, ["ours"])) as publisher,
            wb.dps_node(security=cose.Security(store)) as subscriber,
        ):
            subscription = await subscriber.subscribe("a/b")
            await publisher.link(subscriber.address)
            series = await publisher.publish("a/b", b"secret", acknowledge=True)
            publication = await subscription.next()
            assert (publication.data, publication.opened.way) == (b"secret", method)
            publication.acknowledge(b"thanks")
            assert (await series.next()).data == b"thanks"

    run(test())
