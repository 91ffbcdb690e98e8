"""The few decisions that the checks rest on: an expression is 0, has a sign, or is a sum of a symbolic number of terms.

Every one of them is one-sided: True means established, False means 'not established'.
"""

from typing import Any

import sympy as sp

INDEX = sp.Symbol("i", integer=True)  # of every sum, so that equal sums are equal expressions


def vanishes(expression: Any) -> bool:
    """Whether `expression` is identically 0 for all values that the assumptions on its symbols allow.

    Powers with symbolic exponents are split (x^(N+1) = x^N x), finite sums of symbolic length split by linearity.
    """
    expression = sp.expand(_sums_as_symbols(by_linearity(sp.sympify(expression))))
    return bool(expression == 0 or sp.simplify(sp.expand(sp.numer(sp.together(sp.expand_log(expression))))) == 0)


def non_negative(expression: Any) -> bool:
    """Whether `expression` >= 0 follows from the signs of its symbols, as it stands or factored."""
    expression = sp.sympify(expression)
    return expression.is_nonnegative is True or sp.factor(expression).is_nonnegative is True


def positive(expression: Any) -> bool:
    """Whether `expression` > 0 follows from the signs of its symbols, as it stands or factored."""
    expression = sp.sympify(expression)
    return expression.is_positive is True or sp.factor(expression).is_positive is True


def by_linearity(expression: Any) -> Any:
    """Every finite sum split into constants times sums of single products, under one name for the index."""

    def split(total: Any) -> Any:
        result = total.function
        for limit in total.limits:  # the innermost comes first
            result = _split_once(result, *limit)
        return result

    return expression.replace(lambda part: isinstance(part, sp.Sum), split)


def _split_once(summand: Any, index: Any, first: Any, last: Any) -> Any:
    result = sp.Integer(0)
    for term in sp.Add.make_args(sp.expand(summand)):
        constant, body = term.as_independent(index, as_Add=False)
        result += constant * sp.Sum(body.subs(index, INDEX), (INDEX, first, last))
    return result


def _sums_as_symbols(expression: Any) -> Any:
    # simplify would try to evaluate the sums; here they are unknowns, and all that matters is which are equal
    return expression.xreplace({total: sp.Dummy() for total in expression.atoms(sp.Sum)})
