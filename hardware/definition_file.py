"""Generate the C library's definition file, `c/tiny_diffusion.h`, from Python's parameters and registry of keys.

    python hardware/definition_file.py > hardware/c/tiny_diffusion.h

A user's own keys are included if they are registered before the call of `text`::

    import workbench as wb, definition_file

    wb.attributes.register_key(120, "CO2", "ppm")
    print(definition_file.text(wb.Diffusion(max_interests=5, profile="strict")), end="")
"""

from __future__ import annotations

from workbench.attributes import keys
from workbench.attributes.model import APP, LAST_FILTER_KEY, OPERATOR_NAMES, blob_keys
from workbench.attributes.text import APPLICATION_TYPES
from workbench.protocols.diffusion import PARAMETERS, Diffusion, rules, wire
from workbench.protocols.subscriptions import SECOND_US

_BEGIN = """\
/* TinyDiffusion's definition file: sizes, keys, operators, application types and settings.
 *
 * `hardware/definition_file.py` makes it of the parameters and of the registry of keys in Python: change those, not
 * this file. A size may also be set where the library is compiled: cc -DMAX_INTERESTS=5 ... */
#ifndef TINY_DIFFUSION_H
#define TINY_DIFFUSION_H
"""


_MATCHINGS = ("any", "strict", "two-way")  # in the order of enum diffusion_matching


def sizes(protocol: Diffusion) -> dict[str, int]:
    """Return {C macro: value} of the list sizes that are compiled into a node, such as {"MAX_INTERESTS": 5, ...}."""
    return protocol.sizes_in_c() or {}


def settings(protocol: Diffusion) -> dict[str, int | float]:
    """Return the settings with which a C node starts, as {field of `struct diffusion_settings`: value}."""
    return {
        "ttl": protocol.ttl,
        "max_repeats": protocol.max_repeats,
        "reinforce_after": protocol.reinforce_after,
        "exploratory_gradients": protocol.exploratory_gradients,
        "matching": _MATCHINGS.index(protocol.matching),
        "merge_interests": int(protocol.merge_interests),
        "lifetime_s": rules.lifetime_s(protocol.refresh_s, protocol.gradient_lifetime_s),
        "refresh_us": int(protocol.refresh_s * SECOND_US),
        "known_for_us": rules.known_for_us(protocol.refresh_s, protocol.gradient_lifetime_s),
        "tick_us": int(protocol.tick_s * SECOND_US),
        "sample_lifetime_us": int(protocol.sample_lifetime_s * SECOND_US),
        "blacklist_loss": float(protocol.blacklist_loss),
        "blacklist_hysteresis": float(protocol.blacklist_hysteresis),
    }


def text(protocol: Diffusion) -> str:
    """Return the text of the definition file for a protocol."""
    parts = [_BEGIN, _format_sizes(protocol), _format_keys(), _format_types(), _format_settings(protocol), "#endif\n"]
    return "\n".join(parts)


def _format_sizes(protocol: Diffusion) -> str:
    about = {parameter.name.upper(): f"{parameter.unit}: {parameter.reason}" for parameter in PARAMETERS}
    about["MESSAGE_B"] = f"bytes: the {protocol.profile} profile; " + about["PROFILE"].removeprefix(": ")
    lines = ["/* Sizes */\n"]
    for name, value in sizes(protocol).items():
        lines += [f"/* {about[name]} */", f"#ifndef {name}", f"#define {name} {value}", "#endif"]
    lines += [
        "\n/* The most that the attributes of a message take: what is behind the shorter header, that of data. */",
        f"#define ATTRIBUTES_ROOM (MESSAGE_B - {wire.DATA_HEADER_B})",
    ]
    return "\n".join(lines) + "\n"


def _format_keys() -> str:
    known = sorted(keys.known_keys(), key=lambda key: key.number)
    lines = ["/* Keys: how many steps make one unit, and the unit */\n", "enum {"]
    for key in known:
        unit = f"{key.steps} = 1 {key.unit}" if key.type == keys.INT16 else f"a blob, {key.unit}"
        lines.append(f"    {key.name}_KEY = {key.number}, /* {unit.rstrip()} */")
    lines += [f"    FIRST_KEY = {APP},", f"    LAST_KEY = {LAST_FILTER_KEY}", "};\n"]
    tests = " || ".join(f"(key) == {number}" for number in sorted(blob_keys))
    lines += [f"#define IS_BLOB(key) ({tests})\n", "/* Operators */\n", "enum {"]
    names = [f"    {name} = {number}" for number, name in enumerate(OPERATOR_NAMES) if name]
    return "\n".join([*lines, ",\n".join(names), "};"]) + "\n"


def _format_types() -> str:
    lines = ["/* Application types: values of APP_KEY */\n", "enum {"]
    names = [f"    {name.upper()}_TYPE = {number}" for name, number in APPLICATION_TYPES.items()]
    return "\n".join([*lines, ",\n".join(names), "};"]) + "\n"


def _format_settings(protocol: Diffusion) -> str:
    values = [f".{name} = {value!r}" for name, value in settings(protocol).items()]
    body = ", \\\n      ".join(values)
    return f"/* Settings: of a struct diffusion_settings */\n\n#define TINY_DIFFUSION_SETTINGS \\\n    {{ {body} }}\n"


if __name__ == "__main__":
    print(text(Diffusion()), end="")
