"""Every public callable, by one call each: it leaves its arguments alone, and what does not fit is refused in words."""

import inspect
from itertools import combinations
from typing import Any, get_type_hints

import numpy as np
import pytest

from fgrpo import theory
from reference.public_calls import CALLS

# parameters that are one number, never an array
SCALAR = {
    (name, p) for name in ("exact_paired_subsampling_test", "paired_subsampling_test") for p in ("k", "subsample")
}
SCALAR |= {("exact_paired_subsampling_test", "level"), ("paired_subsampling_test", "level")}
SCALAR |= {("paired_subsampling_test", "iterations"), ("pass_at_k_interval", "level"), ("mean_field_orbit", "gamma")}
SCALAR |= {(name, p) for name in ("utility", "utility_slope") for p in ("epsilon", "ddof")}
SCALAR |= {("pass_at_k_weight", "k"), ("pass_at_k_weight", "group_size"), ("advantage_magnitude", "ddof")}
# counts that stand on their own axis: one number or one per action, one per problem
OWN_AXIS = {(name, "count") for name in ("correct_entropy", "correct_overlap", "retained_mass")}

FLAGS = [
    (name, p.name)
    for name in CALLS
    for p in inspect.signature(getattr(theory, name)).parameters.values()
    if p.annotation in (bool, "bool")
]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def elementwise(name: str) -> list[str]:
    """The parameters of a call that broadcast with each other."""
    return [p for p, value in CALLS[name].items() if is_number(value) and (name, p) not in SCALAR | OWN_AXIS]


def call(name: str, **changes: Any) -> Any:
    return getattr(theory, name)(**{**CALLS[name], **changes})


def returned(name: str) -> Any:
    """What a call returns: its annotation."""
    value = getattr(theory, name)
    return value if isinstance(value, type) else get_type_hints(value)["return"]


def refusal(name: str, **changes: Any) -> str:
    with pytest.raises(ValueError, match=r" must ") as caught:
        call(name, **changes)
    assert "\n" not in str(caught.value)
    assert ": " in str(caught.value)  # the way out
    return str(caught.value)


def test_every_public_callable_has_a_call() -> None:
    results = {value.__name__ for value in map(returned, CALLS) if isinstance(value, type)}
    assert {"WEIGHTS", "SURROGATES"} | set(CALLS) | results - {"Any", "float", "ndarray"} == set(theory.__all__)


@pytest.mark.parametrize("name", CALLS)
def test_no_numeric_parameter_is_left_out(name: str) -> None:
    options = {"bool", "str", "Normalisation", "Variant", "IntervalMethod"}
    for parameter in inspect.signature(getattr(theory, name)).parameters.values():
        annotation = getattr(parameter.annotation, "__name__", str(parameter.annotation))
        is_option = annotation in options or (
            parameter.default is not parameter.empty
            and (isinstance(parameter.default, str | bool) or "Literal" in str(parameter.annotation))
        )
        assert parameter.name in CALLS[name] or is_option, parameter


@pytest.mark.parametrize("name", CALLS)
def test_arguments_stay_as_they_were(name: str) -> None:
    given = {p: np.full(1, CALLS[name][p]) for p in elementwise(name)}
    given |= {p: value.copy() for p, value in CALLS[name].items() if isinstance(value, np.ndarray)}
    before = {p: value.copy() for p, value in given.items()}
    for value in given.values():
        value.flags.writeable = False
    call(name, **given)
    for p, value in given.items():
        np.testing.assert_array_equal(value, before[p])


@pytest.mark.parametrize("name", [name for name in CALLS if len(elementwise(name)) > 1])
def test_shapes_that_do_not_broadcast_are_named(name: str) -> None:
    for one, other in combinations(elementwise(name), 2):
        values = {one: np.full(2, CALLS[name][one]), other: np.full(3, CALLS[name][other])}
        message = refusal(name, **values)
        assert message.startswith("shapes must broadcast, got "), message
        assert "(2,)" in message
        assert "(3,)" in message


@pytest.mark.parametrize(
    "name", [name for name, given in CALLS.items() if any(isinstance(value, np.ndarray) for value in given.values())]
)
def test_leading_axes_that_do_not_broadcast_are_named(name: str) -> None:
    arrays = {p: value for p, value in CALLS[name].items() if isinstance(value, np.ndarray)}
    stacked = {p: (np.stack([value] * 2), np.stack([value] * 3)) for p, value in arrays.items()}
    numbers = {p: (np.full(2, CALLS[name][p]), np.full(3, CALLS[name][p])) for p in elementwise(name)}
    for (one, (two, _)), (other, (_, three)) in combinations((stacked | numbers).items(), 2):
        message = refusal(name, **{one: two, other: three})
        assert "shape" in message, message


@pytest.mark.parametrize(("name", "parameter"), sorted(SCALAR))
def test_one_number_where_one_number_is_asked_for(name: str, parameter: str) -> None:
    value = CALLS[name][parameter]
    for several in ([value, value], np.array([value]), np.full(3, value)):
        assert refusal(name, **{parameter: several}).startswith(f"{parameter} must be ")


@pytest.mark.parametrize("name", CALLS)
def test_no_text_where_a_number_is_asked_for(name: str) -> None:
    for p, value in CALLS[name].items():
        if is_number(value) or isinstance(value, np.ndarray):
            assert refusal(name, **{p: "text"}).startswith(f"{p} must be ")


@pytest.mark.parametrize("name", CALLS)
def test_a_number_beyond_float64_is_refused_in_one_short_line(name: str) -> None:
    for p, value in CALLS[name].items():
        if is_number(value):
            for huge in (10**400, 10**5000):
                assert len(refusal(name, **{p: huge})) < 250


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", [name for name, given in CALLS.items() if "group_size" in given or "samples" in given])
@pytest.mark.parametrize("huge", [1e12, 1e300])
def test_huge_groups_are_computed_or_refused_at_once(name: str, huge: float) -> None:
    parameter = "group_size" if "group_size" in CALLS[name] else "samples"
    try:
        call(name, **{parameter: int(huge) if name == "pass_at_k_weight" else huge})
        message = " at most "
    except ValueError as error:
        message = str(error)
    assert " at most " in message or " at least " in message
    assert "\n" not in message


@pytest.mark.parametrize(("name", "flag"), FLAGS)
@pytest.mark.parametrize("value", [float("nan"), 1, None, "no"])
def test_flags_are_true_or_false(name: str, flag: str, value: Any) -> None:
    assert refusal(name, **{flag: value}).startswith(f"{flag} must be True or False, got ")


@pytest.mark.parametrize("name", [name for name, given in CALLS.items() if "classes" in given])
@pytest.mark.parametrize("value", [None, 3, np.array([0.5, 0.5])])
def test_classes_are_action_classes(name: str, value: Any) -> None:
    assert refusal(name, classes=value).startswith("classes must be ActionClasses, got ")
