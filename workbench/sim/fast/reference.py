"""Named tuples of arrays, handed to numba's functions as one pointer.

Theory of operation
    A named tuple of sixty arrays passed by value is some four hundred arguments, copied with each call that is not
    inlined, and compiled as often. `by_reference` keeps the tuple on the stack of the function that calls it and makes
    a pointer of it; ``core.frames`` then reads that field where it lies. The pointer is good as long as that function
    runs.

    Arrays are borrowed from the tuple and never counted: functions that take such a pointer are compiled with the
    decorators here, which switch the counting of references off. They must not allocate. That makes calls cheap too:
    two atomic additions per array and call are most of what a run would cost otherwise.
"""

from __future__ import annotations

import hashlib
from typing import Any

from numba import njit, types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, register_jitable, register_model

from workbench.sim.fast.compiler import PartCompiler, WholeCompiler

_UNCOUNTED: dict[str, Any] = {"_nrt": False}  # numba's own name for no run time that counts references
# A part of a loop is called by other parts alone: neither Python nor C needs a way in.
# A function whose options leave `forceinline` out inherits it from its caller: all that a `hot` function calls would be
# compiled a second time, and copied into it.
_PART = _UNCOUNTED | {
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": PartCompiler,
    "forceinline": False,
}
COMPILED_MODULES: set[str] = set()  # which modules have functions of these decorators, hence parts of a loop
_known: set[Any] = set()


def inlined(function: Any) -> Any:
    """A function that numba makes a part of those that call it. For Python it stays what it is, as a rule must."""
    # Of two registrations numba would have to choose.
    if function not in _known:
        _known.add(function)
        register_jitable(**_PART)(_noted(function))
    return function


def pasted(function: Any) -> Any:
    """Numba copies the function into its callers: for a piece of a loop, where what it calls is compiled once."""
    return njit(inline="always", error_model="numpy", **_UNCOUNTED)(_noted(function))


def hot(function: Any) -> Any:
    """As `inlined`, and LLVM is not asked whether it is worth it: for what happens at each reception, and is short.

    What is long, or called from many places, takes twice as long to compile so.
    """
    register_jitable(**_PART | {"forceinline": True})(_noted(function))
    return function


def outlined(function: Any) -> Any:
    """A function for numba that is called: for what is rare and long."""
    return njit(error_model="numpy", **_PART)(_noted(function))


def kept_on_disk(function: Any) -> Any:
    """A function that Python calls, whose machine code the next process finds."""
    return njit(error_model="numpy", cache=True, pipeline_class=WholeCompiler, **_UNCOUNTED)(_noted(function))


def _noted(function: Any) -> Any:
    COMPILED_MODULES.add(function.__module__)
    return function


class Reference(types.Type):
    """The numba type of a pointer to a named tuple of type ``target``."""

    def __init__(self, target: Any) -> None:
        self.target = target
        # The name is in the name of each function that takes one; in full it has some 5,000 letters.
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
    return builder.load(cgutils.gep_inbounds(builder, pointer, 0, index))


@intrinsic
def _by_reference(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return cgutils.alloca_once_value(builder, arguments[0])

    return Reference(value)(value), generate


by_reference: Any = _by_reference
