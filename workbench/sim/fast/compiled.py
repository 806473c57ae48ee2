"""Decorators that compile functions into a loop, and pointers that pass arrays to them, by numba's public interface.

Theory of operation
    A named tuple of sixty arrays, passed by value, becomes some four hundred arguments. Each call that is not inlined
    copies them, and contains the compiled code of this copying. `by_reference` stores the tuple on the stack of the
    calling function and returns a pointer to it; ``core.frames`` then reads that field through the pointer. The pointer
    is valid as long as the calling function runs.

    Arrays are borrowed from the tuple and not reference-counted: functions that take such a pointer are compiled
    without reference counting, and must not allocate. Reference counting would take two atomic additions per array and
    call, which would be most of the cost of a run.

    `private_numba.py` makes compilation much faster. If the version of numba is newer than those supported by that
    module, plain `numba.njit` replaces it (`IS_PLAIN`), with the same traces.
"""

from __future__ import annotations

import hashlib
import os
from types import FunctionType, ModuleType
from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core.typing.templates import AttributeTemplate  # the only class that `infer_getattr` takes
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_jitable,
    register_model,
    typeof_impl,
)

from workbench.sim.fast.layout import CodesMeta

_INDEX = ir.IntType(32)

# The first version of numba that `private_numba.py` does not support.
_UNTESTED = (0, 70)
IS_PLAIN = bool(os.environ.get("WORKBENCH_PLAIN_NUMBA")) or numba.version_info.short >= _UNTESTED

# Loop functions borrow arrays, so nothing is reference-counted.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}

COMPILED_MODULES: set[str] = set()  # modules that define functions of a loop
_registered_functions: set[Any] = set()

if not IS_PLAIN:
    from workbench.sim.fast import private_numba


def compiled(function: Any) -> Any:
    """Register a function so that compiled loops can call it, and return the function. Python can still call it."""
    return _add_to_loop(function, False)


def hot(function: Any) -> Any:
    """Register a short, often called function as `compiled` does; compiled loops inline it. Return the function."""
    return _add_to_loop(function, True)


def compiled_rules(module: ModuleType) -> None:
    """Register all functions of a module as `compiled` does, so that both engines share them."""
    for function in vars(module).values():
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            compiled(function)


def compiled_loop(function: Any) -> Any:
    """Return a compiled version of a protocol's main loop for Python to call; its machine code is cached on disk."""
    options = _OPTIONS if IS_PLAIN else _OPTIONS | {"pipeline_class": private_numba.WholeCompiler}
    return njit(**options, cache=True)(function)


def _add_to_loop(function: Any, is_hot: bool) -> Any:
    if function not in _registered_functions:
        _registered_functions.add(function)
        COMPILED_MODULES.add(function.__module__)
        if IS_PLAIN:
            register_jitable(**_OPTIONS)(function)
        else:
            private_numba.add_part(function, _OPTIONS | {"forceinline": is_hot})
    return function


# Codes


class _CodesClass(types.EnumClass):
    @property
    def member_type(self) -> Any:
        # A type of its own for each class's members would compile each function once per class.
        return self.dtype


register_model(_CodesClass)(models.OpaqueModel)


@typeof_impl.register(CodesMeta)
def _type_of_codes(value: Any, context: Any) -> Any:
    return _CodesClass(value, types.int64)


# References


class Reference(types.Type):
    """Numba's type for a pointer to a named tuple; ``target`` is numba's type of the named tuple."""

    def __init__(self, target: Any) -> None:
        self.target = target
        # The name becomes part of the name of each function with such an argument; in full it has some 5,000 letters.
        digest = hashlib.sha256(f"{target} {target.fields}".encode()).hexdigest()[:16]
        super().__init__(name=f"Reference({target.instance_class.__name__} {digest})")


@register_model(Reference)
class _ReferenceModel(models.PointerModel):
    def __init__(self, manager: Any, kind: Reference) -> None:
        self._pointee_model = manager.lookup(kind.target)
        self._pointee_be_type = self._pointee_model.get_value_type()
        models.PrimitiveModel.__init__(self, manager, kind, self._pointee_be_type.as_pointer())


@infer_getattr
class _ReferenceAttributes(AttributeTemplate):
    key = Reference

    def generic_resolve(self, typ: Any, attr: str) -> Any:  # type: ignore[override]
        if attr in typ.target.fields:
            return typ.target[typ.target.fields.index(attr)]
        return None


@lower_getattr_generic(Reference)
def _get_field(context: Any, builder: Any, kind: Reference, pointer: Any, name: str) -> Any:
    index = kind.target.fields.index(name)
    return builder.load(builder.gep(pointer, [_INDEX(0), _INDEX(index)], inbounds=True))


@intrinsic
def _by_reference(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        with builder.goto_entry_block():
            pointer = builder.alloca(arguments[0].type)
        builder.store(arguments[0], pointer)
        return pointer

    return Reference(value)(value), generate


by_reference: Any = _by_reference

# Bits


@intrinsic
def _trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Define for numba a function that counts the zero bits below the lowest set bit of a nonzero uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def _count_ones(typing_context: Any, word: Any) -> Any:
    """Define for numba a function that counts the set bits of a uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


trailing_zeros: Any = _trailing_zeros
count_ones: Any = _count_ones
