"""What a proof is: a statement, its assumptions, and steps that sympy checks or that rest on a named lemma."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class Step:
    """One step of a proof: either checked by sympy or resting on a lemma that is named, never both.

    Attributes:
        text: What the step says, in plain text.
        check: Returns True if and only if sympy establishes what `text` says. None for a step that rests on a lemma.
        lemma: The named result that the step rests on ('Taylor's theorem', 'proof log_concavity'). Empty if checked.

    Raises:
        ValueError: If both or neither of check and lemma are given.
    """

    text: str
    check: Callable[[], bool] | None = None
    lemma: str = ""

    def __post_init__(self) -> None:
        if (self.check is None) == (not self.lemma):
            raise ValueError(f"a step must have either a check or a lemma, got {self.text!r}: give exactly one of them")


@dataclass(frozen=True)
class StepResult:
    """Outcome of one step.

    Attributes:
        text: What the step says.
        ok: Whether the step stands. A step that rests on a lemma always does: the reader judges the lemma.
        how: 'sympy', or 'lemma: ...'.
        seconds: Time that the check took.
    """

    text: str
    ok: bool
    how: str
    seconds: float


@dataclass(frozen=True)
class Report:
    """Outcome of a proof, with one result for each step.

    Attributes:
        name: Name of the proof.
        steps: Results in the order of the steps.
    """

    name: str
    steps: tuple[StepResult, ...]

    @property
    def checked(self) -> int:
        """Number of steps that sympy was asked to check."""
        return sum(step.how == "sympy" for step in self.steps)

    @property
    def on_lemmas(self) -> int:
        """Number of steps that rest on a named lemma."""
        return len(self.steps) - self.checked

    @property
    def seconds(self) -> float:
        """Time that all steps took together."""
        return sum(step.seconds for step in self.steps)

    @property
    def failed(self) -> tuple[StepResult, ...]:
        """The steps that sympy did not establish."""
        return tuple(step for step in self.steps if not step.ok)

    @property
    def ok(self) -> bool:
        """Whether every check passed; a proof without any check is not ok."""
        return self.checked > 0 and not self.failed

    def __str__(self) -> str:
        verdict = "ok" if self.ok else "FAILED"
        return (
            f"{self.name}: {verdict}, {self.checked} steps checked by sympy, "
            f"{self.on_lemmas} on named lemmas, {self.seconds:.2f} s"
        )


def _run(name: str, steps: tuple[Step, ...]) -> Report:
    results = []
    for step in steps:
        start = perf_counter()
        # anything but the bool True (None of an undecided sign, an expression) is a failure
        ok = step.check is None or step.check() is True
        how = "sympy" if step.check is not None else f"lemma: {step.lemma}"
        results.append(StepResult(step.text, ok, how, perf_counter() - start))
    return Report(name, tuple(results))


@dataclass(frozen=True)
class Wrong:
    """A falsified variant of a proof: the same checks, run on a statement that is false, must fail.

    A check may also fail because sympy is too weak; hence the exact counterexample, which shows that the
    variant is false.

    Attributes:
        statement: The false statement.
        steps: The steps of the proof with the false statement put in.
        counterexample: The case in which the statement fails, in words.
        refutes: Evaluates that case exactly; True if and only if it contradicts the statement.
    """

    statement: str
    steps: tuple[Step, ...]
    counterexample: str
    refutes: Callable[[], bool]

    def verify(self) -> Report:
        """Run the checks on the false statement; the report must not be ok."""
        return _run("wrong variant", self.steps)


@dataclass(frozen=True)
class Proof:
    """A statement of the theory with steps that a command can run.

    Attributes:
        name: Key in `PROOFS`, the name that docstrings refer to.
        statement: What is proved, in plain text.
        assumptions: Under which it is proved.
        source: Place in both versions of the paper, or 'this project'.
        steps: The argument, in order.
        wrong: A falsified variant, which must fail.
    """

    name: str
    statement: str
    assumptions: tuple[str, ...]
    source: str
    steps: tuple[Step, ...]
    wrong: Wrong

    def verify(self) -> Report:
        """Run every check.

        Returns:
            A report with one result for each step.
        """
        return _run(self.name, self.steps)
