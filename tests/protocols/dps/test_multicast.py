"""DPS by multicast, on the loopback interface and a separate port."""

import asyncio
import socket

import pytest

import workbench as wb
from tests.protocols.dps.peer import Peer, run, until
from workbench.errors import LinkError, ParameterError
from workbench.protocols.dps.udp import multicast as dps_multicast
from workbench.protocols.dps.udp.multicast import Multicast
from workbench.protocols.dps.wire import coap

LOOPBACK = next((name for _, name in socket.if_nameindex() if dps_multicast._is_loopback(name)), None)
GROUP = dps_multicast.GROUPS[socket.AF_INET]


@pytest.fixture
def port():
    """Yield a port that no other test multicasts to, reserved for the duration of a test."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@pytest.fixture(autouse=True)
def loopback_multicasts(port):
    """Skip the test if the loopback interface cannot multicast, as in some containers."""
    try:
        run(opened_and_closed(port))
    except LinkError as error:
        pytest.skip(str(error))


async def opened_and_closed(port):
    async with wb.dps_node(multicast=Multicast(interfaces=[LOOPBACK], port=port)):
        pass


def test_multicast_publication_needs_no_link_and_is_acknowledged_to_the_listening_port(port):
    async def test():
        async with (
            wb.dps_node(multicast=Multicast(receives=False, interfaces=[LOOPBACK], port=port)) as publisher,
            wb.dps_node(multicast=Multicast(sends=False, interfaces=[LOOPBACK], port=port)) as subscriber,
        ):
            subscription = await subscriber.subscribe("#")
            series = await publisher.publish("m/1", b"x", acknowledge=True)
            publication = await subscription.next()
            assert publication.neighbor == publisher.address
            publication.acknowledge(b"y")
            assert (await series.next()).data == b"y"
            assert not publisher.links and not subscriber.links

    run(test())


def test_own_multicasts_are_ignored_and_received_ones_forwarded_over_links_only(port):
    async def test():
        both = [wb.dps_node(multicast=Multicast(interfaces=[LOOPBACK], port=port)) for _ in range(2)]
        async with both[0] as publisher, both[1] as gateway, wb.dps_node() as subscriber:
            own = await publisher.subscribe("m/1")
            subscription = await subscriber.subscribe("m/1")
            await gateway.link(subscriber.address)
            await publisher.publish("m/1", b"x")
            publication = await subscription.next()
            assert (publication.hops, publication.neighbor) == (2, gateway.address)
            assert (await own.next()).hops == 0
            assert await own.next(0.05) is None
            assert publisher.received == 0
            assert gateway._multicast._message_id == 0

    run(test())


def test_captured_multicast_is_received_and_answered_byte_for_byte(port, dps_captured):
    async def test():
        frames = {message["name"]: bytes.fromhex(message["hex"]) for message in dps_captured["messages"]}
        publication, answer = frames["mcast_00_pub"], frames["mcast_01_ack"]
        async with wb.dps_node(
            protocol=wb.DPS(separators="/."), multicast=Multicast(sends=False, interfaces=[LOOPBACK], port=port)
        ) as node:
            await node.subscribe(
                "m/#", handler=lambda arrival: arrival.acknowledge(b"This is an ACK from 127.0.0.1:40001")
            )
            with Peer() as c_node, dps_multicast._open_sender(*loopback(), port) as sender:
                sender.send(publication.replace((56091).to_bytes(2, "big"), c_node.port.to_bytes(2, "big"), 1))
                assert await c_node.receive_frame() == answer

    run(test())


def loopback():
    number = next(number for number, name in socket.if_nameindex() if name == LOOPBACK)
    return socket.AF_INET, number, LOOPBACK


def test_datagrams_without_a_publication_in_coap_are_dropped_and_counted(port):
    async def test():
        async with wb.dps_node(multicast=Multicast(sends=False, interfaces=[LOOPBACK], port=port)) as node:
            with dps_multicast._open_sender(*loopback(), port) as sender:
                for datagram in (b"", b"\xff" * 9, coap.wrap(b"\x85", 1)):
                    sender.send(datagram)
                await until(lambda: node.drops.get("malformed") == 3)

    run(test())


def test_impossible_multicast_is_refused_with_a_sentence(port):
    with pytest.raises(ParameterError, match="both False"):
        Multicast(False, False)

    async def test():
        with pytest.raises(LinkError, match="'nowhere' is not a network interface"):
            await wb.dps_node(multicast=Multicast(interfaces=["nowhere"], port=port)).open()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other_socket:
            other_socket.bind((GROUP, port))
            with pytest.raises(LinkError, match="cannot multicast on port"):
                await wb.dps_node(multicast=Multicast(interfaces=[LOOPBACK], port=port)).open()

    asyncio.run(test())


@pytest.mark.skipif(
    all(dps_multicast._is_loopback(name) for _, name in socket.if_nameindex()), reason="no interface but loopback"
)
def test_a_node_on_the_loopback_interface_does_not_multicast_to_other_machines(port):
    async def test():
        with pytest.raises(LinkError, match="which other machines cannot reach to answer its multicasts"):
            await wb.dps_node(multicast=Multicast(port=port)).open()

    asyncio.run(test())
