"""What a claim of the paper is, how it is judged, and the verdicts' scale."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from fgrpo.claims.evidence import Evidence


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
        check: Computes the finding from the evidence at the time of the call.
        sharpened: What can be said instead or in addition, where there is something to say.
    """

    id: str
    place: str
    sentence: str
    check: Callable[[Evidence], Finding]
    sharpened: str = ""
