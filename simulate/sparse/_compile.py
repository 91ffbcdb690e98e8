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

FLOATS = numba.types.Array(numba.float64, 1, "C")

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


Vector = Any  # of the compiler: a value that stands for several numbers
Builder = Any

DOUBLE, INT32, INT64 = ir.DoubleType(), ir.IntType(32), ir.IntType(64)


def _bits_of(typing_context: Any, value: Any) -> Any:
    """The 64 bits of a float64 as uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], INT64)

    return numba.uint64(numba.float64), generate


def _float_of(typing_context: Any, bits: Any) -> Any:
    """The float64 that has these 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], DOUBLE)

    return numba.float64(numba.uint64), generate


def _fma(typing_context: Any, x: Any, y: Any, z: Any) -> Any:
    """The float64 nearest to x * y + z: one rounding, not two."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return numba.float64(numba.float64, numba.float64, numba.float64), generate


def _load(context: Any, builder: Builder, array_type: Any, array: Any, begin: Any, count: int) -> Vector:
    """The values array[begin : begin + count]."""
    first = builder.gep(context.make_array(array_type)(context, builder, value=array).data, [begin])
    return builder.load(builder.bitcast(first, ir.VectorType(DOUBLE, count).as_pointer()), align=8)


def _pick(builder: Builder, one: Vector, other: Vector, lanes: list[int]) -> Vector:
    """Values of two vectors, numbered through, in a new order."""
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(INT32, len(lanes)), lanes))


def _add_neighbours(builder: Builder, one: Vector, other: Vector, width: int) -> Vector:
    """Of each of two vectors, its parts of `width` lanes added two by two; those of `one` and `other` take turns."""
    count = one.type.count
    starts = [first + source for first in range(0, count, 2 * width) for source in (0, count)]
    even = [start + lane for start in starts for lane in range(width)]
    return builder.fadd(_pick(builder, one, other, even), _pick(builder, one, other, [k + width for k in even]))


def _sum(builder: Builder, vector: Vector) -> Any:
    """Of all values of a vector."""
    while vector.type.count > 1:
        half = vector.type.count // 2
        low, high = (_pick(builder, vector, vector, [*range(first, first + half)]) for first in (0, half))
        vector = builder.fadd(low, high)
    return builder.extract_element(vector, ir.Constant(INT32, 0))


def _number_below(typing_context: Any, values: Any, begin: Any, bound: Any) -> Any:
    """How many of values[begin : begin + 16] are < bound: one comparison, no branch."""

    def generate(context: Any, builder: Builder, signature: Any, arguments: Any) -> Any:
        array, begin, bound = arguments
        vector = _load(context, builder, signature.args[0], array, begin, 16)
        bounds = builder.insert_element(ir.Constant(vector.type, ir.Undefined), bound, ir.Constant(INT32, 0))
        mask = builder.fcmp_ordered("<", vector, _pick(builder, bounds, bounds, [0] * 16))
        return builder.zext(builder.ctpop(builder.bitcast(mask, ir.IntType(16))), INT64)

    return numba.int64(FLOATS, numba.int64, numba.float64), generate


def _sum_octets(typing_context: Any, values: Any, begin: Any, sums: Any, to: Any) -> Any:
    """Writes the sums of values[begin : begin + 8], of the eight after them, ... into sums[to : to + 8].

    Returns:
        The sum of all 64.
    """

    def generate(context: Any, builder: Builder, signature: Any, arguments: Any) -> Any:
        array, begin, sums, to = arguments
        vectors = [
            _load(context, builder, signature.args[0], array, builder.add(begin, ir.Constant(INT64, 8 * octet)), 8)
            for octet in range(8)
        ]
        for width in (1, 2, 4):
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [_add_neighbours(builder, one, other, width) for one, other in pairs]
        (total,) = vectors
        first = builder.gep(context.make_array(signature.args[2])(context, builder, value=sums).data, [to])
        builder.store(total, builder.bitcast(first, total.type.as_pointer()), align=8)
        return _sum(builder, total)

    return numba.float64(FLOATS, numba.int64, FLOATS, numba.int64), generate


# cast: the type checker would take the typing context for an argument
bits_of = cast(Callable[[float], np.uint64], intrinsic(_bits_of))
float_of = cast(Callable[[np.uint64], float], intrinsic(_float_of))
fma = cast(Callable[[float, float, float], float], intrinsic(_fma))
number_below = cast(Callable[[Any, int, float], int], intrinsic(_number_below))
sum_octets = cast(Callable[[Any, int, Any, int], float], intrinsic(_sum_octets))
