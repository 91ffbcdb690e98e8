"""The two grouping rules, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.diagnosis.blocks import Grouping, consecutive_blocks, equal_keys

FILES = ["a.parquet", "b.parquet"]


def blocks(prompts: str, n: int | None = None) -> Grouping:
    """Prompts as letters, chunks parted by a space."""
    chunks = prompts.split()
    codes = np.array([ord(letter) for letter in "".join(chunks)])
    chunk = np.repeat(np.arange(len(chunks)), [len(part) for part in chunks])
    return consecutive_blocks(codes, chunk, n, FILES)


def keys(prompts: str, steps: str, n: int | None = None, *, named: bool = False) -> Grouping:
    return equal_keys(
        np.array([ord(letter) for letter in prompts]), np.array(list(map(int, steps))), n, named_groups=named
    )


@pytest.mark.parametrize(
    ("prompts", "n", "groups", "found"),
    [
        ("aabb ccaa", None, [0, 0, 1, 1, 2, 2, 3, 3], 2),
        ("aaaabb", None, [0, 0, 1, 1, 2, 2], 2),  # the same prompt twice in a row
        ("aabbaa", None, [0, 0, 1, 1, 2, 2], 2),  # and apart
        ("aabb bbcc", None, [0, 0, 1, 1, 2, 2, 3, 3], 2),  # another step, another group
        ("aaaa", None, [0, 0, 0, 0], 4),
        ("aaaa", 2, [0, 0, 1, 1], 2),
        ("aaaabbbb", 2, [0, 0, 1, 1, 2, 2, 3, 3], 2),
        ("abbccd", None, [-1, 0, 0, 1, 1, -1], 2),  # rows lost at both edges
        ("abb", 2, [-1, 0, 0], 2),
        ("aaabbb", 2, [-1, 0, 0, 1, 1, -1], 2),
        ("bbbbccc", 4, [0, 0, 0, 0, -1, -1, -1], 4),
    ],
)
def test_consecutive_blocks(prompts: str, n: int | None, groups: list[int], found: int) -> None:
    grouping = blocks(prompts, n)
    assert grouping.group_R.tolist() == groups
    assert grouping.group_size == found
    assert [note.code for note in grouping.notes] == (["incomplete_groups"] if -1 in groups else [])
    if grouping.notes:
        rests = [len(run) % found for run in _runs(prompts)]
        assert grouping.notes[0].count == sum(rest > 0 for rest in rests)


def _runs(prompts: str) -> list[str]:
    runs = [""]
    for letter, before in zip(prompts, " " + prompts, strict=False):
        runs = [*runs, letter] if letter != before or letter == " " else [*runs[:-1], runs[-1] + letter]
    return [run for run in runs if run.strip()]


@pytest.mark.parametrize(
    ("prompts", "n", "words"),
    [
        ("aabbb", None, r"got a run of 2 \(a.parquet, rows 1 to 2\).*--group-size.*--id-column"),
        ("ab cd", None, r"got a run of 1 \(a.parquet, rows 1 to 1\)"),
        ("aa aabbbcc", 2, r"blocks of N = 2, got a run of 3 \(b.parquet, rows 3 to 5\).*--group-size"),
        ("aab", 4, r"at least one block of N = 4"),
    ],
)
def test_blocks_that_do_not_fit(prompts: str, n: int | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        blocks(prompts, n)


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=1, max_size=3), st.integers(2, 5))
def test_blocks_of_whole_groups_are_the_groups(chunks: list[list[int]], n: int) -> None:
    prompt = np.repeat([prompt for chunk in chunks for prompt in chunk], n)
    chunk = np.repeat(np.arange(len(chunks)), [n * len(part) for part in chunks])
    grouping = consecutive_blocks(prompt, chunk, n, ["file"] * len(chunks))
    assert grouping.group_R.tolist() == [i // n for i in range(len(prompt))]
    assert not grouping.notes
    found = consecutive_blocks(prompt, chunk, None, ["file"] * len(chunks)).group_size
    assert found is not None
    assert found % n == 0


@pytest.mark.parametrize(
    ("prompts", "steps", "n", "partition", "codes"),
    [
        ("abab", "0000", None, [[0, 2], [1, 3]], []),
        ("aabb", "0101", None, [[0], [1], [2], [3]], []),
        ("aaaab", "00110", None, [[0, 1], [2, 3], [4]], []),
        ("aaaabb", "000000", 2, [[0, 1], [2, 3], [4, 5]], []),
        ("ababab", "000000", 2, [[0, 2], [1, 3]], ["incomplete_groups"]),
        ("aaabbbccc", "001000000", None, [[0, 1], [2], [3, 4, 5], [6, 7, 8]], ["groups_span_steps"]),
        ("aaabbb", "001000", 3, [[3, 4, 5]], ["incomplete_groups", "groups_span_steps"]),
        ("aaabbb", "003000", 3, [[3, 4, 5]], ["incomplete_groups", "groups_span_steps"]),  # 0 and 3 follow each other
        ("aaabbb", "002111", 3, [[3, 4, 5]], ["incomplete_groups"]),  # 0 and 2 do not: step 1 was logged
        ("aaabbbbcccc", "00111111111", None, [[0, 1], [2], [3, 4, 5, 6], [7, 8, 9, 10]], []),
    ],
)
def test_equal_keys(prompts: str, steps: str, n: int | None, partition: list[list[int]], codes: list[str]) -> None:
    grouping = keys(prompts, steps, n, named=True)
    found: dict[int, list[int]] = {}
    for row, group in enumerate(grouping.group_R.tolist()):
        found.setdefault(group, []).append(row)
    found.pop(-1, None)
    assert sorted(found.values()) == sorted(partition)
    assert sorted(found) == list(range(len(partition)))
    assert [note.code for note in grouping.notes] == codes
    assert grouping.group_size == n


def test_a_prompt_twice_in_a_step_is_refused_unless_parted() -> None:
    prompts, steps = "aabbcccc", "00000000"
    with pytest.raises(ValueError, match=r"got 4 rollouts of the prompt in row 5 at step 0 where 2 are usual"):
        keys(prompts, steps)
    assert keys(prompts, steps, named=True).group_R.tolist() == [0, 0, 1, 1, 2, 2, 2, 2]
    assert keys(prompts, steps, 2).group_R.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    with pytest.raises(ValueError, match=r"at least one group must have N = 5 rollouts, got 4 at most"):
        keys(prompts, steps, 5)
