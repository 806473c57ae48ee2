"""Addresses of DPS nodes that a registry keeps."""

import pytest

import workbench as wb
from tests.protocols.dps.peer import run
from tests.protocols.dps.processes import WITHIN_S, Command
from workbench.protocols.dps.udp import registry
from workbench.protocols.dps.wire.discovery import encode_addresses


async def keep(node):
    """Be a registry, as the C implementation's example is one."""
    return await node.subscribe(registry.TOPIC, handler=lambda publication: publication.acknowledge())


def test_addresses_are_registered_and_looked_up_by_tenant_but_for_ones_own():
    async def test():
        async with (
            wb.dps_node(protocol=wb.DPS(separators="/.")) as keeper,
            wb.dps_node() as one,
            wb.dps_node() as other,
        ):
            await keep(keeper)
            assert await one.register(keeper.address) == [str(one)]
            await one.register(keeper.address)
            await other.register(keeper.address, others=["10.9.9.1:4000", "[fd00::1]:4000"])
            await one.register(keeper.address, tenant="garden", others=["10.9.9.2:4000"])
            found = await other.lookup(keeper.address, most=3)
            assert sorted(found) == ["10.9.9.1:4000", str(one), "[fd00::1]:4000"]
            assert sorted(await one.lookup(keeper.address, most=2)) == ["10.9.9.1:4000", "[fd00::1]:4000"]
            assert await one.lookup(keeper.address, "garden", most=1) == ["10.9.9.2:4000"]
            assert await one.lookup(keeper.address, "nobody", timeout_s=0.05) == []
            assert not one.links and not other.links
            retained = keeper.core.publications.retained.values()
            assert {kept.message.lifetime_s for kept in retained} == {28_800}

    run(test())


def test_what_is_no_address_is_not_found_but_counted():
    async def test():
        async with wb.dps_node() as keeper, wb.dps_node() as node:
            await keep(keeper)
            for payload in (b"garbage", encode_addresses(["nonsense", "1.2.3.4:0", "a\x1b[2Jb:4000", "1.2.3.4:4000"])):
                await keeper.publish((registry.TOPIC, registry.TENANT), payload, ttl_s=100)
            assert await node.lookup(keeper.address, most=1) == ["1.2.3.4:4000"]
            assert node.drops == {"malformed": 4}

    run(test())


def test_a_node_that_keeps_no_addresses_is_said_to_be_none():
    async def test():
        async with wb.dps_node() as keeper, wb.dps_node() as node:
            with pytest.raises(wb.LinkError, match=r"has not acknowledged .* within 0.05 s; a registry"):
                await node.register(keeper.address, timeout_s=0.05)
            with pytest.raises(wb.LinkError, match="is not an address"):
                await node.register(keeper.address, others=["nonsense"])
            with pytest.raises(wb.AttributeFormatError):
                await node.register(keeper.address, tenant="+/x")

    run(test())


def test_address_of_a_node_that_listens_on_all_is_the_one_that_leads_to_the_registry():
    assert registry._address_for(("127.0.0.1", 9), ("0.0.0.0", 4000)) == "127.0.0.1:4000"
    assert registry._address_for(("::1", 9, 0, 0), ("::", 4000, 0, 0)) == "[::1]:4000"
    assert registry._address_for(("127.0.0.1", 9), ("::", 4000, 0, 0)) == "127.0.0.1:4000"
    with pytest.raises(wb.LinkError, match="is a link-local address"):
        registry._address_for(("127.0.0.1", 9), ("fe80::1", 4000, 0, 1))


def test_a_blocking_node_registers_too():
    with wb.dps_node() as keeper, wb.dps_node() as node:
        # A handler of a blocking node must not call it, so the registry is asked from here.
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
        with Command("lookup", keeper.address, "--tenant", "nobody", "-w", "0.1") as command:
            assert command.process.wait(WITHIN_S) == 1
        with Command(
            "publish", "--registry", keeper.address, "--tenant", "t", "a/b", "-m", "x", "-a", "-n", "1"
        ) as node:
            assert subscriber.expect("publication")["data"] == "x"
            assert node.process.wait(WITHIN_S) == 0
