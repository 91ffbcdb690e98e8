"""A language model that can be enumerated: its prompts ask for three digits with a given sum.

`tokenizer` and `model` build both in code (no download), `task` has prompts, correct completions and the reward.
"""
