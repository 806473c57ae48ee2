"""The registry: a node that all know keeps the addresses of the others, who look each other up.

Theory of operation
    A registry is any node that subscribes to ``dps/registration_service`` and acknowledges what it is given; what is
    published there with a lifetime is retained by it, as any publication is. ``workbench dps subscribe
    dps/registration_service`` is one. An address is registered by publishing it on that topic and a second one, the
    *tenant*, for eight hours, and looked up by subscribing to both. A node does not do so itself, but by a node
    of its own beside it, which links to the registry for that time only: what the application publishes and asks for
    does not go by the registry.

Limits
    A registration cannot be taken back, and the registry believes everybody. A look-up waits for as long as it is told
    to, for there is no last answer.

Differs from the reference implementation in
    addresses   The reference registers the addresses of all external interfaces. Here it is the one that the node
                listens on, or if that is any, the one from which the registry is reached; the application may name
                others.
    duplicates  An address that was registered several times is found once.

Reference
    https://github.com/intel/dps-for-iot, commit b92a83660427.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.errors import DecodeError, LinkError
from workbench.protocols.dps.udp import addresses
from workbench.protocols.dps.udp.addresses import Address
from workbench.protocols.dps.wire.discovery import decode_addresses, encode_addresses

if TYPE_CHECKING:
    from workbench.protocols.dps.udp import UDPNode

TOPIC = "dps/registration_service"
TENANT = "anonymous_tenant"
LIFETIME_S = 28_800
REGISTER_S = 2.0
LOOKUP_S = 5.0
MOST_FOUND = 16


async def register(
    node: UDPNode,
    registry: str | int | Address,
    tenant: str = TENANT,
    others: Sequence[str] = (),
    timeout_s: float = REGISTER_S,
) -> list[str]:
    """Have a registry keep the address of this node for eight hours; returns what was registered, texts.

    registry   where it listens; `workbench.protocols.dps.udp.registry` says what it is
    tenant     a name that all who look each other up have in common
    others     addresses to register in the place of this node's own, as those of a gateway
    timeout_s  how long to wait for the registry's acknowledgement

    LinkError if it does not answer.
    """
    node.check_open()
    for address in others:
        addresses.split(address, "")
    async with node.beside() as own:
        neighbor = await own.link(registry, keep=False)
        texts = list(others) or [_reachable_from(neighbor, node.address)]
        series = await own.publish((TOPIC, tenant), encode_addresses(texts), LIFETIME_S, True, False)
        if await series.next(timeout_s) is None:
            raise LinkError(
                f"{addresses.as_text(neighbor)} has not acknowledged the registration within {timeout_s:g} s; is it a "
                f"registry, which subscribes to {TOPIC}?"
            )
    return texts


def _reachable_from(registry: Address, address: Address) -> str:
    """The text of a node's address for those who know a registry; LinkError if it has none."""
    if ipaddress.ip_address(address[0]).is_unspecified:
        source = addresses.source_towards(registry)
        if source is None:
            raise LinkError(f"there is no way from here to {addresses.as_text(registry)}")
        address = addresses.with_port(source, address[1])
    if len(address) > 2 and address[3]:
        raise LinkError(
            f"{addresses.as_text(address)} means something on one network alone and cannot be registered; let the node "
            "and the registry listen on other addresses"
        )
    return addresses.as_text(address)


async def lookup(
    node: UDPNode,
    registry: str | int | Address,
    tenant: str = TENANT,
    most: int = MOST_FOUND,
    timeout_s: float = LOOKUP_S,
) -> list[str]:
    """Return the addresses (texts) that a registry has of a tenant, but for this node's own.

    All that come within ``timeout_s``, ``most`` at most. LinkError if the registry does not answer.
    """
    node.check_open()
    registered: dict[str, None] = {}
    async with node.beside() as own:
        subscription = await own.subscribe(TOPIC, tenant)
        await own.link(registry, keep=False)
        end_s = asyncio.get_running_loop().time() + timeout_s
        while len(registered) < most and (left_s := end_s - asyncio.get_running_loop().time()) > 0:
            publication = await subscription.next(left_s)
            if publication is not None:
                registered |= dict.fromkeys(_addresses_in(publication.data, node))
    return list(registered)[:most]


def _addresses_in(payload: bytes, node: UDPNode) -> list[str]:
    """The addresses of a registration that are none of the node's own; the node counts what is none."""
    try:
        texts = decode_addresses(payload)
    except DecodeError:
        node.refused["malformed"] += 1
        return []
    registered = []
    for text in texts:
        try:
            host, port = addresses.split(text, "")
        except LinkError:
            host, port = "", 0
        if not (host and port and host.isascii() and host.isprintable()):
            node.refused["malformed"] += 1
        elif not _is_own(node, host, port):
            registered.append(text)
    return registered


def _is_own(node: UDPNode, host: str, port: int) -> bool:
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        return False
    return node.is_own((host, port) if version == 4 else (host, port, 0, 0))
