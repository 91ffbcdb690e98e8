"""Simulation of the paper's softmax policy: everything can be computed, every action, every step."""

from fgrpo.simulate.config import PolicyConfig, RunConfig, UpdateConfig
from fgrpo.simulate.engine_reference import simulate
from fgrpo.simulate.store import load_results
from fgrpo.simulate.summary import collapse_zone
from fgrpo.simulate.sweep import paper_sweep, run_sweep
from fgrpo.simulate.trajectory import Trajectory

__all__ = [
    "PolicyConfig",
    "RunConfig",
    "Trajectory",
    "UpdateConfig",
    "collapse_zone",
    "load_results",
    "paper_sweep",
    "run_sweep",
    "simulate",
]
