"""DPS nodes on sockets, on free ports of the loopback interface."""

import asyncio
import errno
import gc
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.protocols.dps.peer import Peer, run, until
from workbench.protocols.dps import series, wire
from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.cose import A256KW, KeyStore, Security
from workbench.protocols.dps.udp import addresses as dps_addresses
from workbench.protocols.dps.udp import endpoint as dps_socket
from workbench.protocols.dps.udp.application import Mailbox
from workbench.protocols.dps.udp.link_keeper import now_us

SHORT = {"update_s": 0.05, "link_loss_s": 0.2, "relink_s": 0.1}


def crash(node):
    """End a node as SIGKILL does, without messages to its neighbors."""
    node._release_resources()


# Warnings and errors about neighbors


@pytest.mark.parametrize("topics", [("#",), ("+",), ("+", "#")])
def test_a_subscription_to_only_a_wildcard_warns_that_it_is_not_announced(topics):
    async def test():
        async with wb.dps_node() as node:
            with pytest.warns(UserWarning, match=r"gets only publications of this node.*subscribe to \+/# for all"):
                subscription = await node.subscribe(*topics)
            await node.publish("here", b"x")
            assert (await subscription.next(5)).data == b"x"
            # Topics with bits cause no warning, also together with a wildcard.
            await node.subscribe("#", "a/b")
            await node.subscribe("+/#")

    run(test())


def test_the_error_for_a_missing_answer_mentions_a_full_node():
    async def test():
        async with (
            wb.dps_node(protocol=wb.DPS(max_links=1)) as full,
            wb.dps_node() as first,
            wb.dps_node(protocol=wb.DPS(**SHORT)) as second,
        ):
            await first.link(str(full))
            with pytest.raises(wb.LinkError, match="does not answer; check that a DPS node listens there"):
                await second.link(str(full))
            assert full.drops["full"] >= 1

    run(test())


# Publications


def test_publication_reaches_a_subscriber_and_its_acknowledgement_returns():
    async def test():
        async with wb.dps_node() as publisher, wb.dps_node() as subscriber:
            subscription = await subscriber.subscribe("a/+/c")
            await publisher.link(str(subscriber))
            series_ = await publisher.publish("a/b/c", "hello", acknowledge=True)
            publication = await subscription.next()
            assert (publication.topics, publication.text, publication.hops) == (("a/b/c",), "hello", 1)
            assert publication.neighbor == publisher.address
            publication.acknowledge(b"thanks")
            answer = await series_.next()
            assert (answer.sequence, answer.data, answer.sender) == (1, b"thanks", None)

    run(test())


def test_handlers_are_called_instead_of_using_mailboxes():
    async def test():
        answers = []
        async with wb.dps_node("[::1]:0") as publisher, wb.dps_node("[::1]:0") as subscriber:
            await subscriber.subscribe("a/#", handler=lambda publication: publication.acknowledge(publication.data * 2))
            await publisher.link(str(subscriber))
            series_ = await publisher.publish("a/b", b"1", acknowledge=True, handler=answers.append)
            await series_.publish(b"2")
            await until(lambda: len(answers) == 2)
        assert [(answer.sequence, answer.data) for answer in answers] == [(1, b"11"), (2, b"22")]

    run(test())


def test_an_error_of_a_handler_affects_no_other_and_is_reported_to_the_event_loop():
    async def test():
        errors, arrived = [], []

        def bad(publication):
            raise RuntimeError(publication.text)

        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(str(context["exception"])))
        async with wb.dps_node() as node:
            await node.subscribe("z/+", handler=bad)
            await node.subscribe("z/+", handler=arrived.append)
            series_ = await node.publish("z/1", "1")
            await series_.publish("2")
        assert [publication_.text for publication_ in arrived] == errors == ["1", "2"]

    run(test())


def test_answers_reach_a_handler_without_a_reference_to_the_series_up_to_a_limit():
    async def test():
        answers = []
        async with wb.dps_node(protocol=wb.DPS(max_history=2)) as node:
            publications = []
            await node.subscribe("a/#", handler=publications.append)
            for number in range(3):
                await node.publish("a/b", b"%d" % number, acknowledge=True, handler=answers.append)
            gc.collect()
            for publication in publications[1:]:
                publication.acknowledge(publication.data)
            assert len(node._series_with_handler) == 2
        assert [answer.data for answer in answers] == [b"1", b"2"]

    run(test())


def test_an_acknowledgement_that_exceeds_a_datagram_is_refused():
    async def test():
        async with wb.dps_node() as publisher, wb.dps_node() as subscriber:
            subscription = await subscriber.subscribe("a")
            await publisher.link(subscriber.address)
            await publisher.publish("a", acknowledge=True)
            publication = await subscription.next()
            with pytest.raises(wb.EncodeError, match="the acknowledgement has 70032 bytes, .* 4525 bytes shorter"):
                publication.acknowledge(bytes(70_000))

    run(test())


def test_with_keys_and_plain_refused_only_encrypted_messages_are_delivered():
    async def test():
        keys = KeyStore()
        keys.add_symmetric("s", bytes(32))
        sealing, open_ = Security(keys, A256KW, ["s"], plain=False), Security(keys, A256KW, ["s"])
        async with (
            wb.dps_node(security=sealing) as strict,
            wb.dps_node(security=open_) as lenient,
            wb.dps_node() as stranger,
        ):
            received, also = await strict.subscribe("a"), await lenient.subscribe("a")
            await strict.link(lenient.address)
            await stranger.link(lenient.address)
            await stranger.publish("a", b"forged")
            await until(lambda: strict.drops.get("plain"))
            series_ = await lenient.publish("a", b"genuine", acknowledge=True)
            publication = await received.next()
            assert (publication.data, publication.way, received.waiting) == (b"genuine", "A256KW", 0)
            forged = await also.next()
            assert (forged.data, forged.way, forged.sender) == (b"forged", None, None)
            with Peer() as attacker:
                attacker.send(wire.Acknowledgement(series_.publication_id, 1, b"forged"), lenient)
                await until(lambda: lenient.drops.get("plain"))
            publication.acknowledge(b"mine")
            answer = await series_.next()
            assert (answer.data, answer.way, series_.waiting) == (b"mine", "A256KW", 0)

    run(test())


def test_publications_pass_a_node_that_only_forwards():
    async def test():
        async with wb.dps_node() as publisher, wb.dps_node() as middle, wb.dps_node() as subscriber:
            subscription = await subscriber.subscribe("a/b")
            await middle.link(str(subscriber))
            await middle.link(str(publisher))
            series_ = await publisher.publish("a/b", b"x", acknowledge=True)
            publication = await subscription.next()
            assert (publication.hops, publication.neighbor) == (2, middle.address)
            publication.acknowledge(b"y")
            assert (await series_.next()).data == b"y"

    run(test())


def test_retained_publication_waits_for_its_subscriber_until_it_is_ended():
    async def test():
        async with wb.dps_node() as publisher, wb.dps_node() as subscriber:
            await publisher.link(str(subscriber))
            series_ = await publisher.publish("a/b", b"kept", ttl_s=100)
            subscription = await subscriber.subscribe("a/b", expired=True)
            publication = await subscription.next()
            assert (publication.data, publication.is_expiry) == (b"kept", False)
            assert 0 < publication.ttl_s <= 100
            await series_.expire()
            assert (await subscription.next()).is_expiry

    run(test())


def test_publications_of_a_node_reach_its_own_subscriptions_too():
    async def test():
        async with wb.dps_node() as node:
            subscription = await node.subscribe("a/b")
            series_ = await node.publish("a/b", b"x", acknowledge=True)
            publication = await subscription.next()
            assert (publication.hops, publication.neighbor) == (0, None)
            publication.acknowledge(b"mine")
            assert (await series_.next()).data == b"mine"

    run(test())


def test_ended_subscriptions_and_closed_nodes_end_loops_over_them():
    async def test():
        async with wb.dps_node() as node:
            ended = await node.subscribe("a")
            series_ = await node.publish("b", acknowledge=True)
            open_ = await node.subscribe("a")
            await node.publish("a", b"1")
            await ended.unsubscribe()
            await node.publish("a", b"2")
        assert [publication.data async for publication in ended] == [b"1"]
        assert [publication.data async for publication in open_] == [b"1", b"2"]
        assert [answer async for answer in series_] == []

    run(test())


def test_mailboxes_lose_the_oldest_publications_beyond_their_limit_and_count_them():
    async def test():
        async with wb.dps_node(max_waiting=3) as node:
            subscription = await node.subscribe("a")
            series_ = await node.publish("a", b"1")
            for number in range(2, 6):
                await series_.publish(str(number))
            assert (subscription.lost, subscription.waiting) == (2, 3)
            assert [(await subscription.next()).text for _ in range(3)] == ["3", "4", "5"]
            assert await subscription.next(0.01) is None

    run(test())


def test_queued_datagrams_are_bounded_in_bytes(monkeypatch):
    async def test():
        monkeypatch.setattr(dps_socket, "MOST_UNSENT_B", 100)
        async with wb.dps_node() as node:
            sock = node._socket
            for size_B in (60, 60, 40):
                sock._enqueue(node.address, bytes(size_B))
            assert (len(sock._unsent), sock._unsent_B, sock.errors["unsent"]) == (2, 100, 1)
            await sock.drained()
            assert (len(sock._unsent), sock._unsent_B) == (0, 0)

    run(test())


def test_mailbox_loses_the_oldest_beyond_its_bytes_but_not_the_last():
    mailbox = Mailbox(10, 100, len)
    mailbox.put([bytes(40), bytes(50)])
    assert (mailbox.lost, mailbox.waiting) == (0, 2)
    mailbox.put([bytes(60)])
    assert (mailbox.lost, mailbox.pop()) == (2, bytes(60))
    mailbox.put([bytes(500)])
    assert (mailbox.lost, mailbox.pop(), mailbox.pop()) == (2, bytes(500), None)


def test_every_waiter_at_a_mailbox_is_woken_and_a_cancelled_one_takes_nothing():
    async def test():
        mailbox = Mailbox(10)
        first, cancelled, last = [asyncio.ensure_future(mailbox.next()) for _ in range(3)]
        await asyncio.sleep(0)
        cancelled.cancel()
        mailbox.put([1])
        assert await first == 1
        mailbox.put([2])
        assert await last == 2

    run(test())


# Links


def test_closing_a_node_ends_its_links_on_the_other_side():
    async def test():
        async with wb.dps_node() as first:
            async with wb.dps_node() as second:
                await second.link(str(first))
                assert first.links == {str(second): "active"}
            assert first.links == {}

    run(test())


def test_equivalent_addresses_are_the_same_neighbor():
    async def test():
        async with wb.dps_node("[::ffff:127.0.0.1]:0") as first, wb.dps_node() as second:
            await second.link(first.address)
            await first.link(str(second))
            assert list(first.links) == [str(second)]

    run(test())


def test_unlinked_neighbor_gets_no_more_messages():
    async def test():
        async with wb.dps_node() as publisher, wb.dps_node() as subscriber:
            subscription = await subscriber.subscribe("a")
            neighbor = await publisher.link(str(subscriber))
            await publisher.unlink(neighbor)
            await until(lambda: not publisher.links and not subscriber.links)
            await publisher.publish("a", b"x")
            assert await subscription.next(0.05) is None
            await publisher.link(neighbor)
            await publisher.publish("a", b"y")
            assert (await subscription.next()).data == b"y"

    run(test())


def test_link_is_requested_again_when_a_crashed_neighbor_is_back():
    async def test():
        async with wb.dps_node(protocol=wb.DPS(**SHORT)) as publisher:
            neighbor = wb.dps_node(protocol=wb.DPS(**SHORT))
            await neighbor.open()
            address = neighbor.address
            await publisher.link(address)
            crash(neighbor)
            await until(lambda: not publisher.links)
            async with wb.dps_node(address, wb.DPS(**SHORT)) as back:
                subscription = await back.subscribe("a")
                series_ = await publisher.publish("a")
                while await subscription.next(0.02) is None:
                    await series_.publish(b"again")

    run(test())


def test_link_without_keep_linked_is_not_requested_again():
    async def test():
        async with wb.dps_node(protocol=wb.DPS(**SHORT)) as node:
            neighbor = wb.dps_node(protocol=wb.DPS(**SHORT))
            await neighbor.open()
            await node.link(neighbor.address, keep=False)
            crash(neighbor)
            await until(lambda: not node.links)
            with Peer() as peer:
                await node.keep_linked(peer.address)
                await peer.receive()
            assert not node.keeper._relink_timers

    run(test())


def test_a_node_that_repeats_its_requests_links_to_a_later_neighbor():
    async def test():
        with Peer() as later:
            address = later.address
        async with wb.dps_node(protocol=wb.DPS(**SHORT)) as node:
            await node.keep_linked(address)
            await until(lambda: not node.links)
            async with wb.dps_node(address, wb.DPS(**SHORT)):
                await until(lambda: "active" in node.links.values())

    run(test())


# Errors


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1",
        "127.0.0.1:",
        "::1:4000",
        "[::1]",
        "host:port",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "",
        None,
        1.5,
        True,
    ],
)
def test_invalid_address_is_refused_with_an_example(text):
    with pytest.raises(wb.LinkError, match=r"is not an address.*127\.0\.0\.1:4000"):
        dps_addresses.split(text, "127.0.0.1")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("127.0.0.1:4000", ("127.0.0.1", 4000)),
        ("[::1]:4000", ("::1", 4000)),
        ("localhost:4000", ("localhost", 4000)),
        ("4000", ("10.0.0.1", 4000)),
        (":4000", ("10.0.0.1", 4000)),
        (4000, ("10.0.0.1", 4000)),
        (("::1", 4000, 0, 0), ("::1", 4000)),
    ],
)
def test_address_is_read_in_each_of_its_forms(text, expected):
    assert dps_addresses.split(text, "10.0.0.1") == expected


@given(st.ip_addresses(), st.integers(0, 0xFFFF))
def test_text_form_of_an_address_is_read_back(host, port):
    address = dps_addresses.normal((str(host), port) if host.version == 4 else (str(host), port, 0, 0))
    assert dps_addresses.split(dps_addresses.as_text(address), "127.0.0.1") == address[:2]


def test_invalid_calls_are_refused_with_a_sentence():
    async def test():
        async with wb.dps_node() as node:
            with pytest.raises(wb.LinkError, match=r"cannot listen on .*in use; listen on another port"):
                await wb.dps_node(node.address).open()
            with pytest.raises(wb.LinkError, match="cannot listen on .*listen on an address of this machine"):
                await wb.dps_node("192.0.2.77:0").open()
            with pytest.raises(wb.LinkError, match="cannot link to itself"):
                await node.link(node.address)
            with pytest.raises(wb.LinkError, match="has port 0"):
                await node.link("127.0.0.1:0")
            with pytest.raises(wb.LinkError, match=r"is an IPv6 address.*listen on \[::\]:0"):
                await node.link("[::1]:4000")
            with pytest.raises(wb.LinkError, match="the host in .* cannot be found"):
                await node.link("h" * 64 + ":4000")
            with pytest.raises(wb.LinkError, match="cannot be reached from 127.0.0.1"):
                await node.link("192.0.2.77:4000")
            with pytest.raises(wb.EncodeError, match="make its payload"):
                await node.publish("a", bytes(65_507))
            with pytest.raises(wb.AttributeFormatError):
                await node.publish("a/+")
            with pytest.raises(wb.ParameterError, match="bytes or str"):
                await node.publish("a", 42)
            subscription = await node.subscribe("a")
            await node.publish("a", b"x")
            with pytest.raises(wb.ParameterError, match="requests no acknowledgement"):
                (await subscription.next()).acknowledge()
        with pytest.raises(wb.LinkError, match="the node is closed"):
            await node.publish("a", b"x")

    run(test())


def test_addresses_of_this_machine_are_recognized():
    assert dps_addresses.is_of_this_machine(("127.0.0.1", 9))
    assert not dps_addresses.is_of_this_machine(("192.0.2.77", 9))


def test_node_can_be_opened_only_once():
    async def test():
        node = wb.dps_node()
        assert str(node) == "closed"
        await node.open()
        await node.close()
        await node.close()
        with pytest.raises(wb.LinkError, match="opened before"):
            await node.open()

    run(test())


def test_neighbor_that_does_not_answer_is_an_error_of_link_and_gets_no_more_requests():
    async def test():
        with Peer() as silent:
            async with wb.dps_node(protocol=wb.DPS(**SHORT)) as node:
                with pytest.raises(wb.LinkError, match="does not answer"):
                    await node.link(silent.address)
                with pytest.raises(wb.LinkError, match="does not answer"):
                    await node.link(silent.address, timeout_s=0.01)
                await until(lambda: not node.links)
                assert not node.keeper._neighbors_to_relink and not node.keeper._relink_timers

    run(test())


# Strangers


def test_garbage_and_unreachable_senders_are_dropped_with_reasons():
    async def test():
        async with wb.dps_node() as node:
            with Peer() as stranger:
                subscription = wire.Subscription(1, None, 1, 2, bytes(16), bytes(32), BitVector())
                for frame in (b"", b"\x85", bytes(65_000), b"\xff" * 3):
                    stranger.send(frame, node)
                stranger.send(subscription._replace(port=0), node)
                stranger.send(subscription._replace(port=node.address[1]), node)
                stranger.send(subscription._replace(port=stranger.port), node)
                await until(lambda: node.links)
                assert node.drops == {"malformed": 4, "port": 2}
                assert node.links == {dps_addresses.as_text(stranger.address): "active"}

    run(test())


def test_flood_of_strangers_leaves_a_bounded_number_of_links_and_a_working_node():
    async def test():
        async with (
            wb.dps_node(protocol=wb.DPS(max_links=10, **SHORT)) as node,
            wb.dps_node(protocol=wb.DPS(**SHORT)) as friend,
        ):
            await friend.link(node.address)
            received = await node.subscribe("a")
            with ExitStack() as stack:
                for stranger in [stack.enter_context(Peer()) for _ in range(40)]:
                    stranger.send(wire.Subscription(stranger.port, None, 1, 2, bytes(16), bytes(32), BitVector()), node)
                    await asyncio.sleep(0)
                await until(lambda: node.drops.get("full"))
                assert len(node.links) == 10
                series_ = await friend.publish("a", b"through")
                while await received.next(0.02) is None:
                    await series_.publish(b"through")

    run(test())


def test_another_socket_of_a_neighbors_machine_cannot_impersonate_it():
    async def test():
        async with wb.dps_node() as node, wb.dps_node() as neighbor:
            await neighbor.link(node.address)
            state = node.core.links.remotes[neighbor.address]
            unlink = wire.Subscription(neighbor.address[1], None, 99, 6, bytes(16), None, None)
            interests = wire.Subscription(neighbor.address[1], None, 99, 2, bytes(16), bytes(32), BitVector())
            with Peer() as stranger:
                stranger.send(unlink, node)
                stranger.send(interests, node)
                await until(lambda: node.drops.get("port") == 2)
            assert node.core.links.remotes[neighbor.address] is state
            assert node.links == {dps_addresses.as_text(neighbor.address): "active"}

    run(test())


def test_acknowledgements_of_strangers_are_stored_in_bounded_numbers():
    async def test():
        async with wb.dps_node(max_waiting=50) as node:
            series_ = await node.publish("a", b"x", acknowledge=True)
            acknowledgement = wire.Acknowledgement(series_.publication_id, 1, b"y")
            with Peer() as stranger:
                for _ in range(200):
                    stranger.send(acknowledgement, node)
                    await asyncio.sleep(0)
                await until(lambda: series_.waiting + series_.lost == 200)
            assert (series_.waiting, series_.lost) == (50, 150)

    run(test())


# Sending


class FailingSocket:
    """A socket that raises `error` in each call of sending, and each of `read_errors` once in reading."""

    def __init__(self, real, error=None, read_errors=()):
        self.real = real
        self.error = error
        self.read_errors = list(read_errors)

    def sendto(self, frame, address):
        if self.error is not None:
            raise self.error
        return self.real.sendto(frame, address)

    def recvfrom(self, size):
        if self.read_errors:
            raise self.read_errors.pop()
        return self.real.recvfrom(size)

    def __getattr__(self, name):
        return getattr(self.real, name)


@pytest.mark.parametrize(
    "number, reason",
    [(errno.EMSGSIZE, "too_long"), (errno.ENETUNREACH, "unreachable"), (errno.ECONNREFUSED, "refused")],
)
def test_frames_refused_by_the_network_are_counted_and_the_node_continues(number, reason):
    async def test():
        async with wb.dps_node() as node, wb.dps_node() as subscriber:
            subscription = await subscriber.subscribe("a")
            await node.link(subscriber.address)
            node._socket._socket = failing = FailingSocket(node._socket._socket, OSError(number, "no"))
            series = await node.publish("a", b"lost")
            assert node.drops == {reason: 1}
            failing.error = None
            await series.publish(b"arrives")
            assert (await subscription.next()).data == b"arrives"

    run(test())


def test_icmp_errors_do_not_stop_receiving():
    async def test():
        async with wb.dps_node() as node, wb.dps_node() as publisher:
            subscription = await node.subscribe("a")
            await publisher.link(node.address)
            errors = [ConnectionRefusedError(errno.ECONNREFUSED, "refused")] * 3
            node._socket._socket = FailingSocket(node._socket._socket, None, errors)
            await publisher.publish("a", b"x")
            assert (await subscription.next()).data == b"x"
            assert node.drops == {"refused": 3}

    run(test())


def test_frames_refused_by_a_full_buffer_are_sent_later_in_order_and_bounded(monkeypatch):
    monkeypatch.setattr(dps_socket, "MOST_UNSENT", 5)

    async def test():
        async with wb.dps_node() as node, wb.dps_node() as subscriber:
            subscription = await subscriber.subscribe("a")
            await node.link(subscriber.address)
            full = FailingSocket(node._socket._socket, BlockingIOError(errno.EAGAIN, "full"))
            node._socket._socket = full
            series_ = node.core.publish_topics("a", b"0", now_us())
            node.settle()
            for number in range(1, 8):
                series_.publish(str(number).encode(), now_us())
                node.settle()
            assert (len(node._socket._unsent), node.drops["unsent"]) == (5, 3)
            full.error = None
            await node.drained()
            assert not node._socket._unsent
            assert [(await subscription.next()).data for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]
            assert await subscription.next(0.01) is None

    run(test())


def test_unread_answers_of_a_series_are_bounded(monkeypatch):
    monkeypatch.setattr(series, "MOST_ANSWERS", 3)
    series_ = series.Series(None, bytes(16), 0, ("a",), None, True)
    for number in range(5):
        series_.put(number)
    assert (series_.take(), series_.lost) == ([2, 3, 4], 2)
