"""Discovery of DPS nodes, by multicast on the loopback interface and a separate port."""

import gc
import json
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.protocols.dps.peer import Peer, run, until
from tests.protocols.dps.processes import WITHIN_S, Command
from workbench.errors import DecodeError, EncodeError, LinkError, ParameterError
from workbench.protocols.dps import wire
from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.udp import discovery as dps_discovery
from workbench.protocols.dps.udp import multicast as dps_multicast
from workbench.protocols.dps.udp.multicast import Multicast, loopback_interfaces
from workbench.protocols.dps.wire import coap
from workbench.protocols.dps.wire.discovery import (
    MOST_ADDRESSES,
    Announcement,
    decode_addresses,
    decode_announcement,
    encode_addresses,
    encode_announcement,
)

FAMILY = socket.AF_INET
BITS = 8192
C_PORTS = (50810, 37996)  # ports of the two nodes of the captured exchange


@pytest.fixture(scope="module")
def port():
    """Yield a multicast port of this test only; skip the test if the loopback interface cannot multicast."""
    with socket.socket(FAMILY, socket.SOCK_DGRAM) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        free_port = holder.getsockname()[1]
        try:
            run(opened_and_closed(free_port))
        except LinkError as error:
            pytest.skip(str(error))
        yield free_port


@pytest.fixture(scope="module")
def captured(dps_vectors):
    """Return {name: frame} of two nodes of the C implementation that discover each other."""
    path = dps_vectors / "discovery_messages.json"
    if not path.is_file():
        pytest.skip("the captured exchange of discovery is not beside this repository")
    messages = json.loads(path.read_text(encoding="utf-8"))["messages"]
    return {message["name"]: bytes.fromhex(message["hex"]) for message in messages}


async def opened_and_closed(port):
    async with node_of("test", port):
        pass


def only_discovery(port):
    return Multicast(interfaces=loopback_interfaces(), port=port, publications=False)


def node_of(service, port, **settings):
    return wb.dps_node(discover=service, multicast=only_discovery(port), **settings)


def loopback():
    name = loopback_interfaces()[0]
    return FAMILY, socket.if_nametoindex(name), name


def announcement_of(*topics):
    return encode_announcement(Announcement(BitVector.of(topics), b"", None))


def announced(payload, publication_id, number, port, hops=0):
    """Return the publication by which a node that listens on `port` announces itself."""
    topic = "$DPS_Discovery/test"
    filter_ = BitVector.of([topic])
    return wire.encode(
        wire.Publication(port, None, 0, hops, 0, publication_id, number, True, filter_, (topic,), payload)
    )


# Payloads


def test_captured_payloads_are_read_and_written_byte_for_byte(captured):
    publications = [wire.decode(coap.unwrap(frame)) for name, frame in captured.items() if name.endswith("pub")]
    answers = [wire.decode(frame) for name, frame in captured.items() if name.endswith("ack")]
    payloads = [message.data for message in (*publications, *answers) if message.data]
    assert len(payloads) == 11
    assert [encode_announcement(decode_announcement(payload, BITS)) for payload in payloads] == payloads
    ids = {message.publication_id for message in publications}
    assert {decode_announcement(message.data, BITS).publication_id for message in answers} == ids
    assert {len(decode_announcement(payload, BITS).interests.positions()) for payload in payloads} == {0, 3}


@given(
    st.sets(st.integers(0, BITS - 1), max_size=30),
    st.binary(max_size=30),
    st.none() | st.binary(min_size=16, max_size=16),
)
def test_announcement_is_decoded_as_it_was_encoded(positions, data, publication_id):
    announcement = Announcement(BitVector.at(positions), data, publication_id)
    payload = encode_announcement(announcement)
    assert decode_announcement(payload, BITS) == announcement
    with pytest.raises(DecodeError):
        decode_announcement(payload, BITS // 2)
    for end in range(len(payload)):
        with pytest.raises(DecodeError):
            decode_announcement(payload[:end], BITS)


@given(st.binary(max_size=60), st.integers(0, 60))
def test_any_bytes_are_a_payload_or_a_decode_error(data, at):
    valid = encode_announcement(Announcement(BitVector.of(["a/"]), b"hello", bytes(16)))
    for payload in (data, valid[:at] + data, data[:at] + valid):
        for decode in (lambda payload: decode_announcement(payload, BITS), decode_addresses):
            try:
                decode(payload)
            except DecodeError:
                continue


def test_unknown_keys_are_skipped():
    payload = bytes.fromhex("a309420102") + announcement_of()[1:] + bytes.fromhex("1863f6")
    assert decode_announcement(payload, BITS) == Announcement(BitVector(), b"", None)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=20))
def test_addresses_are_decoded_as_they_were_encoded(addresses):
    try:
        payload = encode_addresses(addresses)
    except EncodeError:  # half of a surrogate pair
        return
    assert decode_addresses(payload) == addresses


def test_addresses_may_be_fewer_than_their_count():
    assert decode_addresses(b"\x03" + encode_addresses(["10.9.9.1:4000"])[1:]) == ["10.9.9.1:4000"]
    assert decode_addresses(b"\x00") == []
    with pytest.raises(DecodeError, match="contains no address"):
        decode_addresses(b"\x03")
    for wrong in ([], ["1"] * (MOST_ADDRESSES + 1)):
        with pytest.raises(ParameterError, match="it must have 1 to 255"):
            encode_addresses(wrong)


# Nodes


def test_a_publisher_links_only_to_nodes_that_want_its_topics(port):
    async def test():
        async with (
            node_of("test", port) as publisher,
            node_of("test", port, announce="living room") as subscriber,
            node_of("test", port) as stranger,
            node_of("other", port) as outsider,
        ):
            subscription = await subscriber.subscribe("sensor/+/temp", "sensor/7/#")
            await stranger.subscribe("garden/pump")
            await outsider.subscribe("sensor/7/temp")
            series = await publisher.publish("sensor/7/temp", b"early")
            await until(lambda: "active" in publisher.links.values())
            await series.publish(b"21.5")
            assert (await subscription.next()).data == b"21.5"
            await until(lambda: len(publisher.discovered) == 2 and len(subscriber.discovered) == 2)
            matches = {node.address: node for node in publisher.discovered}
            assert matches[str(subscriber)].text == "living room"
            assert matches[str(subscriber)].may_want("sensor/7/temp")
            assert not matches[str(stranger)].may_want("sensor/7/temp")
            assert publisher.links == {str(subscriber): "active"}
            assert not stranger.links and not outsider.links
            assert not outsider.discovered

    run(test())


def test_later_subscriptions_and_publications_create_links_too(port):
    async def test():
        async with node_of("test", port) as subscriber, node_of("test", port) as publisher:
            await until(lambda: subscriber.discovered and publisher.discovered)
            assert not subscriber.links
            await subscriber.subscribe("a/b")
            await until(lambda: publisher.discovered[0].may_want("a/b"))
            assert not subscriber.links
            publisher.will_publish("a/b")
            await until(lambda: "active" in subscriber.links.values())
        async with node_of("test", port) as subscriber, node_of("test", port) as publisher:
            await until(lambda: subscriber.discovered and publisher.discovered)
            subscription = await subscriber.subscribe("c/d")
            assert await subscription.next(0.01) is None
            await publisher.publish("c/d", ttl_s=100)
            await until(lambda: publisher.links)
            assert (await subscription.next()).topics == ("c/d",)

    run(test())


def test_a_killed_and_restarted_neighbor_is_linked_when_the_old_link_is_lost(port):
    short = {"update_s": 0.05, "link_loss_s": 0.2}

    async def test():
        async with node_of("test", port, protocol=wb.DPS(**short)) as publisher:
            killed = node_of("test", port, protocol=wb.DPS(**short))
            await killed.open()
            await killed.subscribe("a/b")
            await publisher.publish("a/b")
            series = await publisher.publish("a/c")
            await until(lambda: "active" in publisher.links.values())
            killed._release_resources()
            async with node_of("test", port, listen=killed.address, protocol=wb.DPS(**short)) as back:
                subscription = await back.subscribe("a/c")
                await until(lambda: publisher.discovered and publisher.discovered[0].may_want("a/c"))
                for node in (publisher, back):
                    node._discovery._timer.cancel()  # No node announces itself any more.
                while await subscription.next(0.05) is None:
                    await series.publish(b"again")
            assert not publisher.links

    run(test())


def test_new_changed_and_gone_nodes_are_reported(port):
    async def test():
        async with node_of("test", port) as observer:
            discoveries = observer.discover()
            async with node_of("test", port) as node:
                discovered = await discoveries.next()
                assert (discovered.address, discovered.service, discovered.is_gone) == (str(node), "test", False)
                assert discovered.interests.is_empty
                await node.subscribe("a/+/c")
                changed = await discoveries.next()
                assert changed.may_want("a/b/c") and not changed.may_want("b/b/d")
                assert [node_.address for node_ in observer.discovered] == [str(node)]
            gone = await discoveries.next()
            assert (gone.address, gone.is_gone) == (discovered.address, True)
            assert observer.discovered == []
            assert discoveries.waiting == 0
        assert await discoveries.next() is None

    run(test())


def test_a_loop_over_discoveries_needs_no_other_reference(port):
    async def test():
        async with node_of("test", port) as observer, node_of("test", port) as node:
            await until(lambda: observer.discovered)
            await node.subscribe("a")
            states = []
            async for discovered in observer.discover():
                gc.collect()
                states.append(discovered.may_want("a"))
                if states[-1]:
                    break
            assert states in ([True], [False, True])

    run(test())


def test_announcements_are_not_requested_from_neighbors_and_publications_not_multicast(port):
    async def test():
        async with (
            node_of("test", port) as node,
            node_of("test", port) as second,
            wb.dps_node(multicast=Multicast(sends=False, interfaces=loopback_interfaces(), port=port)) as listener,
        ):
            mailbox = await listener.subscribe("#")
            await until(lambda: node.discovered and second.discovered)
            assert node.core.links.interests.combine(None)[0].is_empty
            await node.publish("a/b", b"for links alone")
            assert (await mailbox.next()).topics == ("$DPS_Discovery/test",)
            assert await mailbox.next(0.05) is None or mailbox.waiting <= 2
            announcements = [mailbox.pop() for _ in range(mailbox.waiting)]
            assert all(publication.topics == ("$DPS_Discovery/test",) for publication in announcements)

    run(test())


def test_without_a_multicast_discovery_stays_on_this_machine():
    node = wb.dps_node(discover="test")
    assert (node._multicast.interfaces, node._multicast.publications) == (loopback_interfaces(), False)


def test_first_announcement_is_early_and_intervals_double_to_five_minutes(port):
    class Clock:
        def __init__(self, loop):
            self.loop = loop
            self.delays_s = []

        def time(self):
            return self.loop.time()

        def call_later(self, delay_s, call):
            self.delays_s.append(delay_s)
            return self.loop.call_later(1000, call)

    async def test():
        async with node_of("test", port) as node:
            discovery = node._discovery
            discovery._stop()
            discovery._is_first_due = False
            discovery._loop = clock = Clock(discovery._loop)
            discovery.announce_soon()
            for _ in range(12):
                discovery._announce()
            first_s, second_s, *rest = clock.delays_s
            assert 0.02 <= first_s < 0.12
            assert second_s == first_s + 1.0
            assert rest[:8] == [second_s * 2**power for power in range(1, 9)]
            assert 300 <= rest[8] < 600 and set(rest[8:]) == {rest[8]}
            assert node._multicast.sent >= 12

    run(test())


def test_captured_exchange_is_answered_byte_for_byte(port, captured):
    async def test():
        frames = {name: frame if name.endswith("ack") else coap.unwrap(frame) for name, frame in captured.items()}
        own_id = wire.decode(frames["discover_00_pub"]).publication_id
        node = node_of("test", port)
        halves = [bytes(8), bytes(8), own_id[:8], own_id[8:]]
        node.core._random_bytes = lambda: halves.pop(0)
        with (
            dps_multicast._open_receiver(*loopback()[:2], port) as ear,
            dps_multicast._open_sender(*loopback(), port) as mouth,
            Peer() as c_node,
        ):
            await node.open()
            node.core.port = C_PORTS[0]
            loop = node._loop
            assert await loop.sock_recv(ear, 65_536) == captured["discover_00_pub"]
            theirs = frames["discover_01_pub"].replace(number(C_PORTS[1]), number(c_node.port), 1)
            mouth.send(coap.wrap(theirs, 1))
            assert await c_node.receive_frame() == frames["discover_02_ack"]
            discovered = node.discovered[0]
            assert (discovered.address, discovered.interests.positions()) == (
                f"127.0.0.1:{c_node.port}",
                [1790, 2516, 3633],
            )
            await loop.sock_recv(ear, 65_536)
            assert await loop.sock_recv(ear, 65_536) == captured["discover_03_pub"]
            discoveries = node.discover()
            assert (await discoveries.next()) == discovered
            goodbye = frames["discover_15_pub"].replace(number(C_PORTS[1]), number(c_node.port), 1)
            mouth.send(coap.wrap(goodbye, 4))
            assert (await discoveries.next()).is_gone
            await loop.sock_recv(ear, 65_536)
            node._discovery._series.protocol_series.sequence = 3
            await node.close()
            last = wire.decode(coap.unwrap(await loop.sock_recv(ear, 65_536)))
            assert last == wire.decode(frames["discover_13_pub"])

    run(test())


def number(port):
    return port.to_bytes(2, "big")


def test_node_of_the_c_implementation_is_discovered_by_its_answer_and_linked(port, captured):
    async def test():
        answer = wire.decode(captured["discover_04_ack"])
        payload = decode_announcement(answer.data, BITS)._replace(interests=BitVector.of(["a/", "//c"]))
        async with node_of("test", port) as node:
            node.will_publish("a/b/c")
            with Peer() as c_node:
                series = node._discovery._series
                reply = wire.Acknowledgement(series.publication_id, 1, encode_announcement(payload))
                await until(lambda: series.sequence)
                c_node.send(reply, node)
                assert isinstance(await c_node.receive(), wire.Subscription)
                assert (
                    node.discovered[0].publication_id
                    == wire.decode(coap.unwrap(captured["discover_01_pub"])).publication_id
                )

    run(test())


def test_discovery_survives_strangers_and_stores_a_bounded_number_of_them(port, monkeypatch):
    monkeypatch.setattr(dps_discovery, "MOST_NODES", 5)
    monkeypatch.setattr(dps_discovery, "MOST_WAITING", 3)

    async def test():
        async with node_of("test", port, protocol=wb.DPS(max_links=2)) as node:
            node.will_publish("a/b")
            with dps_multicast._open_sender(*loopback(), port) as mouth:

                def say(payload, stranger, hops=0, number=1):
                    mouth.send(
                        coap.wrap(announced(payload, stranger.to_bytes(16, "big"), number, 60_000 + stranger, hops), 1)
                    )

                say(b"garbage", 1)
                say(encode_announcement(Announcement(BitVector(64), b"", None)), 2)
                await until(lambda: node.drops.get("malformed") == 2)
                say(announcement_of("a/b"), 3, hops=1)
                for stranger in range(10, 20):
                    say(announcement_of("a/b"), stranger)
                await until(lambda: node.drops.get("full", 0) >= 8)
                assert len(node.links) == 2
                assert [node_.address for node_ in node.discovered] == [
                    f"127.0.0.1:{60_000 + stranger}" for stranger in range(15, 20)
                ]
                for stranger in range(20, 30):
                    say(announcement_of("z"), stranger)
                await until(lambda: f"127.0.0.1:{60_029}" in [node_.address for node_ in node.discovered])
                assert len(node._discovery._delayed_calls) <= 3
                assert len(node._discovery._ids) == len(node.discovered) == 5
            with Peer() as liar:
                series = node._discovery._series
                liar.send(wire.Acknowledgement(series.publication_id, series.sequence, announcement_of("a/b")), node)
                await until(lambda: node.drops.get("malformed") == 3)

    run(test())


def test_restarted_node_replaces_its_entry_and_a_silent_node_is_forgotten(port, monkeypatch):
    async def test():
        async with node_of("test", port) as node:
            discoveries = node.discover()
            with dps_multicast._open_sender(*loopback(), port) as mouth:
                for number in (1, 2):
                    mouth.send(coap.wrap(announced(announcement_of("a"), bytes([number] * 16), 1, 60_001), number))
                first, gone, second = [await discoveries.next() for _ in range(3)]
                assert (gone.publication_id, gone.is_gone) == (first.publication_id, True)
                assert node.discovered == [second]
                monkeypatch.setattr(dps_discovery, "FORGET_S", -1.0)
                node._discovery._announce()
                assert (await discoveries.next()).is_gone
                assert node.discovered == []

    run(test())


def test_invalid_calls_are_refused_with_a_sentence(port):
    with pytest.raises(ParameterError, match="needs both"):
        wb.dps_node(discover="test", multicast=Multicast(receives=False))
    with pytest.raises(wb.AttributeFormatError, match="wildcard"):
        wb.dps_node(discover="+")
    with pytest.raises(ParameterError, match="it may have 32768 at most"):
        wb.dps_node(discover="test", announce=bytes(50_000))

    async def test():
        async with wb.dps_node() as node:
            with pytest.raises(ParameterError, match="discover='a service'"):
                node.discover()
        async with node_of("test", port) as node:
            with pytest.raises(wb.AttributeFormatError):
                node.will_publish("a/+")

    run(test())


def test_a_blocking_node_discovers_too(port):
    with node_of("test", port) as publisher, node_of("test", port, announce="hello") as subscriber:
        discovered = publisher.discover().next(WITHIN_S)
        assert (discovered.address, discovered.text) == (str(subscriber), "hello")
        assert publisher.discovered == [discovered]
        subscription = subscriber.subscribe("a/b")
        publisher.will_publish("a/b")
        publisher.publish("a/b", "x", ttl_s=100)
        assert subscription.next(WITHIN_S).text == "x"


# Commands


def test_command_lists_nodes_and_whether_they_may_want_topics(port):
    multicast = ("--multicast-port", str(port))
    with (
        Command("subscribe", "a/+/c", "--discover", "test", "--announce", "hi", *multicast) as subscriber,
        Command("discover", "test", "--topic", "a/b/c", "--topic", "b", *multicast) as discover,
    ):
        line = discover.expect("found", address=subscriber.address, data="hi")
        assert (line["topics"], line["service"]) == (["a/b/c"], "test")
        with Command("publish", "--discover", "test", "-w", "1", "a/b/c", "-m", "x", *multicast) as publisher:
            assert subscriber.expect("publication")["data"] == "x"
            assert publisher.process.wait(WITHIN_S) == 0
        address = subscriber.address
        assert subscriber.interrupt() == 0
        discover.expect("gone", address=address)
