r"""Binary verifiable reward for mathematics: the last \boxed{} of a completion against the reference answer."""

import importlib.util
from collections import Counter
from collections.abc import Sequence
from typing import Any, Self

from fgrpo.llm.rewards.completions import column, completion_text, last_box
from fgrpo.llm.rewards.math_worker import MathWorker, Verdict
from fgrpo.theory import _validation as check

OUTCOMES = ("right", "wrong", "no_box", "timed_out", "crashed", "unscorable")
"""What `MathReward` counts: `unscorable` completions have a reference answer that is missing or no mathematics."""


class MathReward:
    r"""Reward 1 for a right final answer, `reward_wrong` for any other, None where the reference cannot be read.

    The final answer is the content of the \boxed{} that opens last; without one, or with one that never closes, the
    completion is wrong. It is right if math-verify finds it equal to the reference answer (the content of that one's
    last box, or all of it). Comparing runs in a child process that is killed after `time_limit` seconds: an answer that
    takes longer, or that ends the process, is wrong, and the others of the batch are judged as ever. A reference answer
    that is missing, no mathematics or not read within the limit gives None, never a reward: TRL then leaves the
    completion out of its group.

    Equal questions of a call are asked once. A reward can be pickled (the copy starts a process of its own), used from
    any thread, and closed; the process also ends with the object. POSIX only.

    Args:
        reward_wrong: Reward of a wrong answer, 0 or -1.
        time_limit: Seconds of wall time per comparison, > 0. A machine under load needs more than an idle one.
        answer_column: The data's column with reference answers: texts or numbers.
        name: `__name__`, after which TRL names its columns and metrics.

    Attributes:
        outcomes: How many completions had each of `OUTCOMES` so far, over all calls. TRL's metrics get the shares of a
            call for those other than right and wrong, as NAME/OUTCOME.

    Raises:
        ValueError: If an argument is out of range, or math-verify is not installed.

    Source: App. L (v2): rewards 1.0 / 0.0 by math-verify. The rules for boxes, limits and references: this project.
    """

    def __init__(
        self,
        *,
        reward_wrong: float = 0.0,
        time_limit: float = 10.0,
        answer_column: str = "answer",
        name: str = "math_reward",
    ) -> None:
        if reward_wrong not in (0.0, -1.0):
            raise ValueError(f"reward_wrong must be 0 or -1, got {check.shown(reward_wrong)}: the right answer has 1")
        limit = check.scalar("time_limit", check.positive("time_limit", time_limit, "pass seconds, such as 10"))
        if importlib.util.find_spec("math_verify") is None:
            raise ValueError(f"the math reward needs math-verify, got none installed: {check.install('llm')}")
        self.reward_wrong = float(reward_wrong)
        self.time_limit = limit
        self.answer_column = answer_column
        self.__name__ = name
        self.outcomes: Counter[str] = Counter({outcome: 0 for outcome in OUTCOMES})
        self._worker = MathWorker(self.time_limit)

    def __call__(self, prompts: Sequence[Any] | None, completions: Sequence[Any], **columns: Any) -> list[float | None]:
        """Judge completions.

        Args:
            prompts: Not used; TRL passes them.
            completions: Texts or lists of chat messages.
            **columns: The data's columns, among them `answer_column`, with an entry per completion.

        Returns:
            1.0, `reward_wrong` or None for each completion.

        Raises:
            ValueError: If the column is missing or of another length.
            OSError: If the process that compares cannot be started.
        """
        references = column(columns, self.answer_column, completions, self.__name__)
        known: dict[tuple[str, ...], Verdict] = {}
        outcomes = [
            self._outcome(completion_text(completion), reference, known)
            for completion, reference in zip(completions, references, strict=True)
        ]
        self.outcomes.update(outcomes)
        if outcomes and (log := columns.get("log_metric")) is not None:
            for outcome in OUTCOMES[2:]:
                log(f"{self.__name__}/{outcome}", outcomes.count(outcome) / len(outcomes))
        rewards = {"right": 1.0, "unscorable": None}
        return [rewards.get(outcome, self.reward_wrong) for outcome in outcomes]

    def _outcome(self, text: str, reference: Any, known: dict[tuple[str, ...], Verdict]) -> str:
        gold = "" if reference is None else str(reference)
        boxed = last_box(gold)
        gold = (gold if boxed is None else boxed).strip()
        if (gold,) not in known:
            known[gold,] = self._worker.is_mathematics(gold) if gold else Verdict.NO
        if known[gold,] is not Verdict.YES:
            return "unscorable"
        answer = (last_box(text) or "").strip()
        if not answer:
            return "no_box"
        if (gold, answer) not in known:
            known[gold, answer] = self._worker.equal(gold, answer)
        verdict = known[gold, answer]
        return {Verdict.YES: "right", Verdict.NO: "wrong"}.get(verdict, verdict.value)

    def close(self) -> None:
        """End the process that compares; a later call starts another."""
        self._worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_worker"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._worker = MathWorker(self.time_limit)
