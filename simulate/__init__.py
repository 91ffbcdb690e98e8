"""Simulation of the paper's softmax policy: everything can be computed, every action, every step."""

from fgrpo.simulate.batches import simulate_many
from fgrpo.simulate.config import PolicyClass, PolicyConfig, RunConfig, UpdateConfig
from fgrpo.simulate.engines import simulate
from fgrpo.simulate.grid import sweep_grid
from fgrpo.simulate.store import load_results
from fgrpo.simulate.summary import collapse_zone
from fgrpo.simulate.sweep import paper_sweep, plan_sweep, run_sweep
from fgrpo.simulate.trajectory import Trajectory

__all__ = [
    "PolicyClass",
    "PolicyConfig",
    "RunConfig",
    "Trajectory",
    "UpdateConfig",
    "collapse_zone",
    "load_results",
    "paper_sweep",
    "plan_sweep",
    "run_sweep",
    "simulate",
    "simulate_many",
    "sweep_grid",
]
