"""Sampling a model on problems with verifiable answers, and scoring sequences under it.

`models` loads what is evaluated, `problems` the data, `backends` draw completions (transformers or vLLM), `sampling`
has them judged, `log_probabilities` scores given completions. What is stored, counted and compared is in
`fgrpo.evaluation_run`, `fgrpo.rare_probe` and `fgrpo.evaluation`.
"""
