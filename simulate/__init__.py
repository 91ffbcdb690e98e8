"""Simulation of the paper's softmax policy: everything can be computed, every action, every step.

One run or many: `simulate`, `simulate_many`. Sweeps that can be interrupted, and their results: `plan_sweep`,
`run_sweep`, `sweep_status`, `load_results`, `collapse_zone`. Studies of them as tables: `zone_table`,
`readings_table`, `compare_arms`.
"""

from fgrpo.simulate.batches import simulate_many
from fgrpo.simulate.comparison import Arm, compare_arms, comparison_arms
from fgrpo.simulate.config import PRESETS, RunConfig, UpdateConfig
from fgrpo.simulate.engines import simulate
from fgrpo.simulate.grid import sweep_grid
from fgrpo.simulate.policy_config import PolicyClass, PolicyConfig
from fgrpo.simulate.readings import readings_sweep, readings_table
from fgrpo.simulate.status import SweepStatus, sweep_status
from fgrpo.simulate.store import load_results
from fgrpo.simulate.summary import collapse_zone
from fgrpo.simulate.sweep import SweepPlan, paper_sweep, plan_sweep, run_sweep
from fgrpo.simulate.trajectory import Trajectory
from fgrpo.simulate.zones import zone_table

__all__ = [
    "PRESETS",
    "Arm",
    "PolicyClass",
    "PolicyConfig",
    "RunConfig",
    "SweepPlan",
    "SweepStatus",
    "Trajectory",
    "UpdateConfig",
    "collapse_zone",
    "compare_arms",
    "comparison_arms",
    "load_results",
    "paper_sweep",
    "plan_sweep",
    "readings_sweep",
    "readings_table",
    "run_sweep",
    "simulate",
    "simulate_many",
    "sweep_grid",
    "sweep_status",
    "zone_table",
]
