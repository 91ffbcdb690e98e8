"""Grids of runs: what they hold, in which order, and how text and files name them."""

from itertools import product

import numpy as np
import pytest

from fgrpo.simulate import PolicyClass, PolicyConfig, RunConfig, UpdateConfig, sweep_grid
from fgrpo.simulate.grid import FIELDS, LARGEST_SWEEP, listed_values, read_grid

OTHERS = ("engine", "out")
CLASSES = [{"count": 1, "logit": 2, "correct": True}, {"count": 9, "logit": 0, "correct": False}]


def test_every_combination_once_in_an_order_that_depends_on_the_values_alone():
    runs = sweep_grid(seed=(3, 5), weight_decay=[0, 0.1], group_size=[2, 8], gamma=iter((0, 1)), steps=7)
    expected = [
        RunConfig(n, gamma, seed, 7, update=UpdateConfig(weight_decay=decay))
        for n, gamma, decay, seed in product((2, 8), (0.0, 1.0), (0.0, 0.1), (3, 5))
    ]
    assert runs == expected
    assert runs == sweep_grid(group_size=np.array([2, 8]), gamma=[0, 1], seed=[3, 5], steps=7, weight_decay=(0, 0.1))


def test_presets_are_a_list_too_and_seeds_a_count():
    runs = sweep_grid(preset=["figure_matching", "hu2025"], group_size=4, seeds=3)
    assert [(one.reading, one.seed) for one in runs] == list(product(["figure_matching", "hu2025"], range(3)))
    assert sweep_grid(group_size=4) == [RunConfig(4)]


def test_pairs_and_classes_are_single_values_and_lists_of_them_several():
    assert sweep_grid(group_size=2, betas=(0.5, 0.6))[0].update.betas == (0.5, 0.6)
    assert [one.update.betas for one in sweep_grid(group_size=2, betas=[(0.5, 0.6), [0.7, 0.8]])] == [
        (0.5, 0.6),
        (0.7, 0.8),
    ]
    own = (PolicyClass(1, 2.0, True), PolicyClass(9, 0.0, False))
    assert [one.policy.classes for one in sweep_grid(group_size=2, classes=CLASSES)] == [own]
    assert [one.policy.classes for one in sweep_grid(group_size=2, classes=[None, CLASSES])] == [None, own]


def test_policy_and_update_hold_their_own_fields_or_are_given_whole():
    nested = sweep_grid(group_size=2, policy={"actions": 99, "correct": 9}, update={"learning_rate": [0.1, 0.2]})
    assert nested == sweep_grid(group_size=2, actions=99, correct=9, learning_rate=[0.1, 0.2])
    policy = PolicyConfig(actions=50, correct=5)
    assert {one.policy for one in sweep_grid(group_size=2, policy=policy, seeds=2)} == {policy}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"group_sise": 2}, "did you mean 'group_size'"),
        ({"group_size": 2, "update": {"leaning_rate": 1}}, "a field of update must be .* did you mean 'learning_rate'"),
        ({"group_size": 2, "policy": {"learning_rate": 1}}, "a field of policy must be"),
        ({"gamma": 0}, "group_size must be given, got none"),
        ({"group_size": 2, "seed": 1, "seeds": 2}, "seeds must be given as a count or as themselves, got both"),
        ({"group_size": 2, "seeds": 0}, "seeds must be a whole number between 1 and 1000000, got 0"),
        ({"group_size": []}, "group_size must be one value or a list of them, got none"),
        ({"group_size": 2, "eps": 1, "update": {"eps": 2}}, "given once, got eps twice"),
        ({"group_size": range(2, 2002), "seeds": 501}, "at most 1000000 runs, got 1002000: pass shorter lists"),
        ({"group_size": [2, "x"]}, "group_size must be a whole number between 1 and 2147483647, got 'x'"),
        ({"group_size": 2**31}, "group_size must be a whole number between 1 and 2147483647"),
        ({"group_size": 2, "preset": "hu"}, "did you mean 'hu2025'"),
        ({"group_size": 2, "betas": 0.9}, "betas must be two numbers"),
    ],
)
def test_what_is_no_grid_is_refused_in_one_line(values, message):
    with pytest.raises(ValueError, match=message) as caught:
        sweep_grid(**values)
    assert "\n" not in str(caught.value)


def test_the_largest_sweep_is_allowed():
    assert len(sweep_grid(group_size=2, seeds=100)) == 100
    assert LARGEST_SWEEP == 10**6


def test_fields_are_those_of_the_configurations():
    assert {*RunConfig(2).to_dict(), *PolicyConfig.__dataclass_fields__, *UpdateConfig.__dataclass_fields__} == {
        *FIELDS
    } - {"preset"}
    assert len({*FIELDS}) == len(FIELDS)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("2,8,32", [2, 8, 32]),
        ("1e-3, 0.01,3E2,-.5e+1,1.", [1e-3, 0.01, 300.0, -5.0, 1.0]),
        ("focal,constant", ["focal", "constant"]),
        ("[0.9,0.999],[0.8,0.99]", [[0.9, 0.999], [0.8, 0.99]]),
        ("[{count: 1, logit: 2, correct: true}, null]", [[{"count": 1, "logit": 2, "correct": True}, None]]),
        ("", []),
    ],
)
def test_text_is_read_as_values(text, values):
    assert listed_values("--x", text) == values


@pytest.mark.parametrize(
    "text", ["2,,8", "2],[3", "[", "{a: 1, a: 2}", "a: b: c", "[" * 1200, "2020-99-99", "9" * 5000]
)
def test_text_that_is_no_list_is_refused_in_one_line(text):
    with pytest.raises(ValueError, match="--x must be values separated by commas, got ") as caught:
        listed_values("--x", text)
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_a_file_names_fields_and_other_settings(tmp_path):
    file = tmp_path / "sweep.yaml"
    file.write_text("""
group_size: [2, 8]
seeds: 2
update:
  learning_rate: [1e-3, 1e-2]   # numbers, though YAML 1.1 takes 1e-3 for a text
policy: {actions: 99, correct: 9}
engine: sparse
""")
    fields, others = read_grid(file, OTHERS)
    assert others == {"engine": "sparse"}
    assert fields == {"group_size": [2, 8], "seeds": 2, "learning_rate": [1e-3, 1e-2], "actions": 99, "correct": 9}
    assert len(sweep_grid(**fields)) == 8


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"groupsize: 2", "did you mean 'group_size'"),
        (b"enginee: sparse", "did you mean 'engine'"),
        (b"update: {lr: 1}", "a field of update must be one of"),
        (b"gamma: 0\ngamma: 1", "a sweep file must be YAML .*line 1: a name given twice"),
        (b"gamma: [0, 1", "a sweep file must be YAML .*line 1: expected"),
        (b"- 1\n- 2", "a sweep file must be YAML"),
        (b"", "a sweep file must be YAML"),
        (b"\xff\xfe\xfa", "a sweep file must be YAML"),
        (b"? [1, 2]\n: 3", "a sweep file must be YAML"),
        (b"1: 2", "a name in .* must be one of"),
        (b"x: !!python/object/apply:os.getcwd []", "a sweep file must be YAML"),
    ],
)
def test_a_file_that_is_no_grid_is_refused_in_one_line(tmp_path, content, message):
    file = tmp_path / "sweep.yaml"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_grid(file, OTHERS)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_grid(tmp_path / "none.yaml", OTHERS)
