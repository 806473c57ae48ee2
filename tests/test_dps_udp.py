"""DPS nodes on sockets: on the loopback interface, at ports that were free."""

import asyncio

import workbench as wb

SHORT = {"update_s": 0.05, "link_loss_s": 0.2, "relink_s": 0.1}
WITHIN_S = 20.0


def run(test):
    """Run a coroutine, within bounds."""

    async def bounded():
        async with asyncio.timeout(WITHIN_S):
            return await test

    return asyncio.run(bounded())


async def until(is_so):
    """Wait until ``is_so()``; the bound is that of `run`."""
    while not is_so():
        await asyncio.sleep(0.005)


def test_publication_reaches_a_subscriber_and_its_acknowledgement_comes_back():
    async def test():
        async with wb.dps_node() as publisher, wb.dps_node() as subscriber:
            subscription = await subscriber.subscribe("a/+/c")
            await publisher.link(str(subscriber))
            series = await publisher.publish("a/b/c", "hello", acknowledge=True)
            publication = await subscription.next()
            assert (publication.topics, publication.text, publication.hops) == (("a/b/c",), "hello", 1)
            publication.acknowledge(b"thanks")
            answer = await series.next()
            assert (answer.sequence, answer.data, answer.sender) == (1, b"thanks", None)

    run(test())


def test_closing_a_node_ends_its_links_on_the_other_side():
    async def test():
        async with wb.dps_node() as one:
            async with wb.dps_node() as other:
                await other.link(str(one))
                assert one.links == {str(other): "active"}
            assert one.links == {}

    run(test())


def test_two_neighbors_are_one_if_their_addresses_mean_the_same():
    async def test():
        async with wb.dps_node("[::ffff:127.0.0.1]:0") as one, wb.dps_node() as other:
            await other.link(one.address)
            await one.link(str(other))
            assert list(one.links) == [str(other)]

    run(test())
