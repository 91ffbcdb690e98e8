"""Small runs of the sparse engine, and its rows written out as single actions."""

import numpy as np

from fgrpo.simulate import RunConfig
from fgrpo.simulate.policy import initial_logits
from fgrpo.simulate.sparse import engine, groups, philox, rows

SMALL = {"actions": 1280, "correct": 100}


def small(preset="figure_matching", **changes):
    sizes = {} if "policy" in changes else SMALL
    return RunConfig.preset(preset, **{"group_size": 8, "steps": 60, **sizes, **changes})


def plain_start(logits, multiplicity, correct):
    """A start without leaves to speak of."""
    correct = np.asarray(correct)
    return rows.Start(logits, np.asarray(multiplicity, dtype=float), correct, correct)


def single_actions(policy, logits=None):
    """A start in which each action is a row from the beginning: the dense simulation."""
    logits = initial_logits(policy) if logits is None else logits
    action = np.arange(logits.size)
    leaf = (action >= policy.leaves.start) & (action < policy.leaves.stop)
    return rows.Start(logits, np.ones(logits.size), action < policy.correct, leaf)


def in_use(extent):
    """Rows that there are, correct ones first."""
    return np.concatenate([np.arange(extent.correct), np.arange(extent.first_wrong, extent.end)])


def fields(progress, *names):
    """Fields of the rows in use, shape [names, rows]."""
    values = progress.rows.values.reshape(-1, rows.STRIDE // rows.LANES, rows.LANES)
    return [values[:, name // rows.LANES].ravel()[in_use(progress.extent)] for name in names]


def dense_logits(progress, start):
    """Logits of single actions, class by class: correct ones first, the anchor at 0."""
    logit, multiplicity = fields(progress, rows.LOGIT, rows.MULTIPLICITY)
    origin = progress.rows.origin[in_use(progress.extent)]
    assert (start.correct[origin] == (in_use(progress.extent) < progress.extent.first_wrong)).all()
    by_class = np.argsort(origin, kind="stable")
    return np.repeat(logit[by_class], multiplicity[by_class].astype(int))


def keep_awake(monkeypatch):
    """Has all rows move in all steps, and keep their places."""
    rule_of = engine.rule_of
    monkeypatch.setattr(engine, "rule_of", lambda *arguments: rule_of(*arguments)._replace(future=np.inf))


def dense_counts(config, logits, step):
    """The group that the sparse engine draws in a step from a policy of single actions."""
    start = single_actions(config.policy, logits)
    key, buffer = philox.stream_words(config.stream_key), groups.buffer_for(config.group_size)
    state, extent = rows.new_rows(start)
    rows.compute_masses(state, extent.end, logits.max())
    total = rows.accumulate(state, extent.end)
    groups.draw_rows(state, extent.end, total, config.group_size, step, key, buffer)
    return state.times[in_use(extent)].astype(np.int64)
