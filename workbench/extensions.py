"""Methods of a class that modules of higher layers implement, such as displays and runs (`public_names.EXTENSIONS`).

The module of the class imports none of these modules. The first use of such a method loads its module and stores the
function in the class, so its signature, documentation and speed are those of an ordinary method.
"""

from importlib import import_module
from typing import Any, TypeVar

from workbench.keywords import checked_method
from workbench.public_names import EXTENSIONS

Extended = TypeVar("Extended", bound=type)


class Extension:
    """A placeholder for method ``name`` of class ``owner``; its first use loads ``function``, "module.function"."""

    def __init__(self, owner: type, name: str, function: str) -> None:
        self.owner, self.name, self.function = owner, name, function

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        module, _, name = self.function.rpartition(".")
        function = getattr(import_module(f"workbench.{module}"), name)
        method = checked_method(function, f"{self.owner.__name__}.{self.name}")
        setattr(self.owner, self.name, method)
        return method.__get__(instance, owner)


def extensible(owner: Extended) -> Extended:
    """Add to a class the methods that other modules implement for it (`EXTENSIONS`); return the class (a decorator)."""
    for name, function in EXTENSIONS[f"{owner.__module__}.{owner.__qualname__}".removeprefix("workbench.")].items():
        setattr(owner, name, Extension(owner, name, function))
    return owner
