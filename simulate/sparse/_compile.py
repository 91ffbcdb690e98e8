"""How the kernels are compiled: one decorator that the type checker understands, and operations that numba lacks."""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])

Eight = tuple[float, float, float, float, float, float, float, float]

# numpy division: Python's error checks would stop vectorisation. No fast mathematics: reassociation would undo the
# rounding by a large constant in `exp`, and contraction fuses or not depending on what is inlined where, so that two
# processes could differ in a last bit. `fma` fuses where it is written.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}


def compiled(function: Function) -> Function:
    """The function as machine code, compiled at its first call."""
    compiled_function: Function = numba.njit(**OPTIONS)(function)
    return compiled_function


def inlined(function: Function) -> Function:
    """A small function that is pasted into its callers, so that loops around it can be vectorised."""
    compiled_function: Function = numba.njit(inline="always", **OPTIONS)(function)
    return compiled_function


def compiled_once(function: Function) -> Function:
    """As `compiled`, and kept on disk for later processes: beside its file, or where the user's caches are."""
    try:
        compiled_function: Function = numba.njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # no folder that can be written
        return compiled(function)
    cache = cast(Any, compiled_function)._cache
    save = cache.save_overload

    def save_if_possible(*what: Any) -> None:
        with suppress(OSError):  # a full disk, say: the code is compiled all the same
            save(*what)

    cache.save_overload = save_if_possible
    return compiled_function


def source_digest() -> str:
    """Digest of all sources of this package.

    numba looks only at the file of the function that it keeps on disk, not at the files of those that are called.
    """
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


def _bits_of(typing_context: Any, value: Any) -> Any:
    """The 64 bits of a float64 as uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return numba.uint64(numba.float64), generate


def _float_of(typing_context: Any, bits: Any) -> Any:
    """The float64 that has these 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return numba.float64(numba.uint64), generate


def _fma(typing_context: Any, x: Any, y: Any, z: Any) -> Any:
    """The float64 nearest to x * y + z: one rounding, not two."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return numba.float64(numba.float64, numba.float64, numba.float64), generate


def _vector_of(builder: Any, values: list[Any]) -> Any:
    vector = ir.Constant(ir.VectorType(ir.DoubleType(), len(values)), ir.Undefined)
    for index, value in enumerate(values):
        vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), index))
    return vector


def _number_in(builder: Any, relation: str, vector: Any, bound: Any) -> Any:
    """How many values of a vector have the relation to a bound: one comparison, no branch."""
    count = vector.type.count
    mask = builder.fcmp_ordered(relation, vector, _vector_of(builder, [bound] * count))
    return builder.zext(builder.ctpop(builder.bitcast(mask, ir.IntType(count))), ir.IntType(64))


def _number_below(typing_context: Any, values: Any, begin: Any, bound: Any) -> Any:
    """How many of values[begin : begin + 32] are < bound."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, begin, bound = arguments
        first = builder.gep(context.make_array(signature.args[0])(context, builder, value=array).data, [begin])
        vector = builder.bitcast(first, ir.VectorType(ir.DoubleType(), 32).as_pointer())
        return _number_in(builder, "<", builder.load(vector, align=8), bound)

    return numba.int64(numba.types.Array(numba.float64, 1, "C"), numba.int64, numba.float64), generate


def _number_up_to(typing_context: Any, eight: Any, bound: Any) -> Any:
    """How many of eight values are <= bound."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = [builder.extract_value(arguments[0], index) for index in range(8)]
        return _number_in(builder, "<=", _vector_of(builder, values), arguments[1])

    return numba.int64(eight, numba.float64), generate


# cast: the type checker would take the typing context for an argument
bits_of = cast(Callable[[float], np.uint64], intrinsic(_bits_of))
float_of = cast(Callable[[np.uint64], float], intrinsic(_float_of))
fma = cast(Callable[[float, float, float], float], intrinsic(_fma))
number_below = cast(Callable[[Any, int, float], int], intrinsic(_number_below))
number_up_to = cast(Callable[[Eight, float], int], intrinsic(_number_up_to))
