import dataclasses
import hashlib
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.simulate import PolicyConfig, RunConfig, UpdateConfig
from fgrpo.simulate.config import CONFIG_SCHEMA, PRESETS, PolicyClass

RUN_CHANGES = {
    "group_size": 9,
    "gamma": 0.5,
    "seed": 1,
    "steps": 999,
    "record_every": 7,
    "policy": PolicyConfig(wrong_logit=-1.0),
    "update": UpdateConfig(learning_rate=0.02),
    "weight": "constant",
    "success_estimate": "ema",
    "weight_scale": 0.5,
    "weight_alpha": 2.0,
    "weight_threshold": 0.25,
    "weight_low": 0.1,
    "prior_correct": 2.0,
    "prior_wrong": 2.0,
    "ema_rate": 0.1,
}
CLASSES = (PolicyClass(3, 1.0, True), PolicyClass(5, 2.0, True), PolicyClass(9, 0.0, False), PolicyClass(1, 4.0, False))
POLICY_CHANGES = {
    "actions": 127_999,
    "correct": 5,
    "anchor_logit": 1,
    "correct_logit": 1,
    "wrong_logit": 1,
    "classes": CLASSES,
    "leaf_class": 0,
}
UPDATE_CHANGES = {
    "surrogate": "linear",
    "optimizer": "sgd",
    "advantage_scale": "std",
    "scale_eps": 1e-3,
    "learning_rate": 1.0,
    "betas": (0.8, 0.999),
    "eps": 1e-7,
    "weight_decay": 0.1,
    "reward_correct": 2.0,
    "reward_wrong": 0.0,
}


def test_defaults_are_those_of_appendix_j():
    run = RunConfig(8)
    assert (run.gamma, run.seed, run.steps, run.record_every) == (0.0, 0, 1000, 10)
    assert run.policy == PolicyConfig(128_000, 10_000, 5.0, 3.0, 0.0)
    assert run.update == UpdateConfig("importance_ratio", "adam", 1e-2, (0.9, 0.999), 1e-8, 0.0, "none", 1.0, -1.0)


@given(
    group_size=st.integers(1, 2**31 - 1),
    gamma=st.floats(0, 1e6),
    seed=st.integers(0, 2**70),
    learning_rate=st.floats(1e-300, 99),
    wrong_logit=st.floats(-50, 50),
)
def test_round_trips_keep_the_configuration_and_its_id(group_size, gamma, seed, learning_rate, wrong_logit):
    run = RunConfig.preset(
        "hu2025", group_size=group_size, gamma=gamma, seed=seed, learning_rate=learning_rate, wrong_logit=wrong_logit
    )
    for copy in (RunConfig.from_dict(run.to_dict()), RunConfig.from_json(run.to_json())):
        assert copy == run
        assert hash(copy) == hash(run)
        assert copy.run_id == run.run_id
        assert copy.stream_key == run.stream_key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (RunConfig(8, gamma=1), RunConfig(8, gamma=1.0)),
        (RunConfig(8, gamma=-0.0), RunConfig(8)),
        (RunConfig(np.int64(8), seed=np.uint8(3)), RunConfig(8, seed=3)),
        (RunConfig(8, update=UpdateConfig(betas=[0.9, 0.999])), RunConfig(8)),
        (RunConfig(8, gamma=np.float64(0.5)), RunConfig(8, gamma=0.5)),
        (RunConfig(8, policy=PolicyConfig(anchor_logit=5)), RunConfig(8)),
    ],
)
def test_equal_values_of_other_types_are_one_run(one, other):
    assert one == other
    assert one.run_id == other.run_id
    assert one.to_json() == other.to_json()
    assert type(one.seed) is int


def test_every_field_changes_the_id():
    changed = [RunConfig(**{"group_size": 8, name: value}) for name, value in RUN_CHANGES.items()]
    changed += [RunConfig(8, policy=PolicyConfig(**{name: value})) for name, value in POLICY_CHANGES.items()]
    changed += [RunConfig(8, update=UpdateConfig(**{name: value})) for name, value in UPDATE_CHANGES.items()]
    ids = {run.run_id for run in changed} | {RunConfig(8).run_id}
    assert len(ids) == len(changed) + 1
    assert all(len(one) == 16 and set(one) <= set("0123456789abcdef") for one in ids)
    for kind, changes in ((RunConfig, RUN_CHANGES), (PolicyConfig, POLICY_CHANGES), (UpdateConfig, UPDATE_CHANGES)):
        assert {one.name for one in dataclasses.fields(kind)} == set(changes)


def digest(values):
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def test_ids_and_streams_are_digests_of_what_differs_from_the_defaults():
    """So a field added later, at its default, leaves them alone. These literals must never change within a schema."""
    run = RunConfig.preset("hu2025", group_size=8, steps=77, actions=99, correct=9)
    differing = {
        "group_size": 8,
        "policy": {"actions": 99, "correct": 9},
        "update": {"surrogate": "linear", "weight_decay": 0.01, "learning_rate": 0.001},
    }
    assert run.run_id == digest({"schema": CONFIG_SCHEMA, "config": {**differing, "steps": 77}})[:16]
    assert run.stream_key == int(digest(differing), 16)
    assert RunConfig(8).run_id == digest({"schema": 2, "config": {"group_size": 8}})[:16] == "2c49e767dc819510"
    classes = dataclasses.replace(run, policy=PolicyConfig(classes=CLASSES))
    assert classes.stream_key == int(
        digest(
            {
                **differing,
                "policy": {
                    "actions": 18,
                    "correct": 8,
                    "classes": [dataclasses.asdict(one) for one in CLASSES],
                },
            }
        ),
        16,
    )


def test_the_stream_depends_on_all_but_length_and_recording():
    run = RunConfig(8)
    recorded = dataclasses.replace(run, steps=7, record_every=3, policy=PolicyConfig(leaf_class=0))
    assert run.stream_key == recorded.stream_key
    for name in set(RUN_CHANGES) - {"steps", "record_every"}:
        assert dataclasses.replace(run, **{name: RUN_CHANGES[name]}).stream_key != run.stream_key


def test_classes_round_trip_and_are_sorted_with_correct_ones_first():
    shuffled = PolicyConfig(classes=(CLASSES[2], CLASSES[0], CLASSES[3], CLASSES[1]))
    assert shuffled == PolicyConfig(classes=CLASSES)
    assert (shuffled.actions, shuffled.correct, shuffled.classes) == (18, 8, CLASSES)
    run = RunConfig(8, policy=shuffled)
    for copy in (RunConfig.from_dict(run.to_dict()), RunConfig.from_json(run.to_json())):
        assert copy == run
        assert hash(copy) == hash(run)
        assert copy.run_id == run.run_id
    assert RunConfig.preset("figure_matching", group_size=8, classes=CLASSES) == run
    assert PolicyConfig(classes=list(CLASSES)) == PolicyConfig(18, 8, classes=CLASSES)


def test_the_leaves_are_the_most_numerous_correct_class_or_the_one_asked_for():
    default = PolicyConfig()
    assert (default.leaf_class_index, default.leaves) == (1, slice(1, 10_000))
    assert PolicyConfig(leaf_class=0).leaves == slice(0, 1)
    assert PolicyConfig(9, 1).leaves == slice(0, 1)
    assert PolicyConfig(9, 2).leaves == slice(1, 2)
    assert PolicyConfig(classes=CLASSES).leaves == slice(3, 8)
    assert PolicyConfig(classes=CLASSES, leaf_class=0).leaves == slice(0, 3)
    assert [one.count for one in default.action_classes] == [1, 9_999, 118_000]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": CLASSES[:2]}, "a correct and a wrong one"),
        ({"classes": ()}, "a correct and a wrong one"),
        ({"classes": 3}, "tuple of PolicyClass, got 3: pass"),
        ({"classes": "ab"}, "tuple of PolicyClass"),
        ({"classes": (1, 2)}, "a class must be a PolicyClass, got 1: pass"),
        ({"classes": ({"count": 1, "logit": 0},)}, "a class must be a PolicyClass"),
        ({"classes": ({"count": 1, "logit": 0, "correct": True, "color": 1},)}, "got 'color': pass one of them"),
        ({"classes": CLASSES, "actions": 19}, "actions must be that of the classes, 18, got 19: leave it out"),
        ({"classes": CLASSES, "correct": 3}, "correct must be that of the classes, 8, got 3: leave it out"),
        ({"classes": CLASSES, "wrong_logit": 1.0}, "wrong_logit must be left out where classes are given, got 1.0: "),
        ({"classes": CLASSES, "leaf_class": 2}, "leaf_class must be a whole number between 0 and 1, got 2: "),
        ({"leaf_class": -1}, "leaf_class must be a whole number between 0 and 1"),
        ({"classes": (PolicyClass(2**31 - 1, 0, True), PolicyClass(1, 0, False))}, "at most 2147483647 actions"),
    ],
)
def test_policies_that_cannot_be_are_refused_in_one_line(changes, message):
    with pytest.raises(ValueError, match=message) as refused:
        PolicyConfig(**changes)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [((0, 0.0, True), "count"), ((1.5, 0.0, True), "count"), ((1, math.inf, True), "logit"), ((1, 0.0, 1), "correct")],
)
def test_classes_that_cannot_be_are_refused_in_one_line(values, message):
    with pytest.raises(ValueError, match=message):
        PolicyClass(*values)


def test_raw_rewards_are_not_scaled():
    with pytest.raises(ValueError, match="advantage_scale must be 'none' for the surrogate 'linear_distinct'"):
        UpdateConfig(surrogate="linear_distinct", advantage_scale="std")


def test_presets_and_readings():
    for name, update in PRESETS.items():
        run = RunConfig.preset(name, group_size=4, gamma=1, actions=50, correct=10)
        assert run == RunConfig(4, 1.0, policy=PolicyConfig(50, 10), update=update)
        assert run.reading == name
    assert RunConfig(4) == RunConfig.preset("figure_matching", group_size=4)
    literal, hu = PRESETS["appendix_j_literal"], PRESETS["hu2025"]
    assert (literal.surrogate, literal.weight_decay, literal.learning_rate) == ("linear", 0.01, 1e-2)
    assert (hu.surrogate, hu.weight_decay, hu.learning_rate) == ("linear", 0.01, 1e-3)
    assert RunConfig.preset("hu2025", group_size=4, learning_rate=1e-2).reading == "appendix_j_literal"
    assert RunConfig.preset("hu2025", group_size=4, eps=1e-5).reading == "custom"
    policy = PolicyConfig(60, 20)
    assert RunConfig.preset("hu2025", group_size=4, policy=policy, correct=7).policy == PolicyConfig(60, 7)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("group_size", value) for value in (0, -1, 2**31, 1.5, 8.0, "8", True, None, float("nan"))),
        *(("gamma", value) for value in (-0.1, float("nan"), float("inf"), "1", True, [1.0], None, 1j)),
        *(("seed", value) for value in (-1, True, np.True_, 1.5, "1", None)),
        *(("steps", value) for value in (0, -5, 2.5, True)),
        *(("record_every", value) for value in (0, 0.5, "10")),
        *(("policy", value) for value in (None, 3, UpdateConfig())),
        *(("update", value) for value in ("adam", PolicyConfig())),
        *(("actions", value) for value in (1, 0, 2.0, 2**31)),
        *(("correct", value) for value in (0, 128_000, 128_001, 10.0)),
        *(("anchor_logit", value) for value in (float("inf"), float("nan"), "5", False)),
        ("correct_logit", -float("inf")),
        ("wrong_logit", None),
        *(("learning_rate", value) for value in (0, -1e-3, float("inf"), float("nan"))),
        *(("betas", value) for value in ((0.9,), (0.9, 1.0), (-0.1, 0.9), 0.9, "ab", (0.9, float("nan")), (0.9, None))),
        *(("eps", value) for value in (0, -1e-8, float("nan"))),
        *(("weight_decay", value) for value in (-0.01, float("inf"))),
        *(("reward_correct", value) for value in (-1, -2.0, float("inf"))),
        *(("reward_wrong", value) for value in (1, 2.0, float("nan"))),
        *((name, value) for name in ("weight_scale", "weight_alpha", "weight_low") for value in (-0.1, math.inf, "1")),
        *((name, value) for name in ("prior_correct", "prior_wrong", "scale_eps") for value in (0, -1, math.nan, True)),
        *((name, value) for name in ("weight_threshold", "ema_rate") for value in (-0.1, 1.1, math.nan, None)),
        ("ema_rate", 0),
    ],
)
def test_values_outside_their_range_are_refused_in_one_line(name, value):
    with pytest.raises(ValueError, match=name) as refused:
        RunConfig.preset("figure_matching", **{"group_size": 8, name: value})
    message = str(refused.value)
    assert "\n" not in message
    assert "got " in message
    assert ": " in message.split("got ", 1)[1]


@pytest.mark.parametrize(
    ("name", "value", "nearest"),
    [
        ("surrogate", "linaer", "linear"),
        ("surrogate", "ratio", "importance_ratio"),
        ("optimizer", "adamw", "adam"),
        ("optimizer", "sign", "signsgd"),
        ("advantage_scale", None, "none"),
        ("weight", "vocal", "focal"),
        ("success_estimate", ["empirical"], "empirical"),
    ],
)
def test_an_unknown_choice_names_the_nearest_and_all_valid_ones(name, value, nearest):
    with pytest.raises(ValueError, match=f"{name} must be one of .*{nearest}.*did you mean '{nearest}'"):
        RunConfig.preset("figure_matching", group_size=8, **{name: value})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "group_size must be given"),
        ({"group_size": 8, "gama": 1}, "did you mean 'gamma'"),
        ({"group_size": 8, "policy": {"actoins": 5}}, "did you mean 'actions'"),
        ({"group_size": 8, "update": {"weightdecay": 0}}, "did you mean 'weight_decay'"),
        ({"group_size": 8, "policy": {"actions": 5, "correct": 5}}, "correct must be below actions"),
        ([8], "dictionary"),
    ],
)
def test_from_dict_and_from_json_refuse_what_is_no_run(values, message):
    for read, given_ in ((RunConfig.from_dict, values), (RunConfig.from_json, json.dumps(values))):
        with pytest.raises(ValueError, match=message):
            read(given_)


@pytest.mark.parametrize(
    "name",
    [
        one.name
        for kind in (RunConfig, PolicyConfig, UpdateConfig)
        for one in dataclasses.fields(kind)
        if isinstance(one.default, int | float) or one.name == "group_size"
    ],
)
def test_every_numeric_field_is_checked(name):
    changes = {"group_size": 8, name: "x"}
    with pytest.raises(ValueError, match=f"{name} must be .*, got 'x'") as refused:
        RunConfig.preset("figure_matching", **changes)
    assert "\n" not in str(refused.value)


def test_from_json_refuses_what_is_no_json():
    with pytest.raises(ValueError, match="must be JSON"):
        RunConfig.from_json("{group_size: 8}")


@pytest.mark.parametrize("text", [None, 3, "[" * 100_000, "x" * 1000])
def test_from_json_says_in_one_short_line_what_is_no_text_of_a_run(text):
    with pytest.raises(ValueError, match="a run must be JSON, got ") as refused:
        RunConfig.from_json(text)
    assert len(str(refused.value)) < 120


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"anchor_logit": 1e308, "wrong_logit": -1e308}, "anchor_logit must be at most 700 in size, got 1e\\+308"),
        (
            {"anchor_logit": -600, "correct_logit": -600, "wrong_logit": 600},
            "correct mass must be at least 1e-300, got 0",
        ),
        ({"reward_correct": 1e200}, "reward_correct must be at most 1e\\+100 in size"),
        ({"reward_wrong": -1e200}, "reward_wrong must be at most 1e\\+100 in size"),
        ({"learning_rate": 1e300}, "learning_rate must be at most 1000 in size"),
        ({"weight_decay": 100.0}, r"learning_rate \* weight_decay must be below 1, got 0.01 \* 100.0"),
        ({"weight_scale": 1e300}, "weight_scale must be at most 1e\\+30 in size"),
        ({"eps": 1e300}, "eps must be at most 1000 in size"),
        ({"scale_eps": 5e-324}, "scale_eps must be at least 1e-100"),
        ({"gamma": 10**400}, "gamma must be within float64, got 1000"),
        ({"gamma": 10**5000}, "gamma must be within float64, got a int too long to write out"),
    ],
)
def test_values_that_would_overflow_are_refused_in_one_short_line(changes, message):
    with pytest.raises(ValueError, match=message) as refused:
        RunConfig.preset("figure_matching", group_size=8, **changes)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


def test_values_at_their_bounds_are_taken():
    largest = {"reward_correct": 1e100, "reward_wrong": -1e100, "learning_rate": 1e3, "weight_scale": 1e30, "eps": 1e3}
    logits = {"anchor_logit": 700, "correct_logit": -700, "wrong_logit": 700}
    assert RunConfig.preset("figure_matching", group_size=8, **largest, **logits, scale_eps=1e-100, weight_decay=9e-4)


def test_preset_refuses_unknown_names():
    with pytest.raises(ValueError, match="did you mean 'figure_matching'"):
        RunConfig.preset("figure-matching", group_size=8)
    with pytest.raises(ValueError, match="did you mean 'wrong_logit'"):
        RunConfig.preset("hu2025", group_size=8, wrong_logits=1)
    with pytest.raises(ValueError, match="group_size must be given"):
        RunConfig.preset("hu2025")


def test_configurations_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        RunConfig(8).gamma = 1.0
