"""Checkable sentences of the paper, each with a fair verdict that is computed from theory or from stored runs."""
