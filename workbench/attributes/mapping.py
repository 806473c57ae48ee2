"""Attributes from a mapping of keys to values: {"TEMP": 25} -> TEMP IS 25.

``workbench.attributes`` itself can be called with the same effect: ``wb.attributes(TEMP=25, HUMIDITY=40)``.
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
    return tuple(_describe(name, value) for name, value in pairs)


def _describe(name: Any, value: Any) -> Attribute:
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise AttributeFormatError(f"key is {name!r:.60}; it must be a name, as in {{'TEMP': 25}}, or a number")
    key = key_of(name)
    return make(key.number, IS, _to_plain_value(key, value))


def _to_plain_value(key: Key, value: Any) -> Any:
    """Convert a value of a key to a type that `keys.make` accepts.

    A text is converted to bytes if the key is a blob key, and to a number if it names an application type and the key
    is APP. A numpy number is converted to a Python number. Values of other types are returned unchanged.
    Raises AttributeFormatError for another text.
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
    """A module that can be called. Pickling stores only its name, as for other modules in cloudpickle."""

    __call__ = staticmethod(describe)

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, (self.__name__,)


def make_callable(module: str) -> None:
    """Make the loaded module with this name callable: a call of the module calls `describe`."""
    sys.modules[module].__class__ = _CallableModule
