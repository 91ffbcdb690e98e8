"""What a claim of the paper is, how it is judged, and the verdicts' scale."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from fgrpo.claims.evidence import Evidence, MissingRunsError

NEEDS_RUNS = "needs the results of `fgrpo reproduce`"


class Verdict(StrEnum):
    """Fair words about a sentence of the paper."""

    HOLDS = "holds"
    HOLDS_IF = "holds if"
    """It needs a condition that is not among the paper's stated assumptions."""
    NOT_IMPLIED = "not implied"
    """The literal sentence needs more than what it is derived from."""
    DIFFERS = "differs in our run"
    UNDETERMINED = "undetermined here"


@dataclass(frozen=True)
class Finding:
    """Outcome of a check.

    Attributes:
        verdict: On the scale of `Verdict`.
        measured: What was computed or read from the stored runs, with numbers.
        condition: Of `Verdict.HOLDS_IF`, what has to be added; empty otherwise.
    """

    verdict: Verdict
    measured: str
    condition: str = ""

    @property
    def words(self) -> str:
        """The verdict as one phrase."""
        return f"{self.verdict} {self.condition}" if self.condition else str(self.verdict)


@dataclass(frozen=True)
class Claim:
    """One checkable sentence of the paper.

    Attributes:
        id: Short name, stable.
        place: Where it stands, numbering of version 1 and of version 2.
        sentence: What the paper says, in short.
        check: Computes the finding at the time of the call; most need none of the stored runs (see `computed`).
        sharpened: What can be said instead or in addition, where there is something to say.
        proofs: Names in `fgrpo.theory.proofs.PROOFS` of what the sharpened statement or the verdict rests on.
    """

    id: str
    place: str
    sentence: str
    check: Callable[[Evidence], Finding]
    sharpened: str = ""
    proofs: tuple[str, ...] = ()

    def judge(self, evidence: Evidence) -> Finding:
        """What the check finds; undetermined where it needs runs that the evidence does not have."""
        try:
            return self.check(evidence)
        except MissingRunsError:
            return Finding(Verdict.UNDETERMINED, NEEDS_RUNS)


def computed(check: Callable[[], Finding]) -> Callable[[Evidence], Finding]:
    """A check that needs no stored runs, as one that is given some."""
    return lambda evidence: check()


def by_scope(inside: bool, outside: bool, measured: str, condition: str) -> Finding:
    """Finding about a sentence that was tried inside and outside a condition.

    Args:
        inside: Whether it was true of all that meets the condition.
        outside: Whether it was also true of all that does not.
        measured: As in `Finding`.
        condition: What the cases inside have in common, not among the paper's assumptions.
    """
    if not inside:
        return Finding(Verdict.NOT_IMPLIED, measured)
    return Finding(Verdict.HOLDS, measured) if outside else Finding(Verdict.HOLDS_IF, measured, condition)


def holds(true: bool, measured: str, otherwise: Verdict = Verdict.NOT_IMPLIED) -> Finding:
    """Finding about a sentence that was tried without a condition: `otherwise` if it failed."""
    return Finding(Verdict.HOLDS if true else otherwise, measured)
