"""Exponential and logarithm that compile into vector code: calls of the C library would take ten times as long."""

import math

import numpy as np

from fgrpo.simulate.sparse._compile import bits_of, float_of, fma, inlined

# ln 2 in two parts; the first has 21 trailing zero bits, so that its product with an exponent is exact
LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
PER_LN2 = 1.0 / math.log(2.0)
# adding and subtracting it rounds to a whole number, which then stands in the low bits of the sum
ROUNDING = 1.5 * 2.0**52
SMALLEST, LARGEST = -708.0, 709.0
SMALL = 0.1

# 1/k!, enough of them for |x| <= ln(2)/2
E2, E3, E4, E5, E6, E7, E8, E9, E10, E11, E12, E13 = (1.0 / math.factorial(k) for k in range(2, 14))
# 1/(2k+1): atanh(s)/s as a series in s^2, enough for |s| <= 3 - 2 sqrt(2)
L1, L2, L3, L4, L5, L6, L7, L8, L9, L10 = (1.0 / (2 * k + 1) for k in range(1, 11))

HALF_ROOT_BITS = np.uint64(int(np.float64(math.sqrt(0.5)).view(np.uint64)))
MANTISSA = np.uint64(52)
EXPONENT_BIAS = np.uint64(1023)


@inlined
def exp(x: float) -> float:
    """e^x to within 1.5 units in the last place; 0 below SMALLEST, e^LARGEST from LARGEST on."""
    bounded = min(max(x, SMALLEST), LARGEST)
    shifted = fma(bounded, PER_LN2, ROUNDING)
    exponent = shifted - ROUNDING
    r = fma(-exponent, LN2_LOW, fma(-exponent, LN2_HIGH, bounded))
    q = E13
    q = fma(q, r, E12)
    q = fma(q, r, E11)
    q = fma(q, r, E10)
    q = fma(q, r, E9)
    q = fma(q, r, E8)
    q = fma(q, r, E7)
    q = fma(q, r, E6)
    q = fma(q, r, E5)
    q = fma(q, r, E4)
    q = fma(q, r, E3)
    q = fma(q, r, E2)
    mantissa = fma(q * r, r, r) + 1.0
    power = float_of((bits_of(shifted) + EXPONENT_BIAS) << MANTISSA)
    return mantissa * power if x > SMALLEST else 0.0


@inlined
def expm1_small(x: float) -> float:
    """e^x - 1 to within 1.5 units in the last place for |x| <= SMALL, in a third of the time."""
    q = E9
    q = fma(q, x, E8)
    q = fma(q, x, E7)
    q = fma(q, x, E6)
    q = fma(q, x, E5)
    q = fma(q, x, E4)
    q = fma(q, x, E3)
    q = fma(q, x, E2)
    return fma(q * x, x, x)


@inlined
def exp_small(x: float) -> float:
    """e^x to within 1.5 units in the last place for |x| <= SMALL."""
    return expm1_small(x) + 1.0


@inlined
def expm1(x: float) -> float:
    """e^x - 1 to within 25 units in the last place; -1 below SMALLEST, e^LARGEST - 1 from LARGEST on."""
    return expm1_small(x) if abs(x) <= SMALL else exp(x) - 1.0


@inlined
def log(x: float) -> float:
    """Ln x to within 2 units in the last place, for x in (0, 1] that is not subnormal."""
    bits = bits_of(x)
    whole = np.int64(bits - HALF_ROOT_BITS) >> np.int64(52)
    mantissa, exponent = float_of(bits - (np.uint64(whole) << MANTISSA)), np.float64(whole)
    f = mantissa - 1.0
    s = f / (2.0 + f)
    square = s * s
    q = L10
    q = fma(q, square, L9)
    q = fma(q, square, L8)
    q = fma(q, square, L7)
    q = fma(q, square, L6)
    q = fma(q, square, L5)
    q = fma(q, square, L4)
    q = fma(q, square, L3)
    q = fma(q, square, L2)
    q = fma(q, square, L1)
    series = fma(2.0 * s * square, q, 2.0 * s)
    return fma(exponent, LN2_HIGH, fma(exponent, LN2_LOW, series))


@inlined
def log1m(x: float) -> float:
    """Ln(1 - x) for x in [0, 1), relative to itself as exact as `log`: what the rounding of 1 - x lost is put back."""
    y = 1.0 - x
    return log(y) - ((y - 1.0) + x) / y
