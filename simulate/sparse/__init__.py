"""The sparse engine: the simulation of fgrpo.simulate.simulate as compiled code that follows the drawn actions only."""

from fgrpo.simulate.sparse.engine import bytes_needed, prepare, simulate_sparse, supports

__all__ = ["bytes_needed", "prepare", "simulate_sparse", "supports"]
