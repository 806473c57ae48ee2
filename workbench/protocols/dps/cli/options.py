"""The options of ``workbench dps``, which subscribes, publishes and bridges on a mesh of DPS nodes over UDP.

These options follow the example programs of the C implementation, with two differences: by default a node listens only
on the loopback interface, and does not multicast.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from workbench.protocols.dps.cli.keys import add_key_options

_LOOPBACK = "127.0.0.1:0"
_EXAMPLES = """\
two nodes:
  workbench dps subscribe -l 4000 'sensor/+/temp'
  workbench dps publish -p 4000 sensor/7/temp -m 21.5 -a

with the example programs of the C implementation, which encrypt unless they have -x 0, and use [::1] as the host of a
port given alone:
  subscriber -x 0 -l 4001 'sensor/+/temp'
  workbench dps publish -p 4001 sensor/7/temp -m 21.5 -a
  workbench dps subscribe -l 4002 'sensor/+/temp'
  publisher -x 0 -a -p 127.0.0.1:4002 -m 21.5 sensor/7/temp

find nodes, and link without addresses (--multicast: beyond this machine):
  workbench dps discover house --topic sensor/7/temp
  workbench dps subscribe --discover house 'sensor/+/temp'
  workbench dps publish --discover house -w 1 sensor/7/temp -m 21.5

with a registry (any node that subscribes to this topic is one):
  workbench dps subscribe -l 4000 dps/registration_service
  workbench dps subscribe --registry 127.0.0.1:4000 'sensor/+/temp'
  workbench dps lookup 127.0.0.1:4000
"""


def add_parser(commands: Any) -> None:
    """Add the command ``dps`` with its subcommands to ``commands``, the subparsers of the command line."""
    dps = commands.add_parser(
        "dps",
        help="subscribe, publish and bridge on a mesh of DPS nodes (UDP), and find nodes",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subcommands = dps.add_subparsers(dest="dps_command", required=True, metavar="COMMAND")
    for command_name, (help_text, add_options) in _COMMANDS.items():
        parser = subcommands.add_parser(command_name, help=help_text)
        add_options(parser)
        _add_common_options(parser)
        parser.set_defaults(command=_make_command(command_name))


def _add_subscribe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "topics",
        nargs="*",
        metavar="TOPIC",
        help="all topics must match; + is any level, # any further levels; + or # alone receives nothing over links",
    )
    parser.add_argument(
        "-s",
        dest="sets",
        nargs="+",
        action="append",
        default=[],
        metavar="TOPIC",
        help="topics of another subscription; may be repeated",
    )
    parser.add_argument("-m", "--multicast", action="store_true", help="receive multicast publications, too")
    parser.add_argument(
        "-a", "--ack", metavar="TEXT", help="payload of acknowledgements (default: a text with this node's address)"
    )
    parser.add_argument("--no-ack", action="store_true", help="do not acknowledge publications")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print publications")
    parser.add_argument("-j", "--cbor", action="store_true", help="payloads are CBOR; print them as JSON")
    parser.add_argument("--expired", action="store_true", help="also print when a retained publication ends")
    parser.add_argument("-n", "--count", type=_positive_integer, help="end after this number of publications")
    parser.add_argument("-w", "--wait", type=_seconds, default=0.0, metavar="S", help="seconds to wait before linking")
    _add_discovery_options(parser)
    add_key_options(parser, publishes=False)


def _add_publish(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", nargs="*", metavar="TOPIC")
    add_publication(parser)
    parser.add_argument(
        "-w", "--wait", type=_seconds, default=0.0, metavar="S", help="seconds to wait between linking and publishing"
    )
    parser.add_argument(
        "--stay",
        type=_seconds,
        metavar="S",
        help="seconds to keep running after publishing (default: 2 with -a, else "
        "0); the node retains publications until it ends",
    )
    parser.add_argument(
        "-n", "--count", type=_positive_integer, help="with -a: end after this number of acknowledgements"
    )
    parser.add_argument("--multicast", action="store_true", help="also multicast the publication")
    parser.add_argument("--cbor", action="store_true", help="acknowledgements are CBOR; print them as JSON")
    _add_discovery_options(parser)
    add_key_options(parser, publishes=True)


def add_publication(parser: argparse.ArgumentParser) -> None:
    """Add the options of a publication, which are the same on the command line and in lines of standard input."""
    payload = parser.add_mutually_exclusive_group()
    payload.add_argument("-m", "--message", default="", metavar="TEXT", help="payload")
    payload.add_argument("-j", "--json-message", metavar="JSON", help="payload, sent as CBOR")
    parser.add_argument(
        "-t",
        "--ttl",
        type=int,
        default=0,
        metavar="S",
        help="seconds to retain the publication; -1: end a retained publication",
    )
    parser.add_argument("-a", "--ack", action="store_true", help="request acknowledgements, and print them")
    parser.add_argument("--no-wildcards", action="store_true", help="send it only to subscriptions without wildcards")


def _add_bridge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-m",
        "--multicast",
        action="store_true",
        help="also forward multicast publications of this network to the linked nodes",
    )
    _add_discovery_options(parser)


def _add_discover(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "discover", nargs="?", default="generic_discovery", metavar="SERVICE", help="(default: generic_discovery)"
    )
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC",
        help="print which nodes may subscribe to it; may be repeated",
    )
    parser.add_argument(
        "-m", "--multicast", action="store_true", help="also find nodes of other machines; needs -l [::]:0"
    )
    parser.add_argument("-j", "--cbor", action="store_true", help="announced data are CBOR; print them as JSON")
    parser.add_argument("--announce", default="", metavar="TEXT", help="data for the nodes that find this one")
    parser.add_argument("-n", "--count", type=_positive_integer, help="end after this number of nodes")


def _add_register(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("registry", metavar="REGISTRY", help="host:port of the registry")
    parser.add_argument("addresses", nargs="+", metavar="ADDRESS", help="host:port to register")
    _add_tenant_option(parser)


def _add_lookup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("registry", metavar="REGISTRY", help="host:port of the registry")
    parser.add_argument(
        "-w", "--wait", type=_seconds, default=5.0, metavar="S", help="seconds to wait for addresses (default: 5)"
    )
    parser.add_argument(
        "-n", "--count", type=_positive_integer, default=16, help="end after this number of addresses (default: 16)"
    )
    _add_tenant_option(parser)


def _add_tenant_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tenant", default="anonymous_tenant", help="group of nodes at the registry (default: anonymous_tenant)"
    )


def _add_discovery_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--discover", metavar="SERVICE", help="find nodes of this service, and link to possible subscribers"
    )
    parser.add_argument(
        "--announce", default="", metavar="TEXT", help="with --discover: data for the nodes that find this one"
    )
    parser.add_argument(
        "--registry", metavar="ADDRESS", help="register at this registry, and link to a registered node"
    )
    _add_tenant_option(parser)


def _add_common_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-l",
        "--listen",
        default=_LOOPBACK,
        metavar="ADDRESS",
        help="host:port, or a port of 127.0.0.1 (default: any free port); [::]:0 accepts every host: see the README",
    )
    parser.add_argument(
        "-p",
        "--link",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="host:port or port to link to; may be repeated",
    )
    parser.add_argument(
        "-r",
        "--update-ms",
        type=_positive_integer,
        metavar="MS",
        help="shortest interval between subscription messages, in ms (default: 2000)",
    )
    parser.add_argument("--link-loss", type=_seconds, metavar="S", help="seconds between keep-alives (default: 30)")
    parser.add_argument(
        "--relink", type=_seconds, metavar="S", help="seconds between requests for a lost link (default: 10)"
    )
    parser.add_argument("--for", dest="for_s", type=_seconds, metavar="S", help="end after this number of seconds")
    parser.add_argument(
        "--separators",
        default="/.",
        help="characters between levels of topics; the same in all nodes (default: /. as in the C examples)",
    )
    parser.add_argument(
        "-b",
        "--filter-bits",
        type=_positive_integer,
        help="length of filters in bits; the same in all nodes (default: 8192)",
    )
    parser.add_argument(
        "--hashes",
        type=_positive_integer,
        help="bits that an item sets in a filter; the same in all nodes (default: 3)",
    )
    parser.add_argument(
        "--interface",
        action="append",
        metavar="NAME",
        help="network interface for multicast (default: all except loopback); may be repeated",
    )
    parser.add_argument(
        "--multicast-port", type=_positive_integer, metavar="PORT", help="UDP port of multicasts (default: 5683)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.add_argument("-d", "--debug", action="store_true", help="also print dropped and forwarded messages")


def _positive_integer(text: str) -> int:
    if not (text.isdecimal() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 999,999,999")
    return value


def _make_command(name: str) -> Callable[[argparse.Namespace], int]:
    """Return a function that runs the command ``name`` of `commands.py`, and returns the exit status.

    The function imports the module only when it is called, because asyncio loads slowly.
    """

    def call(options: argparse.Namespace) -> int:
        from workbench.protocols.dps.cli import commands

        return commands.run(options, getattr(commands, name))

    return call


# Name -> help text, and the function that adds the command's own options.
_COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "subscribe": ("print publications on topics, and acknowledge them on request", _add_subscribe),
    "publish": (
        "publish once on topics; without topics, once for each line of standard input: "
        "TOPIC ... [-t S] [-a] [-m TEXT | -j JSON]",
        _add_publish,
    ),
    "bridge": ("join meshes: forward publications between the linked nodes", _add_bridge),
    "discover": ("list the nodes that take part in discovery, and their changes", _add_discover),
    "register": ("register addresses of nodes for eight hours", _add_register),
    "lookup": ("list registered addresses", _add_lookup),
}
