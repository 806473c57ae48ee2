"""Registries, which store addresses of DPS nodes."""

import pytest

import workbench as wb
from tests.protocols.dps.peer import run
from tests.protocols.dps.processes import WITHIN_S, Command
from workbench.protocols.dps.udp import registry
from workbench.protocols.dps.wire.discovery import encode_addresses


async def keep(node):
    """Make a node a registry, like the example of the C implementation."""
    return await node.subscribe(registry.TOPIC, handler=lambda publication: publication.acknowledge())


def test_addresses_of_other_nodes_are_registered_and_looked_up_by_tenant():
    async def test():
        async with (
            wb.dps_node(protocol=wb.DPS(separators="/.")) as keeper,
            wb.dps_node() as first,
            wb.dps_node() as second,
        ):
            await keep(keeper)
            assert await first.register(keeper.address) == [str(first)]
            await first.register(keeper.address)
            await second.register(keeper.address, others=["10.9.9.1:4000", "[fd00::1]:4000"])
            await first.register(keeper.address, tenant="garden", others=["10.9.9.2:4000"])
            addresses = await second.lookup(keeper.address, most=3)
            assert sorted(addresses) == ["10.9.9.1:4000", str(first), "[fd00::1]:4000"]
            assert sorted(await first.lookup(keeper.address, most=2)) == ["10.9.9.1:4000", "[fd00::1]:4000"]
            assert await first.lookup(keeper.address, "garden", most=1) == ["10.9.9.2:4000"]
            assert await first.lookup(keeper.address, "unknown", timeout_s=0.05) == []
            assert not first.links and not second.links
            retained = keeper.core.publications.retained.values()
            assert {entry.message.lifetime_s for entry in retained} == {28_800}

    run(test())


def test_invalid_addresses_are_counted_but_not_returned():
    async def test():
        async with wb.dps_node() as keeper, wb.dps_node() as node:
            await keep(keeper)
            for payload in (b"garbage", encode_addresses(["nonsense", "1.2.3.4:0", "a\x1b[2Jb:4000", "1.2.3.4:4000"])):
                await keeper.publish((registry.TOPIC, registry.TENANT), payload, ttl_s=100)
            assert await node.lookup(keeper.address, most=1) == ["1.2.3.4:4000"]
            assert node.drops == {"malformed": 4}

    run(test())


def test_a_node_that_is_not_a_registry_is_an_error():
    async def test():
        async with wb.dps_node() as keeper, wb.dps_node() as node:
            with pytest.raises(wb.LinkError, match=r"has not acknowledged .* within 0.05 s; a registry"):
                await node.register(keeper.address, timeout_s=0.05)
            with pytest.raises(wb.LinkError, match="is not an address"):
                await node.register(keeper.address, others=["nonsense"])
            with pytest.raises(wb.AttributeFormatError):
                await node.register(keeper.address, tenant="+/x")

    run(test())


def test_a_node_on_all_interfaces_registers_the_address_that_reaches_the_registry():
    assert registry._address_for(("127.0.0.1", 9), ("0.0.0.0", 4000)) == "127.0.0.1:4000"
    assert registry._address_for(("::1", 9, 0, 0), ("::", 4000, 0, 0)) == "[::1]:4000"
    assert registry._address_for(("127.0.0.1", 9), ("::", 4000, 0, 0)) == "127.0.0.1:4000"
    with pytest.raises(wb.LinkError, match="is a link-local address"):
        registry._address_for(("127.0.0.1", 9), ("fe80::1", 4000, 0, 1))


def test_a_blocking_node_registers_too():
    with wb.dps_node() as keeper, wb.dps_node() as node:
        # The request is made here, because a handler of a blocking node must not call its node.
        keeper.call(keep(keeper.node))
        assert node.register(str(keeper), others=["1.2.3.4:4000"]) == ["1.2.3.4:4000"]
        assert node.lookup(str(keeper), most=1) == ["1.2.3.4:4000"]


def test_commands_register_look_up_and_join():
    with Command("subscribe", registry.TOPIC) as keeper, Command("subscribe", "a/b") as subscriber:
        with Command("register", keeper.address, subscriber.address, "--tenant", "t") as command:
            command.expect("registered", address=subscriber.address)
            assert command.process.wait(WITHIN_S) == 0
        with Command("lookup", keeper.address, "--tenant", "t", "-n", "1") as command:
            command.expect("address", address=subscriber.address)
            assert command.process.wait(WITHIN_S) == 0
        with Command("lookup", keeper.address, "--tenant", "unknown", "-w", "0.1") as command:
            assert command.process.wait(WITHIN_S) == 1
        with Command(
            "publish", "--registry", keeper.address, "--tenant", "t", "a/b", "-m", "x", "-a", "-n", "1"
        ) as node:
            assert subscriber.expect("publication")["data"] == "x"
            assert node.process.wait(WITHIN_S) == 0
