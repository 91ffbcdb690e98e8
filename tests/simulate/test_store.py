import errno
import os
import shutil

import filelock
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fgrpo.simulate import RunConfig, load_results, store
from fgrpo.simulate.engine_reference import simulate
from fgrpo.simulate.store import ResultsFolder


def run(seed=0):
    return RunConfig.preset("figure_matching", group_size=8, seed=seed, steps=20, actions=128, correct=10)


@pytest.fixture(scope="module")
def trajectories():
    return [simulate(run(seed)) for seed in range(3)]


@pytest.fixture
def filled(tmp_path, trajectories):
    with ResultsFolder(tmp_path / "out") as results:
        for one in trajectories:
            results.save(one)
        results.assemble([run(0), run(1)])
    return tmp_path / "out"


def files(folder):
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name != ".lock"
    )


def test_runs_and_table_round_trip_with_their_provenance(filled, trajectories):
    assert files(filled) == sorted(["sweep.parquet", *(f"runs/{run(seed).run_id}.parquet" for seed in range(3))])
    expected = pd.concat([one.to_frame() for one in trajectories[:2]], ignore_index=True)
    pd.testing.assert_frame_equal(load_results(filled), expected)
    metadata = pq.read_schema(filled / "runs" / f"{run(2).run_id}.parquet").metadata
    assert RunConfig.from_json(metadata[b"fgrpo.config"].decode()) == run(2)
    assert metadata[b"fgrpo.engine"] == b"reference"
    assert b"numpy_version" in metadata[b"fgrpo.versions"]
    with ResultsFolder(filled) as results:
        pd.testing.assert_frame_equal(results.assemble([run(2), run(0)]), load_results(filled))
        assert results.has(run(1))
        assert not results.has(run(3))
    assert load_results(filled)["seed"].tolist() == [2, 2, 2, 0, 0, 0]


@pytest.mark.parametrize("keep", [0, 3, 2000, -1])
def test_a_truncated_run_is_named_with_the_way_out(filled, keep):
    path = filled / "runs" / f"{run().run_id}.parquet"
    path.write_bytes(path.read_bytes()[:keep])
    with ResultsFolder(filled) as results, pytest.raises(ValueError, match=f"{path}: delete it"):
        results.has(run())


def test_flipped_bits_in_the_data_are_noticed(filled):
    path = filled / "runs" / f"{run().run_id}.parquet"
    content = bytearray(path.read_bytes())
    columns = pq.read_metadata(path).row_group(0)
    column = next(
        columns.column(i) for i in range(columns.num_columns) if columns.column(i).path_in_schema == "entropy"
    )
    content[column.dictionary_page_offset + column.total_compressed_size - 1] ^= 0x01
    path.write_bytes(content)
    with ResultsFolder(filled) as results, pytest.raises(ValueError, match=f"{path}: delete it"):
        results.assemble([run()])


def test_a_damaged_or_missing_table_is_named(filled, tmp_path):
    (filled / "sweep.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(ValueError, match=r"sweep\.parquet: delete it"):
        load_results(filled)
    with pytest.raises(ValueError, match=r"got .*nowhere without"):
        load_results(tmp_path / "nowhere")


def test_a_file_with_another_run_is_refused(filled):
    runs = filled / "runs"
    shutil.copy(runs / f"{run(1).run_id}.parquet", runs / f"{run(0).run_id}.parquet")
    with ResultsFolder(filled) as results:
        for use in (results.has, lambda config: results.assemble([config])):
            with pytest.raises(ValueError, match=f"got {run(1).run_id} in .*delete it"):
                use(run(0))


def test_a_table_that_is_no_run_is_refused(filled):
    path = filled / "runs" / f"{run(0).run_id}.parquet"
    pd.DataFrame({"step": [0]}).to_parquet(path)
    with ResultsFolder(filled) as results, pytest.raises(ValueError, match=f"{path}: delete it"):
        results.has(run(0))
    store.write_table(pa.Table.from_pandas(pd.DataFrame({"step": [0]})), path)
    with ResultsFolder(filled) as results, pytest.raises(ValueError, match="no readable configuration"):
        results.has(run(0))


def test_any_flipped_bit_is_refused_or_harmless(filled):
    """Of 300 single bits, most are refused; the rest lie where nothing is stored, and the table is the same."""
    rng = np.random.default_rng(1)
    path, expected = filled / "runs" / f"{run().run_id}.parquet", simulate(run()).to_frame()
    whole = path.read_bytes()
    messages = []
    for bit in rng.integers(8 * len(whole), size=300):
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        with ResultsFolder(filled) as results:
            try:
                found = results.assemble([run()])
            except ValueError as error:
                messages.append(str(error))
            else:
                pd.testing.assert_frame_equal(found, expected)
    assert len(messages) > 100
    [message] = set(messages)
    assert f"got the damaged file {path}: delete it" in message
    assert "\n" not in message


@pytest.mark.parametrize("change", [lambda table: table.slice(0, 0), lambda table: table.drop_columns(["entropy"])])
@pytest.mark.parametrize("name", [f"runs/{run().run_id}.parquet", "sweep.parquet"])
def test_a_table_with_the_right_metadata_and_other_content_is_refused(filled, change, name):
    changed = change(pq.read_table(filled / name))
    pq.write_table(changed, filled / name)
    with ResultsFolder(filled) as results, pytest.raises(ValueError, match=f"{name}: delete it"):
        load_results(filled) if name == "sweep.parquet" else results.has(run())


def test_folders_in_the_way_are_left_alone_or_named(filled):
    mine = filled / "runs" / ".d.tmp"
    mine.mkdir()
    with ResultsFolder(filled) as results:
        assert results.has(run())
    assert mine.is_dir()
    (filled / "sweep.parquet").unlink()
    (filled / "sweep.parquet").mkdir()
    with (
        pytest.raises(ValueError, match=r"must be a file, got the folder .*sweep\.parquet: rename it"),
        ResultsFolder(filled),
    ):
        pass
    with pytest.raises(ValueError, match=r"must hold the file sweep\.parquet"):
        load_results(filled)


@pytest.mark.parametrize("folder", [None, 3, "a\0b"])
def test_what_is_no_path_is_refused(folder):
    for use in (load_results, ResultsFolder):
        with pytest.raises(ValueError, match="must be a path, got "):
            use(folder)


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_full_disk_loses_nothing_that_is_finished(filled, trajectories, monkeypatch, failing):
    before = {name: (filled / name).read_bytes() for name in files(filled)}

    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, failing, full)
    with ResultsFolder(filled) as results:
        for write in (lambda: results.save(trajectories[0]), lambda: results.assemble([run(2)])):
            with pytest.raises(
                OSError, match=f"cannot write .*parquet into {filled}.*No space left.*choose another"
            ) as failed:
                write()
            assert failed.value.errno == errno.ENOSPC
    assert {name: (filled / name).read_bytes() for name in files(filled)} == before


def test_left_over_temporary_files_are_removed_by_the_next_writer_only(filled):
    left_over = [filled / ".sweep.parquet.1.tmp", filled / "runs" / ".0123456789abcdef.parquet.1.tmp"]
    for path in left_over:
        path.write_bytes(b"half")
    mine = filled / "runs" / "notes.txt"
    mine.write_text("keep")
    with filelock.FileLock(filled / ".lock"), pytest.raises(ValueError, match="another process"), ResultsFolder(filled):
        pass
    assert all(path.exists() for path in left_over)
    with ResultsFolder(filled):
        assert not any(path.exists() for path in left_over)
    assert mine.read_text() == "keep"


def test_a_second_writer_is_refused_until_the_first_has_left(tmp_path):
    with (
        ResultsFolder(tmp_path),
        pytest.raises(ValueError, match=f"{tmp_path} .*choose another --out"),
        ResultsFolder(tmp_path),
    ):
        pass
    with ResultsFolder(tmp_path):
        pass


def test_a_path_that_cannot_be_a_folder_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ValueError, match=f"{path}.*choose another --out"), ResultsFolder(path):
            pass

    def refuse(*arguments, **options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with (
        pytest.raises(ValueError, match=r"writable, got .*new \(Permission denied\): choose"),
        ResultsFolder(tmp_path / "new"),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("CONFIG_SCHEMA", 3, r"with configuration schema 2 \(this is 3\): choose another --out"),
        ("versions", lambda: {"fgrpo_version": "0.2.7"}, r"with fgrpo version 0\.1 \(this is 0\.2\): choose another"),
    ],
)
def test_a_folder_of_another_schema_or_minor_version_is_refused_and_left_alone(
    filled, monkeypatch, name, value, message
):
    before = files(filled)
    monkeypatch.setattr(store, name, value)
    with pytest.raises(ValueError, match=message), ResultsFolder(filled):
        pass
    monkeypatch.undo()
    with ResultsFolder(filled) as results:  # the lock was given back
        assert results.has(run(0))
    assert files(filled) == before


def test_a_folder_that_does_not_say_its_schema_has_the_first(filled):
    for path in (filled / "runs").glob("*.parquet"):
        table = pq.read_table(path)
        metadata = {
            key: value for key, value in table.schema.metadata.items() if key not in (b"fgrpo.schema", b"fgrpo.digest")
        }
        pq.write_table(table.replace_schema_metadata(metadata), path)
    with pytest.raises(ValueError, match=r"configuration schema 1 \(this is 2\)"), ResultsFolder(filled):
        pass


def test_another_patch_version_is_no_other_kind(filled, monkeypatch):
    monkeypatch.setattr(store, "versions", lambda: {"fgrpo_version": "0.1.99"})
    with ResultsFolder(filled) as results:
        assert results.has(run(0))


def test_a_run_from_a_start_of_its_own_is_not_stored(tmp_path):
    trajectory = simulate(run(), logits=[0.0] * 128)
    with ResultsFolder(tmp_path) as results, pytest.raises(ValueError, match="starts from logits: keep it yourself"):
        results.save(trajectory)


def test_a_folder_of_other_things_is_refused_before_anything_is_written(tmp_path):
    """Documents, a training run; but not a sweep's, nor one with figures, hidden files or folders only."""
    for name in ("docs/index.md", "training/config.json", "logs/runs/events.out", "half/figure_2.png"):
        folder = tmp_path / name.split("/")[0]
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("mine")
        inside = "/".join(name.split("/")[1:])
        message = (
            f"new, empty or a sweep's, got {folder} with the file {inside}: choose another --out, such as {folder}/sw"
        )
        for enter in (lambda folder=folder: ResultsFolder(folder).__enter__(), ResultsFolder(folder).check):
            with pytest.raises(ValueError, match=message):
                enter()
        assert [path for path in folder.rglob("*") if path.is_file()] == [tmp_path / name]


def test_figures_and_folders_beside_the_runs_are_no_other_things(filled, tmp_path):
    (filled / "report.md").write_text("of a sweep")
    ours = tmp_path / "ours"
    (ours / "compare").mkdir(parents=True)
    for name in ("figure_2.png", "figure_2.pdf", "figure_2.csv", ".gitignore"):
        (ours / name).write_text("drawn")
    for folder in (filled, ours):
        ResultsFolder(folder).check()
        with ResultsFolder(folder):
            pass
