"""A language model that can be enumerated: prompts ask for three digits with a given sum, so everything can be computed.

`tokenizer` and `model` build both in code (no download), `task` has prompts, correct completions and the reward.
"""
