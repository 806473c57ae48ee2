"""A research workbench for publish/subscribe in sensor networks.

Public names (`public_names.py`) load lazily: ``import workbench`` loads no module, and a name loads its module at its
first use. In a notebook, ``import workbench`` also folds the tracebacks of the workbench's errors. No mote loads this
file.
"""

TYPE_CHECKING = False  # type checkers treat it as `typing.TYPE_CHECKING`; importing `typing` takes time
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.2.0"


def __getattr__(name: str) -> "Any":
    from importlib import import_module
    from importlib.util import find_spec

    from workbench.public_names import HOME, RENAMED

    if name == "__all__":
        return sorted(HOME)
    if name.startswith("_"):
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    if name not in HOME:
        if name[0].isupper():
            plugin = import_module("workbench.plugins").load("protocols", name)
            if plugin is not None:
                return plugin
        elif find_spec(f"workbench.{name}") is not None:
            # `from workbench import plugins` first looks up the name, and imports the module after this error.
            raise AttributeError(f"module 'workbench' has no attribute {name!r}")
        from workbench import topology
        from workbench.keywords import UnknownName, former, new_name

        if name in RENAMED["workbench"]:
            return __getattr__(new_name("workbench", name, stacklevel=2))
        try:
            return former("workbench", name, stacklevel=2)
        except AttributeError:
            # wb.grid(5, 5) was probably meant as wb.topology.grid(5, 5).
            suggested_names = [*HOME, *(f"topology.{function}" for function in topology.__all__)]
            raise UnknownName("module 'workbench'", name, suggested_names) from None
    module = import_module(f"workbench.{HOME[name]}")
    # A public name is a module, or a name in one.
    value = module if HOME[name].rpartition(".")[2] == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from workbench.public_names import HOME

    return sorted({*HOME, "__version__"})


def _fold_errors() -> None:
    """Display the workbench's errors in a notebook as a sentence with a folded traceback; elsewhere do nothing."""
    import sys

    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is not None:
        from workbench.folded_errors import fold

        fold(shell)


_fold_errors()
