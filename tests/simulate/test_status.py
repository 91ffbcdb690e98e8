"""The state of a sweep in its folder."""

import json

import pytest

from fgrpo.simulate import run_sweep, simulate, store, sweep_grid
from fgrpo.simulate.status import sweep_status
from fgrpo.simulate.store import ResultsFolder, load_plan

GRID = {"group_size": [2, 8], "gamma": [0, 1], "seeds": 2, "steps": 20, "actions": 128, "correct": 10}


@pytest.fixture
def filled(tmp_path):
    run_sweep(sweep_grid(**GRID), tmp_path, workers=1, engine="reference")
    return tmp_path


def test_a_finished_sweep(filled):
    found = sweep_status(filled)
    assert (found.asked, found.finished, found.missing, found.damaged, found.other_runs) == (8, 8, [], [], 0)
    assert (found.engines, found.devices) == ({"reference": 8}, {"cpu": 8})
    assert [runs for name, runs in found.versions.items() if "fgrpo 0." in name and "numpy" in name] == [8]
    assert list(found.final.columns) == ["group_size", "gamma", "seeds", "retained_mass", "correct_mass"]
    assert found.final[["group_size", "gamma"]].to_numpy().tolist() == [[2, 0], [2, 1], [8, 0], [8, 1]]
    for row in found.final.itertuples():
        runs = [simulate(one, engine="reference") for one in sweep_grid(**GRID)]
        runs = [one for one in runs if (one.config.group_size, one.config.gamma) == (row.group_size, row.gamma)]
        assert row.seeds == len(runs) == 2
        assert row.retained_mass == pytest.approx(sum(one.retained_mass[-1] for one in runs) / 2, rel=1e-15)
        assert row.correct_mass == pytest.approx(sum(one.correct_mass[-1] for one in runs) / 2, rel=1e-15)
    assert "8 of 8 runs finished, 0 missing" in str(found)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["final"][0]["seeds"] == 2


def test_a_sweep_on_its_way_is_seen_past_its_writers_lock(filled):
    configs = sweep_grid(**{**GRID, "seeds": 3})
    with ResultsFolder(filled) as writer:
        writer.keep_plan(configs)
        before = sorted(filled.rglob("*"))
        found = sweep_status(filled)
        assert (found.asked, found.finished) == (12, 8)
        assert found.missing == [one for one in configs if one.seed == 2]
        assert sorted(filled.rglob("*")) == before
        writer.save(simulate(found.missing[0], engine="reference"))
        assert sweep_status(filled).finished == 9
    assert sweep_status(filled).final["seeds"].tolist() == [3, 2, 2, 2]


def test_damage_and_other_runs_are_told(filled):
    first = filled / "runs" / f"{load_plan(filled)[0].run_id}.parquet"
    first.write_bytes(first.read_bytes()[:-100])
    with ResultsFolder(filled) as writer:
        writer.keep_plan(sweep_grid(**{**GRID, "seeds": 1}))
    found = sweep_status(filled)
    assert (found.asked, found.finished, found.missing, found.damaged, found.other_runs) == (4, 3, [], [first], 4)
    assert f"damaged: {first}: delete it" in str(found)
    assert "stored runs that belong to other sweeps: 4" in str(found)
    assert found.to_dict()["damaged"] == [str(first)]


def test_nothing_finished_is_no_error(tmp_path):
    with ResultsFolder(tmp_path) as writer:
        writer.keep_plan(sweep_grid(**GRID))
    found = sweep_status(tmp_path)
    assert found.finished == 0
    assert found.final.empty
    assert str(found).splitlines() == [f"{tmp_path}: 0 of 8 runs finished, 8 missing"]


def test_what_varies_has_a_column_and_what_names_it_stands_for_it(tmp_path):
    tiny = {"group_size": 2, "steps": 5, "actions": 128, "correct": 10}

    def labels(**varied):
        run_sweep(sweep_grid(**tiny, **varied), tmp_path, workers=1, engine="reference")
        return list(sweep_status(tmp_path).final.columns)[2:-3]

    assert labels(preset=["hu2025", "figure_matching"], seeds=2) == ["reading"]
    assert labels(preset=["hu2025", "figure_matching"], optimizer=["sgd", "adam"]) == [
        *("surrogate", "optimizer", "learning_rate", "weight_decay")
    ]
    assert labels(weight=["focal", "constant"], learning_rate=[0.1, 0.2]) == ["weight", "learning_rate"]
    assert labels(betas=[[0.1, 0.2], [0.3, 0.4]]) == ["betas"]


def test_a_folder_without_a_plan_or_with_one_of_another_kind_is_one_line(filled, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"must hold the file plan.parquet, got .*none without it: start a sweep"):
        sweep_status(tmp_path / "none")
    monkeypatch.setattr(store, "CONFIG_SCHEMA", 99)
    with pytest.raises(ValueError, match=r"configuration schema 2 \(this is 99\)"):
        sweep_status(filled)
    monkeypatch.undo()
    (filled / "plan.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"damaged file .*plan.parquet: delete it"):
        sweep_status(filled)
