"""The start of a run: a softmax policy whose actions fall into classes of equal logits, checked and hashable."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from fgrpo.simulate._checks import LARGEST_COUNT, assign, number, whole_number
from fgrpo.theory._validation import finite, one_of, shown

LARGEST_LOGIT = 700.0
"""In size; exp of it is a double."""
SMALLEST_CORRECT_MASS = 1e-300


@dataclass(frozen=True)
class PolicyClass:
    """Actions that start with one logit and are all correct or all wrong.

    Attributes:
        count: Number of actions, at least 1.
        logit: Logit of each of them, between -700 and 700.
        correct: Whether they are correct.

    Raises:
        ValueError: If a value is outside its range.
    """

    count: int
    logit: float
    correct: bool

    def __post_init__(self) -> None:
        """Checks and normalises the values."""
        assign(
            self,
            count=whole_number("count", self.count, "pass the number of actions of the class", minimum=1),
            logit=number("logit", self.logit, finite, "pass a finite logit", largest=LARGEST_LOGIT),
        )
        if not isinstance(self.correct, bool):
            raise ValueError(
                f"correct of a class must be True or False, got {shown(self.correct)}: pass one of the two"
            )


@dataclass(frozen=True)
class PolicyConfig:
    """The start: by default one correct anchor, other correct actions ('leaves') and wrong ones; or any classes.

    Actions are numbered class by class, correct classes first; action 0 is the anchor.

    Attributes:
        actions: Number of actions.
        correct: Number of correct ones, 1 <= correct < actions; the first of them is the anchor.
        anchor_logit: Logit of the anchor, between -700 and 700.
        correct_logit: Logit of each other correct action, likewise.
        wrong_logit: Logit of each wrong action, likewise. The correct mass is at least 1e-300.
        classes: Any number of classes in place of the three, at least one of them correct and one wrong; correct ones
            are sorted to the front. `actions` and `correct` then follow from them, the logits above mean nothing and
            keep their defaults. None for the three classes.
        leaf_class: Index in `action_classes` of the correct class whose tail misses are measured; None for the most
            numerous one (the last of equally many): the leaves. It decides what is recorded, not what happens.

    Raises:
        ValueError: If a value is outside its range.

    Source: Appendix J (v1 and v2); other classes: this project.
    """

    actions: int = 128_000
    correct: int = 10_000
    anchor_logit: float = 5.0
    correct_logit: float = 3.0
    wrong_logit: float = 0.0
    classes: tuple[PolicyClass, ...] | None = None
    leaf_class: int | None = None

    def __post_init__(self) -> None:
        """Checks and normalises the values."""
        if self.classes is not None:
            self._take_sizes_from_classes()
        actions = whole_number("actions", self.actions, "pass the number of actions", minimum=2)
        assign(self, actions=actions)
        assign(self, correct=whole_number("correct", self.correct, "pass the number of correct actions", minimum=1))
        if self.correct >= self.actions:
            raise ValueError(
                f"correct must be below actions, got {self.correct} of {self.actions}: leave at least one wrong action"
            )
        for name in ("anchor_logit", "correct_logit", "wrong_logit"):
            value = number(name, getattr(self, name), finite, "pass a finite logit", largest=LARGEST_LOGIT)
            assign(self, **{name: value})
        self._refuse_no_correct_mass()
        if self.leaf_class is not None:
            last = sum(one.correct for one in self.action_classes) - 1
            way_out = "pass the index of a correct class, or None for the most numerous one"
            leaf_class = whole_number("leaf_class", self.leaf_class, way_out, minimum=0, maximum=last)
            assign(self, leaf_class=leaf_class)

    def _take_sizes_from_classes(self) -> None:
        classes = _read_classes(self.classes)
        sizes = {
            "actions": sum(one.count for one in classes),
            "correct": sum(one.count for one in classes if one.correct),
        }
        for name, size in sizes.items():
            if getattr(self, name) not in (size, _DEFAULTS[name]):
                raise ValueError(
                    f"{name} must be that of the classes, {size}, got {shown(getattr(self, name))}: leave it out"
                )
        for name in ("anchor_logit", "correct_logit", "wrong_logit"):
            if getattr(self, name) != _DEFAULTS[name]:
                raise ValueError(
                    f"{name} must be left out where classes are given, got {shown(getattr(self, name))}: "
                    "pass each class with its logit"
                )
        assign(self, classes=classes, **sizes)

    def _refuse_no_correct_mass(self) -> None:
        logits = [one.logit for one in self.action_classes]
        masses = [one.count * math.exp(one.logit - max(logits)) for one in self.action_classes]
        correct = sum(mass for mass, one in zip(masses, self.action_classes, strict=True) if one.correct)
        if correct < SMALLEST_CORRECT_MASS * sum(masses):
            raise ValueError(
                f"the correct mass must be at least {SMALLEST_CORRECT_MASS:g}, got {correct / sum(masses):g}: "
                "raise the logits of the correct actions"
            )

    @property
    def action_classes(self) -> tuple[PolicyClass, ...]:
        """The classes in the order of the actions: correct ones first; the three of the paper where none are given."""
        if self.classes is not None:
            return self.classes
        anchor, wrong = PolicyClass(1, self.anchor_logit, True), self.actions - self.correct
        leaves = (PolicyClass(self.correct - 1, self.correct_logit, True),) if self.correct > 1 else ()
        return (anchor, *leaves, PolicyClass(wrong, self.wrong_logit, False))

    @property
    def leaf_class_index(self) -> int:
        """`leaf_class`, or what it is by default."""
        if self.leaf_class is not None:
            return self.leaf_class
        counts = [one.count for one in self.action_classes if one.correct]
        return max(range(len(counts)), key=lambda index: (counts[index], index))

    @property
    def leaves(self) -> slice:
        """Which actions are in the leaf class."""
        counts = [one.count for one in self.action_classes]
        index = self.leaf_class_index
        return slice(sum(counts[:index]), sum(counts[: index + 1]))


_DEFAULTS: dict[str, Any] = {one.name: one.default for one in fields(PolicyConfig)}


def _read_classes(value: Any) -> tuple[PolicyClass, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ValueError(f"classes must be a tuple of PolicyClass, got {shown(value)}: pass (PolicyClass(...), ...)")
    classes = tuple(_read_class(one) for one in value)
    kinds = {one.correct for one in classes}
    if len(kinds) != 2:
        raise ValueError(
            f"classes must hold a correct and a wrong one, got {shown(value)}: add a class of the other kind"
        )
    if sum(one.count for one in classes) > LARGEST_COUNT:
        raise ValueError(f"classes must hold at most {LARGEST_COUNT} actions, got {shown(value)}: pass smaller counts")
    return tuple(sorted(classes, key=lambda one: not one.correct))


def _read_class(value: Any) -> PolicyClass:
    if isinstance(value, PolicyClass):
        return value
    names = [one.name for one in fields(PolicyClass)]
    if not isinstance(value, dict) or not {*names} <= {*value}:
        raise ValueError(f"a class must be a PolicyClass, got {shown(value)}: pass PolicyClass(count, logit, correct)")
    for key in value:
        one_of("a field of PolicyClass", key, names)
    return PolicyClass(**value)
