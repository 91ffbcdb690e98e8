"""The default reading at full size: 128,000 actions, 1000 steps, against the values of an earlier 32-seed study.

Ranges are at least 4 standard errors wide around the study's means, so a right simulator fails one of these with
probability below 1e-3 over seeds; the seeds are fixed.
"""

import pytest

from fgrpo.simulate import paper_sweep, run_sweep


@pytest.fixture(scope="module")
def final(tmp_path_factory):
    """Final rows, indexed by (group_size, gamma, seed)."""
    # on the sparse engine, and one group size on the reference engine, too
    configs = paper_sweep(group_sizes=(2, 512, 8192, 131_072), gammas=(0,))
    configs += paper_sweep(group_sizes=(256, 512, 32_768), seeds=(0,), record_every=1000)
    results = run_sweep(configs, tmp_path_factory.mktemp("paper"), engine="sparse", workers=2)
    last = results[results["step"] == 1000]
    return last.drop_duplicates(["group_size", "gamma", "seed"]).set_index(["group_size", "gamma", "seed"]).sort_index()


@pytest.mark.parametrize(
    ("group_size", "lowest", "highest"),
    [(2, 0.98, 1.0), (512, 0.028, 0.042), (8192, 0.036, 0.050), (131_072, 0.98, 1.0)],
)
def test_retained_mass_is_high_at_both_ends_and_low_between(final, group_size, lowest, highest):
    retained = final.loc[(group_size, 0.0), "retained_mass"]
    assert len(retained) == 4
    assert lowest <= retained.mean() <= highest


def test_correct_mass_rises_at_every_group_size(final):
    assert (final["correct_mass"] > 0.6301).all()
    assert (final.loc[[512, 8192, 131_072], "correct_mass"] > 0.97).all()


@pytest.mark.parametrize("group_size", [256, 512, 32_768])
def test_the_focal_weight_retains_more(final, group_size):
    assert final.loc[(group_size, 1.0, 0), "retained_mass"] > final.loc[(group_size, 0.0, 0), "retained_mass"]


def test_the_reference_engine_draws_the_same_collapse(tmp_path):
    results = run_sweep(paper_sweep(group_sizes=(512,), gammas=(0,)), tmp_path, engine="reference", workers=2)
    last = results[results["step"] == 1000]
    assert 0.028 <= last["retained_mass"].mean() <= 0.042
    assert (last["correct_mass"] > 0.97).all()
