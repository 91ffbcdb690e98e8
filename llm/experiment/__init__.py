"""The experiment in the tiny world: its protocol and arms, one run, and the numbers of its report."""
