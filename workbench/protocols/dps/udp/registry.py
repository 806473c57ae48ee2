"""The registry: a well-known node that stores the addresses of other nodes, and look-ups of these addresses.

Theory of operation
    A registry is any node that subscribes to ``dps/registration_service`` and acknowledges the publications that it
    receives. The command ``workbench dps subscribe dps/registration_service`` runs such a node. Like any node it
    retains publications for their lifetime. To register an address, a node publishes it on that topic and a second
    topic, the *tenant*; the publication is retained for eight hours. To look addresses up, a node subscribes to both
    topics. For each operation the node creates a temporary second node, and only the temporary node links to the
    registry. So the registry does not receive the application's publications and subscriptions.

Limits
    A registration cannot be withdrawn, and the registry does not verify it. A look-up that finds fewer than
    ``most`` addresses waits for its whole timeout, because no message marks the last address.

Differs from the reference implementation in
    addresses   The reference registers the addresses of all external interfaces. This node registers the address on
                which it listens. If that is a wildcard address, it registers the source address of datagrams to the
                registry. The application may pass other addresses.
    duplicates  If an address was registered several times, a look-up returns it once.

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
    """Register the address of this node for eight hours; return the registered addresses as texts.

    registry   address of the registry, a node that subscribes to `TOPIC` and acknowledges publications
    tenant     name that a group of nodes shares; a look-up returns addresses of one tenant
    others     addresses to register instead of this node's own address, for example that of a gateway
    timeout_s  seconds to wait for the registry's acknowledgement

    Raises LinkError if the registry does not answer, or if an address is invalid.
    """
    node.check_open()
    for other_address in others:
        addresses.split(other_address, "")
    async with node.make_sibling() as temporary_node:
        neighbor = await temporary_node.link(registry, keep=False)
        address_texts = list(others) or [_address_for(neighbor, node.address)]
        series = await temporary_node.publish((TOPIC, tenant), encode_addresses(address_texts), LIFETIME_S, True, False)
        if await series.next(timeout_s) is None:
            raise LinkError(
                f"{addresses.as_text(neighbor)} has not acknowledged the registration within {timeout_s:g} s; a "
                f"registry must subscribe to {TOPIC} and acknowledge publications"
            )
    return address_texts


def _address_for(registry: Address, address: Address) -> str:
    """Return the address at which hosts near the registry can reach a node, as a text.

    ``address``: the address on which the node listens. If it is a wildcard address such as 0.0.0.0, the source address
    of datagrams to the registry replaces it.
    Raises LinkError if no route leads to the registry, or if the address is link-local.
    """
    if ipaddress.ip_address(address[0]).is_unspecified:
        source_address = addresses.source_towards(registry)
        if source_address is None:
            raise LinkError(
                f"no route leads from this machine to the registry {addresses.as_text(registry)}; check its address"
            )
        address = addresses.with_port(source_address, address[1])
    if len(address) > 2 and address[3]:
        raise LinkError(
            f"{addresses.as_text(address)} is a link-local address and cannot be registered; the node and the registry "
            "must listen on other addresses"
        )
    return addresses.as_text(address)


async def lookup(
    node: UDPNode,
    registry: str | int | Address,
    tenant: str = TENANT,
    most: int = MOST_FOUND,
    timeout_s: float = LOOKUP_S,
) -> list[str]:
    """Return the addresses, as texts, that a registry stores for a tenant, except this node's own address.

    registry   address of the registry
    tenant     name that a group of nodes shares
    most       the call returns once it has this many addresses
    timeout_s  seconds after which the call returns the addresses received so far

    Raises LinkError if the registry does not answer the request for a link.
    """
    node.check_open()
    found_addresses: dict[str, None] = {}
    async with node.make_sibling() as temporary_node:
        subscription = await temporary_node.subscribe(TOPIC, tenant)
        await temporary_node.link(registry, keep=False)
        end_s = asyncio.get_running_loop().time() + timeout_s
        while len(found_addresses) < most and (remaining_s := end_s - asyncio.get_running_loop().time()) > 0:
            publication = await subscription.next(remaining_s)
            if publication is not None:
                found_addresses |= dict.fromkeys(_addresses_in(publication.data, node))
    return list(found_addresses)[:most]


def _addresses_in(payload: bytes, node: UDPNode) -> list[str]:
    """Return the addresses in a registration (``payload``) as texts, without the address of ``node``.

    Malformed addresses are left out, and counted in ``node.registry_drops``.
    """
    try:
        address_texts = decode_addresses(payload)
    except DecodeError:
        node.registry_drops["malformed"] += 1
        return []
    valid_addresses = []
    for address_text in address_texts:
        try:
            host, port = addresses.split(address_text, "")
        except LinkError:
            host, port = "", 0
        if not (host and port and host.isascii() and host.isprintable()):
            node.registry_drops["malformed"] += 1
        elif not _is_own(node, host, port):
            valid_addresses.append(address_text)
    return valid_addresses


def _is_own(node: UDPNode, host: str, port: int) -> bool:
    try:
        ip_version = ipaddress.ip_address(host).version
    except ValueError:
        return False
    return node.is_own((host, port) if ip_version == 4 else (host, port, 0, 0))
