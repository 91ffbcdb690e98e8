r"""Rewards: the last box, math-verify in a process that can be killed, equal texts, thresholds."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fgrpo.llm.rewards import REWARDS, MathReward, completion_text, exact_match, last_box, thresholded


@pytest.fixture(scope="module")
def judge() -> Iterator[MathReward]:
    with MathReward() as reward:
        yield reward


def score(reward: Callable[..., Any], *pairs: tuple[Any, str]) -> list[float | None]:
    """Rewards of (reference answer, completion) pairs in one call."""
    return list(reward(None, [text for _, text in pairs], answer=[gold for gold, _ in pairs]))


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"so \boxed{5}.", "5"),
        (r"\boxed{1} or rather \boxed{2}", "2"),
        (r"\boxed{\frac{1}{\sqrt{2}}} {", r"\frac{1}{\sqrt{2}}"),
        (r"\boxed{\boxed{5}}", "5"),
        (r"\boxed {5}", "5"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{a \\}", r"a \\"),
        (r"\boxed{}", ""),
        ("\\boxed{1\n2}", "1\n2"),
        (r"\boxed{5} but then \boxed{6", None),
        (r"\boxed{5\}", None),
        (r"\boxed 5", None),
        (r"\fbox{5}", None),
        ("5", None),
        ("", None),
    ],
)
def test_last_box(text: str, content: str | None) -> None:
    assert last_box(text) == content


@pytest.mark.parametrize("text", ["\\boxed{" * 200_000, "{" * 2_000_000, "\\boxed{" + "\\" * 2_000_000])
def test_last_box_takes_linear_time(text: str) -> None:
    start = time.process_time()
    assert last_box(text) is None
    assert time.process_time() - start < 5  # a fraction of a second; quadratic would be hours


def test_completion_text() -> None:
    assert completion_text("5") == "5"
    answer = {"role": "assistant", "content": "5"}
    assert completion_text([answer]) == "5"
    assert completion_text([answer, {"role": "tool", "content": "7"}]) == "5"
    assert completion_text([answer, {"role": "assistant", "content": [{"type": "text", "text": "6"}, {"x": 1}]}]) == "6"
    assert completion_text([{"role": "assistant", "content": None}]) == completion_text([]) == ""
    for wrong in (5, None, ["5"], {"content": "5"}):
        with pytest.raises(ValueError, match="completion must be a text or a list of chat messages, got "):
            completion_text(wrong)


RIGHT = [
    ("12", r"\boxed{12}"),
    (r"\frac12", r"first \boxed{3}, no: \boxed{0.5}"),
    (r"so \boxed{\frac{1}{2}}", r"\boxed{\dfrac{2}{4}}"),
    (5, r"\boxed{5.0}"),
    ("x^2+1", r"\boxed{1+x^2}"),
    ("(1,2)", r"\boxed{(1, 2)}"),
    (r"\{1,2\}", r"\boxed{\{2,1\}}"),
    (r"2\sqrt{3}", r"\boxed{\sqrt{12}}"),
    (r"\text{east}", r"\boxed{\text{east}}"),
    ("12", "x" * 1_000_000 + r"\boxed{12}"),
]
WRONG = [
    ("12", r"\boxed{13}"),
    ("12", "the answer is 12"),
    ("12", r"\boxed{}"),
    ("12", r"\boxed{12} wait \boxed{13}"),
    ("12", r"\boxed{12} wait \boxed{1"),
    ("12", r"\boxed{12 \text{ or } 13}"),
    ("12", r"\boxed{1=1}"),
    ("12", r"\boxed{\mathbb{R}}"),
    ("12", r"\boxed{\frac{}"),
    ("12", ""),
    ("12", "\\boxed{\ud800}"),
    ("12", "\\boxed{" + "1" * 1_000_000 + "}"),
    ("12", "\\boxed{" + "(" * 8 + "13" + ")" * 8 + "}"),
]


def test_verdicts(judge: MathReward) -> None:
    assert [score(judge, pair) for pair in RIGHT] == [[1.0]] * len(RIGHT)
    assert [score(judge, pair) for pair in WRONG] == [[0.0]] * len(WRONG)
    mixed = [pair for pairs in zip(RIGHT, WRONG, strict=False) for pair in pairs]
    assert score(judge, *mixed) == [1.0, 0.0] * len(RIGHT)
    chat = [[{"role": "assistant", "content": text}] for text in (r"\boxed{12}", r"\boxed{13}")]
    assert judge(["p", "p"], chat, completion_ids=[[1], [2]], answer=["12", "12"]) == [1.0, 0.0]


def test_reference_that_is_no_mathematics_is_never_rewarded(judge: MathReward) -> None:
    before = judge.outcomes.copy()
    pairs = [("???", r"\boxed{???}"), ("", r"\boxed{}"), (None, r"\boxed{12}"), ("  ", "12"), (r"\frac{", r"\boxed{1}")]
    shares: dict[str, float] = {}
    rewards = judge(
        None,
        [text for _, text in [*pairs, RIGHT[0]]],
        answer=[g for g, _ in [*pairs, RIGHT[0]]],
        log_metric=shares.__setitem__,
    )
    assert rewards == [None] * 5 + [1.0]
    assert judge.outcomes - before == {"unscorable": 5, "right": 1}
    assert shares == {f"math_reward/{name}": 0.0 for name in ("no_box", "timed_out", "crashed")} | {
        "math_reward/unscorable": pytest.approx(5 / 6)
    }


ENDLESS = r"\boxed{\sin(10^{10^{10}})}"
BOMBS = [r"\boxed{9^{9^{9^9}}}", "\\boxed{" + "(" * 60 + "12" + ")" * 60 + "}"]  # parsing time explodes with depth


def test_bombs_are_wrong_and_the_rest_of_the_batch_is_judged() -> None:
    with MathReward(time_limit=2.0, reward_wrong=-1.0) as reward:
        assert score(reward, ("12", r"\boxed{12}")) == [1.0]
        first = reward._worker._child
        assert first is not None
        pairs = [("12", text) for bomb in BOMBS for text in (bomb, r"\boxed{12}", r"\boxed{13}", bomb)]
        start = time.monotonic()
        assert score(reward, *pairs) == [-1.0, 1.0, -1.0, -1.0] * 2
        assert time.monotonic() - start < 60  # two limits and two starts on a busy machine; a bomb takes for ever
        # equal questions are asked once, so each bomb stops one process
        assert reward.outcomes["timed_out"] + reward.outcomes["crashed"] == 2 * 2
        assert reward.outcomes["wrong"] == 2
        assert first.returncode == -signal.SIGKILL  # waited for: no zombie
        # a reference answer that cannot be read in time is no reference
        assert score(reward, ("(" * 60 + "1" + ")" * 60, r"\boxed{1}"), RIGHT[0]) == [None, 1.0]
        second = reward._worker._child
        assert second is not None
    assert reward._worker._child is None
    with pytest.raises(ProcessLookupError):
        os.kill(second.pid, 0)


def test_killed_child_is_replaced() -> None:
    with MathReward(time_limit=30.0) as reward:
        assert score(reward, RIGHT[0]) == [1.0]
        idle = reward._worker._child
        assert idle is not None
        os.kill(idle.pid, signal.SIGKILL)
        os.waitid(os.P_PID, idle.pid, os.WEXITED | os.WNOWAIT)
        assert score(reward, RIGHT[0], WRONG[0]) == [1.0, 0.0]  # killed while idle: the question is asked of the next
        busy = reward._worker._child
        assert busy is not None
        killer = threading.Timer(0.5, os.kill, (busy.pid, signal.SIGKILL))
        killer.start()
        assert score(reward, ("12", ENDLESS), RIGHT[0]) == [0.0, 1.0]
        killer.join()
        assert reward.outcomes["crashed"] == 1


def test_threads_forks_and_copies(judge: MathReward) -> None:
    handler = signal.getsignal(signal.SIGALRM)
    results: list[list[float | None]] = []
    threads = [threading.Thread(target=lambda: results.append(score(judge, RIGHT[0], WRONG[0]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[1.0, 0.0]] * 4
    assert signal.getsignal(signal.SIGALRM) is handler

    copy = pickle.loads(pickle.dumps(judge))
    assert (copy.__name__, copy.outcomes) == (judge.__name__, judge.outcomes)
    assert copy._worker is not judge._worker

    # a daemonic process, forked while the parent's child runs: it must not talk to that one, nor end it
    queue: Any = multiprocessing.get_context("fork").SimpleQueue()
    process = multiprocessing.get_context("fork").Process(
        target=lambda: queue.put((score(judge, RIGHT[0], WRONG[0]), judge._worker._child.pid)),  # type: ignore[union-attr]
        daemon=True,
    )
    process.start()
    rewards, pid = queue.get()
    process.join()
    assert rewards == [1.0, 0.0]
    assert judge._worker._child is not None
    assert pid != judge._worker._child.pid
    assert score(judge, RIGHT[0]) == [1.0]


def test_child_ends_with_its_parent() -> None:
    # no main guard: a child that loaded the parent's script again would start children of its own
    script = textwrap.dedent(r"""
        import os, threading
        from fgrpo.llm.rewards import MathReward
        reward = MathReward(time_limit=1.0)
        assert reward(None, ["\\boxed{1}"], answer=["1"]) == [1.0]
        print(reward._worker._child.pid, flush=True)
        threading.Timer(0.3, os._exit, (0,)).start()
        reward(None, ["\\boxed{\\sin(10^{10^{10}})}"], answer=["1"])
    """)
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    pid = int(done.stdout)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] == "Z":  # dead, and its new parent reaps in its own time
                    return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.1)
    pytest.fail("the orphan still computes")


def test_math_reward_refuses() -> None:
    with pytest.raises(ValueError, match=r"^reward_wrong must be 0 or -1, got 0\.5: "):
        MathReward(reward_wrong=0.5)
    for limit in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"^time_limit must be finite and above 0, got "):
            MathReward(time_limit=limit)
    with pytest.raises(ValueError, match=r"^time_limit must be one number, got "):
        MathReward(time_limit=[1.0, 2.0])  # type: ignore[arg-type]
    reward = MathReward(answer_column="solution")
    with pytest.raises(ValueError, match=r"^math_reward needs the column 'solution', got answer, level: "):
        reward(None, ["x"], answer=["1"], level=[3])
    with pytest.raises(ValueError, match=r"^column 'solution' must have one entry per completion, got 1 for 2: "):
        reward(None, ["x", "y"], solution=["1"])
    with pytest.raises(ValueError, match="got str for 1"):
        reward(None, ["x"], solution="1")
    assert reward(None, [], solution=[]) == []


def test_child_that_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise ImportError")
    monkeypatch.setattr("fgrpo.llm.rewards.math_worker._PROGRAM", program)
    with pytest.raises(OSError, match=r"^the process that compares answers must start, got none: ") as caught:
        score(MathReward(), ("1", r"\boxed{1}"))
    assert "\n" not in str(caught.value)


def test_named_rewards() -> None:
    for name, make in REWARDS.items():
        assert make().__name__ == name  # type: ignore[attr-defined]
    signed = REWARDS["signed_math_reward"]()
    assert isinstance(signed, MathReward)
    assert signed.reward_wrong == -1.0


def test_exact_match() -> None:
    pairs = [
        ("489", " 489\n"),
        ("a b", "a\t b"),
        ("5", "５"),  # NFKC: full-width digits are digits  # noqa: RUF001
        ("5", r"as \boxed{6}, no \boxed{5}"),
        (5, "5"),
        ("Ab", "ab"),
        ("489", "4890"),
        ("5", r"5 \boxed{6}"),
        (None, "None"),
        (" ", ""),
    ]
    assert score(exact_match, *pairs) == [1.0] * 5 + [0.0] * 3 + [None] * 2
    assert pickle.loads(pickle.dumps(exact_match)) is exact_match
    with pytest.raises(ValueError, match=r"^exact_match needs the column 'answer', got none: "):
        exact_match(None, ["x"])


def partial_credit(prompts: Any, completions: Any, **columns: Any) -> list[float | None]:
    return [
        {"none": None, "nan": float("nan")}.get(text, 0.5 if text == "half" else float(text == "full"))
        for text in completions
    ]


def overlap(text: str, answer: str, weight: float) -> float:
    return weight * len(set(text) & set(answer)) / len(set(answer))


def test_thresholded() -> None:
    success = thresholded(partial_credit, 1.0)
    assert success.__name__ == "partial_credit"  # type: ignore[attr-defined]
    texts = ["full", "half", "no", "none", "nan"]
    assert success(prompts=texts, completions=texts) == [1.0, 0.0, 0.0, None, None]
    signed = thresholded(partial_credit, 0.5, reward_wrong=-1.0, name="solved")
    assert signed.__name__ == "solved"  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(signed))(None, texts) == [1.0, 1.0, -1.0, None, None]

    per_completion = thresholded(overlap, 1.0, columns=("answer", "weight"))
    chat = [[{"role": "assistant", "content": "abc"}], [{"role": "assistant", "content": "ab"}]]
    columns = {"answer": ["cba", "cba"], "weight": [1.0, 1.0]}
    assert per_completion(None, chat, **columns) == [1.0, 0.0]
    assert thresholded(len, 3, columns=())(None, ["abc", "ab"]) == [1.0, 0.0]


def test_thresholded_refuses() -> None:
    async def later(prompts: Any, completions: Any) -> list[float]:
        return [1.0]

    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"^least_score must be finite, got "):
            thresholded(partial_credit, value)
    with pytest.raises(ValueError, match=r"^least_score must be one number, got "):
        thresholded(partial_credit, [1.0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^reward_wrong must be 0 or -1, got 1: "):
        thresholded(partial_credit, 1.0, reward_wrong=1)
    with pytest.raises(ValueError, match=r"^scorer must be a function, got 'x': "):
        thresholded("x", 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^scorer must be synchronous, got "):
        thresholded(later, 1.0)
    with pytest.raises(ValueError, match=r"^<lambda> must score each of 2 completions, got 1 scores: "):
        thresholded(lambda prompts, completions: [1.0], 1.0)(None, ["a", "b"])
    with pytest.raises(ValueError, match=r"^overlap needs the column 'answer', got none: "):
        thresholded(overlap, 1.0, columns=["answer"])(None, ["a"])
