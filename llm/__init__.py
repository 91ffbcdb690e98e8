"""Language-model backend: full model runs with the same focal weight as theory and simulation.

`fgrpo.theory.focal_weight` takes torch tensors, so a trainer needs nothing else from here to weight its advantages.
"""
