"""Attributes from a mapping of keys to values: {"TEMP": 25} -> TEMP IS 25.

A call of the package ``workbench.attributes`` itself calls `describe`: ``wb.attributes(TEMP=25, HUMIDITY=40)``.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Mapping
from importlib import import_module
from numbers import Integral, Real
from types import ModuleType
from typing import Any

from workbench.attributes.keys import BLOB, Key, key_of, make
from workbench.attributes.model import APP, IS, Attribute
from workbench.attributes.text import APPLICATION_TYPES
from workbench.errors import AttributeFormatError
from workbench.suggestion import meant

# A mote has no docstrings of named tuples.
Attribute.__doc__ = """A key, an operator and a value, as numbers: (51, 1, 2500) is TEMP IS 25.

``value`` counts the steps of the key, 0.01 °C for TEMP; for a blob it is bytes. The constructor checks nothing:
`attributes` and `parse` make attributes of names and units.
"""


def describe(values: Mapping[str | int, Any] | None = None, /, **more: Any) -> tuple[Attribute, ...]:
    """Return the attributes "KEY IS VALUE" for keys (names or numbers) and values in the key's unit.

    A blob's value is bytes or text; the value of the key APP is an application type. Raises AttributeFormatError for an
    unknown key or wrong value.

    >>> describe(TEMP=26.5)
    (Attribute(key=51, operator=1, value=2650),)
    """
    if values is not None and not isinstance(values, Mapping):
        raise AttributeFormatError(
            f'`values` is {values!r:.60}; it must be a mapping: use attributes(TEMP=25), or parse("TEMP IS 25")'
        )
    pairs = [*(values or {}).items(), *more.items()]
    return tuple(_make_attribute(name, value) for name, value in pairs)


def _make_attribute(name: Any, value: Any) -> Attribute:
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise AttributeFormatError(f"key is {name!r:.60}; it must be a name, as in {{'TEMP': 25}}, or a number")
    key = key_of(name)
    return make(key.number, IS, _to_plain_value(key, value))


def _to_plain_value(key: Key, value: Any) -> Any:
    """Convert ``value`` to a type that `keys.make` accepts for this key.

    For a blob key, a text is converted to bytes. For the key APP, the name of an application type is converted to its
    number. Any other text raises AttributeFormatError. A numpy number is converted to a Python number, and values of
    other types are returned unchanged.
    """
    if isinstance(value, str):
        return _convert_text(key, value)
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return operator.index(value) if isinstance(value, Integral) else float(value)


def _convert_text(key: Key, value: str) -> Any:
    if key.type == BLOB:
        return value.encode(errors="surrogatepass")
    type_numbers = (
        {type_name.lower(): type_number for type_name, type_number in APPLICATION_TYPES.items()}
        if key.number == APP
        else {}
    )
    if value.lower() in type_numbers:
        return type_numbers[value.lower()]
    raise AttributeFormatError(
        f"{key.name} is {value!r:.60}{meant(value, sorted(APPLICATION_TYPES) if type_numbers else ())}; "
        f"it must be a number{' or an application type' if type_numbers else ''}"
    )


class _CallableModule(ModuleType):
    """A module that can be called. It is pickled by name, as cloudpickle does with other modules."""

    __call__ = staticmethod(describe)

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, (self.__name__,)


def make_callable(module: str) -> None:
    """Make the loaded module with this name callable: a call of the module calls `describe`."""
    sys.modules[module].__class__ = _CallableModule
