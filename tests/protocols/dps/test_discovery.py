"""DPS nodes that find each other: by multicast on the loopback interface and a port of the test's own."""

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
C_PORTS = (50810, 37996)  # of the two nodes of the captured exchange


@pytest.fixture(scope="module")
def port():
    """A port that no other test multicasts to; the test is skipped where the loopback interface cannot multicast."""
    with socket.socket(FAMILY, socket.SOCK_DGRAM) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        found = holder.getsockname()[1]
        try:
            run(opened_and_closed(found))
        except LinkError as error:
            pytest.skip(str(error))
        yield found


@pytest.fixture(scope="module")
def captured(dps_vectors):
    """Two nodes of the C implementation that find each other: {name: frame}."""
    path = dps_vectors / "discovery_messages.json"
    if not path.is_file():
        pytest.skip("the captured exchange of discovery is not beside this repository")
    messages = json.loads(path.read_text(encoding="utf-8"))["messages"]
    return {one["name"]: bytes.fromhex(one["hex"]) for one in messages}


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
    """A publication as a node that listens on ``port`` announces itself."""
    topic = "$DPS_Discovery/test"
    filter_ = BitVector.of([topic])
    return wire.encode(
        wire.Publication(port, None, 0, hops, 0, publication_id, number, True, filter_, (topic,), payload)
    )


# Payloads


def test_captured_payloads_are_read_and_written_byte_for_byte(captured):
    publications = [wire.decode(coap.unwrap(one)) for name, one in captured.items() if name.endswith("pub")]
    answers = [wire.decode(one) for name, one in captured.items() if name.endswith("ack")]
    payloads = [one.data for one in (*publications, *answers) if one.data]
    assert len(payloads) == 11
    assert [encode_announcement(decode_announcement(one, BITS)) for one in payloads] == payloads
    ids = {one.publication_id for one in publications}
    assert {decode_announcement(one.data, BITS).publication_id for one in answers} == ids
    assert {len(decode_announcement(one, BITS).interests.positions()) for one in payloads} == {0, 3}


@given(
    st.sets(st.integers(0, BITS - 1), max_size=30),
    st.binary(max_size=30),
    st.none() | st.binary(min_size=16, max_size=16),
)
def test_announcement_is_read_as_it_was_written(positions, data, publication_id):
    announcement = Announcement(BitVector.at(positions), data, publication_id)
    payload = encode_announcement(announcement)
    assert decode_announcement(payload, BITS) == announcement
    with pytest.raises(DecodeError):
        decode_announcement(payload, BITS // 2)
    for end in range(len(payload)):
        with pytest.raises(DecodeError):
            decode_announcement(payload[:end], BITS)


@given(st.binary(max_size=60), st.integers(0, 60))
def test_any_bytes_are_a_payload_or_an_error_of_decoding(data, at):
    valid = encode_announcement(Announcement(BitVector.of(["a/"]), b"hello", bytes(16)))
    for payload in (data, valid[:at] + data, data[:at] + valid):
        for decode in (lambda one: decode_announcement(one, BITS), decode_addresses):
            try:
                decode(payload)
            except DecodeError:
                continue


def test_keys_that_are_not_known_are_skipped():
    payload = bytes.fromhex("a309420102") + announcement_of()[1:] + bytes.fromhex("1863f6")
    assert decode_announcement(payload, BITS) == Announcement(BitVector(), b"", None)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=20))
def test_addresses_are_read_as_they_were_written(addresses):
    try:
        payload = encode_addresses(addresses)
    except EncodeError:  # Half a character.
        return
    assert decode_addresses(payload) == addresses


def test_addresses_may_be_fewer_than_were_counted():
    assert decode_addresses(b"\x03" + encode_addresses(["10.9.9.1:4000"])[1:]) == ["10.9.9.1:4000"]
    assert decode_addresses(b"\x00") == []
    with pytest.raises(DecodeError, match="contains no address"):
        decode_addresses(b"\x03")
    for wrong in ([], ["1"] * (MOST_ADDRESSES + 1)):
        with pytest.raises(ParameterError, match="it must have 1 to 255"):
            encode_addresses(wrong)


# Nodes


def test_a_publisher_links_to_those_who_ask_for_what_it_publishes_and_to_nobody_else(port):
    async def test():
        async with (
            node_of("test", port) as publisher,
            node_of("test", port, announce="living room") as subscriber,
            node_of("test", port) as stranger,
            node_of("other", port) as other,
        ):
            subscription = await subscriber.subscribe("sensor/+/temp", "sensor/7/#")
            await stranger.subscribe("garden/pump")
            await other.subscribe("sensor/7/temp")
            series = await publisher.publish("sensor/7/temp", b"early")
            await until(lambda: "active" in publisher.links.values())
            await series.publish(b"21.5")
            assert (await subscription.next()).data == b"21.5"
            await until(lambda: len(publisher.discovered) == 2 and len(subscriber.discovered) == 2)
            found = {one.address: one for one in publisher.discovered}
            assert found[str(subscriber)].text == "living room"
            assert found[str(subscriber)].may_want("sensor/7/temp")
            assert not found[str(stranger)].may_want("sensor/7/temp")
            assert publisher.links == {str(subscriber): "active"}
            assert not stranger.links and not other.links
            assert not other.discovered

    run(test())


def test_what_is_subscribed_or_published_later_makes_a_link_too(port):
    async def test():
        async with node_of("test", port) as one, node_of("test", port) as other:
            await until(lambda: one.discovered and other.discovered)
            assert not one.links
            await one.subscribe("a/b")
            await until(lambda: other.discovered[0].may_want("a/b"))
            assert not one.links
            other.will_publish("a/b")
            await until(lambda: "active" in one.links.values())
        async with node_of("test", port) as one, node_of("test", port) as other:
            await until(lambda: one.discovered and other.discovered)
            subscription = await one.subscribe("c/d")
            assert await subscription.next(0.01) is None
            await other.publish("c/d", ttl_s=100)
            await until(lambda: other.links)
            assert (await subscription.next()).topics == ("c/d",)

    run(test())


def test_neighbor_that_was_killed_and_started_again_on_its_port_is_linked_to_when_the_old_link_is_lost(port):
    short = {"update_s": 0.05, "link_loss_s": 0.2}

    async def test():
        async with node_of("test", port, protocol=wb.DPS(**short)) as publisher:
            killed = node_of("test", port, protocol=wb.DPS(**short))
            await killed.open()
            await killed.subscribe("a/b")
            await publisher.publish("a/b")
            series = await publisher.publish("a/c")
            await until(lambda: "active" in publisher.links.values())
            killed._shut()
            async with node_of("test", port, listen=killed.address, protocol=wb.DPS(**short)) as back:
                subscription = await back.subscribe("a/c")
                await until(lambda: publisher.discovered and publisher.discovered[0].may_want("a/c"))
                for node in (publisher, back):
                    node._discovery._timer.cancel()  # Nobody announces anything any more.
                while await subscription.next(0.05) is None:
                    await series.publish(b"again")
            assert not publisher.links

    run(test())


def test_nodes_that_come_change_and_go_are_told(port):
    async def test():
        async with node_of("test", port) as observer:
            discoveries = observer.discover()
            async with node_of("test", port) as node:
                found = await discoveries.next()
                assert (found.address, found.service, found.is_gone) == (str(node), "test", False)
                assert found.interests.is_empty
                await node.subscribe("a/+/c")
                changed = await discoveries.next()
                assert changed.may_want("a/b/c") and not changed.may_want("b/b/d")
                assert [one.address for one in observer.discovered] == [str(node)]
            gone = await discoveries.next()
            assert (gone.address, gone.is_gone) == (found.address, True)
            assert observer.discovered == []
            assert discoveries.waiting == 0
        assert await discoveries.next() is None

    run(test())


def test_nobody_has_to_hold_what_is_looped_over(port):
    async def test():
        async with node_of("test", port) as observer, node_of("test", port) as node:
            await until(lambda: observer.discovered)
            await node.subscribe("a")
            states = []
            async for found in observer.discover():
                gc.collect()
                states.append(found.may_want("a"))
                if states[-1]:
                    break
            assert states in ([True], [False, True])

    run(test())


def test_announcements_are_asked_for_of_no_neighbor_and_publications_are_not_multicast(port):
    async def test():
        async with (
            node_of("test", port) as node,
            node_of("test", port) as other,
            wb.dps_node(multicast=Multicast(sends=False, interfaces=loopback_interfaces(), port=port)) as listener,
        ):
            heard = await listener.subscribe("#")
            await until(lambda: node.discovered and other.discovered)
            assert node.core.links.interests.combine(None)[0].is_empty
            await node.publish("a/b", b"for links alone")
            assert (await heard.next()).topics == ("$DPS_Discovery/test",)
            assert await heard.next(0.05) is None or heard.waiting <= 2
            seen = [heard.pop() for _ in range(heard.waiting)]
            assert all(one.topics == ("$DPS_Discovery/test",) for one in seen)

    run(test())


def test_without_a_multicast_discovery_stays_on_this_machine():
    node = wb.dps_node(discover="test")
    assert (node._multicast.interfaces, node._multicast.publications) == (loopback_interfaces(), False)


def test_first_announcement_comes_soon_and_intervals_double_to_five_minutes(port):
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
            found = node.discovered[0]
            assert (found.address, found.interests.positions()) == (f"127.0.0.1:{c_node.port}", [1790, 2516, 3633])
            await loop.sock_recv(ear, 65_536)
            assert await loop.sock_recv(ear, 65_536) == captured["discover_03_pub"]
            discoveries = node.discover()
            assert (await discoveries.next()) == found
            goodbye = frames["discover_15_pub"].replace(number(C_PORTS[1]), number(c_node.port), 1)
            mouth.send(coap.wrap(goodbye, 4))
            assert (await discoveries.next()).is_gone
            await loop.sock_recv(ear, 65_536)
            node._discovery._series.core.sequence = 3
            await node.close()
            last = wire.decode(coap.unwrap(await loop.sock_recv(ear, 65_536)))
            assert last == wire.decode(frames["discover_13_pub"])

    run(test())


def number(port):
    return port.to_bytes(2, "big")


def test_node_of_the_c_implementation_is_found_by_its_answer_and_linked_to(port, captured):
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


def test_strangers_cannot_break_it_and_what_is_kept_of_them_is_bounded(port, monkeypatch):
    monkeypatch.setattr(dps_discovery, "MOST_NODES", 5)
    monkeypatch.setattr(dps_discovery, "MOST_WAITING", 3)

    async def test():
        async with node_of("test", port, protocol=wb.DPS(max_links=2)) as node:
            node.will_publish("a/b")
            with dps_multicast._open_sender(*loopback(), port) as mouth:

                def say(payload, who, hops=0, number=1):
                    mouth.send(coap.wrap(announced(payload, who.to_bytes(16, "big"), number, 60_000 + who, hops), 1))

                say(b"garbage", 1)
                say(encode_announcement(Announcement(BitVector(64), b"", None)), 2)
                await until(lambda: node.drops.get("malformed") == 2)
                say(announcement_of("a/b"), 3, hops=1)
                for who in range(10, 20):
                    say(announcement_of("a/b"), who)
                await until(lambda: node.drops.get("full", 0) >= 8)
                assert len(node.links) == 2
                assert [one.address for one in node.discovered] == [
                    f"127.0.0.1:{60_000 + who}" for who in range(15, 20)
                ]
                for who in range(20, 30):
                    say(announcement_of("z"), who)
                await until(lambda: f"127.0.0.1:{60_029}" in [one.address for one in node.discovered])
                assert len(node._discovery._delayed_calls) <= 3
                assert len(node._discovery._ids) == len(node.discovered) == 5
            with Peer() as liar:
                series = node._discovery._series
                liar.send(wire.Acknowledgement(series.publication_id, series.sequence, announcement_of("a/b")), node)
                await until(lambda: node.drops.get("malformed") == 3)

    run(test())


def test_node_that_starts_anew_takes_its_own_place_and_a_silent_one_is_forgotten(port, monkeypatch):
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


def test_what_cannot_be_is_refused_in_a_sentence(port):
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
    with node_of("test", port) as one, node_of("test", port, announce="hello") as other:
        found = one.discover().next(WITHIN_S)
        assert (found.address, found.text) == (str(other), "hello")
        assert one.discovered == [found]
        subscription = other.subscribe("a/b")
        one.will_publish("a/b")
        one.publish("a/b", "x", ttl_s=100)
        assert subscription.next(WITHIN_S).text == "x"


# Commands


def test_command_lists_who_is_there_and_whether_topics_may_be_wanted(port):
    multicast = ("--multicast-port", str(port))
    with (
        Command("subscribe", "a/+/c", "--discover", "test", "--announce", "hi", *multicast) as subscriber,
        Command("discover", "test", "--topic", "a/b/c", "--topic", "b", *multicast) as discover,
    ):
        found = discover.expect("found", address=subscriber.address, data="hi")
        assert (found["topics"], found["service"]) == (["a/b/c"], "test")
        with Command("publish", "--discover", "test", "-w", "1", "a/b/c", "-m", "x", *multicast) as publisher:
            assert subscriber.expect("publication")["data"] == "x"
            assert publisher.process.wait(WITHIN_S) == 0
        address = subscriber.address
        assert subscriber.interrupt() == 0
        discover.expect("gone", address=address)
