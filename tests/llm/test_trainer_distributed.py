"""Two processes (torchrun, gloo): the oracle on every rank, gamma = 0 as plain TRL, a mutant that only rank 1 shows."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("ranks")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [*launch, str(TESTS / "reference" / "llm_ranks.py"), str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)]


def test_there_are_two_processes(ranks: list[dict[str, Any]]) -> None:
    # `accelerate launch --cpu` starts one only, silently
    assert [(rank["world"], rank["backend"]) for rank in ranks] == [(2, "gloo")] * 2


def test_every_row_is_that_of_the_oracle_on_every_rank(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        assert len(rank["errors"]) == 4
        assert max(rank["errors"].values()) < 1e-6, rank["errors"]


@pytest.mark.parametrize("case", ["split group", "cispo, adapter"])
def test_gamma_0_is_plain_trl(ranks: list[dict[str, Any]], case: str) -> None:
    for rank in ranks:
        assert rank[f"{case}: gamma 0 is plain"]
        assert rank[f"{case}: gamma 1 is not"]
        assert rank[f"{case}: ranks agree"]


def test_weights_of_rank_0_on_every_rank_are_caught(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["mutant error"] < 1e-6  # it cannot be seen there
    assert ranks[1]["mutant error"] > 0.1
