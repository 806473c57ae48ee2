"""Methods of a class that are functions of other modules, for example its display in a notebook.

`public_names.EXTENSIONS` lists them. The class's module does not import the other modules, because they depend on the
class. The first use of such a method loads its module and stores the function in the class. From then on it is an
ordinary method.
"""

from importlib import import_module
from typing import Any, TypeVar

from workbench.keywords import checked_method
from workbench.public_names import EXTENSIONS

Extended = TypeVar("Extended", bound=type)


class Extension:
    """A placeholder for the method ``name`` of the class ``owner``. Its first use replaces it by the real method.

    ``function`` is the function that becomes the method, as "module.function" without "workbench.".
    """

    def __init__(self, owner: type, name: str, function: str) -> None:
        self.owner, self.name, self.function = owner, name, function

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        module, _, name = self.function.rpartition(".")
        function = getattr(import_module(f"workbench.{module}"), name)
        method = checked_method(function, f"{self.owner.__name__}.{self.name}")
        setattr(self.owner, self.name, method)
        return method.__get__(instance, owner)


def extensible(owner: Extended) -> Extended:
    """Add to the class ``owner`` a placeholder for each method that another module implements, and return the class.

    A class decorator. `EXTENSIONS` lists the methods of each class.
    """
    for name, function in EXTENSIONS[f"{owner.__module__}.{owner.__qualname__}".removeprefix("workbench.")].items():
        setattr(owner, name, Extension(owner, name, function))
    return owner
