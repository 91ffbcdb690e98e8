"""A diagnosis as one HTML page: plots as inline SVG, tables beside them, no script, nothing from the network."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from math import isnan
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from fgrpo.diagnosis.model import Diagnosis, Part, PromptHistory
from fgrpo.diagnosis.rollouts import counted
from fgrpo.diagnosis.text import diagnosis_text, trend_words, window_name
from fgrpo.figures.diagnosis import (
    plot_prompts_over_time,
    plot_shares_over_time,
    plot_strength,
    plot_tail_misses_over_time,
)
from fgrpo.figures.svg import inline_svg
from fgrpo.simulate.files import write_atomically

MOST_DRAWN_PROMPTS = 60
_SHARES = {
    "success_rate": "Success rate",
    "active_share": "Share of active groups",
    "all_wrong_share": "All wrong",
    "all_right_share": "All right",
}

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --ground: #ffffff; --line: #8888; --sign: #b00020; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --ground: #16181c; --sign: #ff8a80; } }
body { color: var(--ink); background: var(--ground); font: 16px/1.5 system-ui, sans-serif; margin: 0 auto;
  max-width: 60rem; padding: 1rem 1.5rem 3rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; } h2 { font-size: 1.15rem; margin-top: 2rem; }
figure { margin: 1rem 0; } figure svg { width: 100%; height: auto; display: block; }
figcaption { font-size: .9rem; } svg text { font-family: system-ui, sans-serif !important; }
.sign { border-left: 4px solid var(--sign); padding-left: .75rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dd { margin: 0; }
pre { overflow-x: auto; font-size: .8rem; border: 1px solid var(--line); padding: .75rem; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"  # loads nothing: data: is the empty icon


def write_page(diagnosis: Diagnosis, file: Path) -> None:
    """Write the page of a diagnosis.

    Raises:
        OSError: If it cannot be written; what was there before then stays.
    """
    write_atomically(file, page(diagnosis).encode())


def page(diagnosis: Diagnosis) -> str:
    """The page of a diagnosis: warnings, plots with what they show in words, and the whole text.

    Args:
        diagnosis: Answer of `fgrpo.diagnosis.diagnose.diagnose`.

    Returns:
        HTML that needs nothing else: no script, no network; light or dark as the reader's system is.

    Source: this project.
    """
    title = escape(f"Diagnosis of {diagnosis.path}")
    body = "\n".join(
        [
            f"<h1>{title}</h1>",
            *_facts(diagnosis),
            *_signs(diagnosis),
            *(line for figure in _figures(diagnosis) for line in figure),
            "<h2>In words and numbers</h2>",
            f"<pre>{escape(diagnosis_text(diagnosis))}</pre>",
        ]
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f'<link rel="icon" href="data:,">\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n'
    )


def _facts(diagnosis: Diagnosis) -> Iterator[str]:
    run, layout = diagnosis.run, diagnosis.layout
    facts = {
        "Rollouts": f"{run.rollouts} scored, of {counted(run.prompts, 'different prompt')}, in "
        f"{counted(run.groups, 'group')}; N = {diagnosis.group_size}",
        "Logged steps": f"{run.first_step} to {run.last_step}",
        "Right": f"{layout.success_column} above {layout.success_threshold:g}",
        "Groups": layout.rule,
        "Success rate": f"{run.success_rate.estimate:.3f}",
        "Active groups": f"{run.active_share.estimate:.1%}",
        **{
            f"Tail miss at {miss.rare_fraction:g}": f"{miss.probability.estimate:.3f} (estimate)"
            for miss in run.tail_miss
        },
    }
    yield (
        "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items()) + "</dl>"
    )


def _signs(diagnosis: Diagnosis) -> Iterator[str]:
    yield "<h2>Warnings</h2>"
    if not diagnosis.warnings:
        yield "<p>None.</p>"
    for note in diagnosis.warnings:
        yield f'<p class="sign"><strong>{escape(note.code)}</strong>: {escape(note.text)}</p>'
    for note in diagnosis.notes:
        yield f"<p>Note: {escape(note.text)}</p>"


def _figures(diagnosis: Diagnosis) -> Iterator[list[str]]:
    windows = window_table(diagnosis.windows)
    trends = {(trend.quantity, str(trend.rare_fraction)): trend_words(trend) for trend in diagnosis.trends}
    yield _figure(
        "Success and activity",
        inline_svg(
            plot_shares_over_time(windows),
            "shares",
            title="Success and activity over time",
            description=" ".join(_sequence(title, windows[name]) for name, title in _SHARES.items()),
        ),
        f"Means and shares with {diagnosis.confidence:.0%} intervals per window of logged steps. "
        f"Success rate: {trends.get(('success_rate', 'nan'), 'one window')}; "
        f"active groups: {trends.get(('active_share', 'nan'), 'one window')}.",
    )
    if rhos := [miss.rare_fraction for miss in diagnosis.run.tail_miss]:
        regimes = regime_table(diagnosis.windows)
        said = [_sequence(f"Tail-miss estimate at {rho:g}", windows[f"tail_miss_{i}"]) for i, rho in enumerate(rhos)]
        said += [_sequence(f"Share of prompts {name}", regimes[name]) for name in ("inactive", "miss-prone", "covered")]
        yield _figure(
            "Tail misses",
            inline_svg(
                plot_tail_misses_over_time(windows, regimes, rhos),
                "misses",
                title="Tail misses and regimes over time",
                description=" ".join(said),
            ),
            "Left: estimated probability that a group is active and has no rollout from the rare part of the right "
            "answers, for assumed rare fractions; "
            + "; ".join(f"at {rho:g}: {trends.get(('tail_miss', str(rho)), 'one window')}" for rho in rhos)
            + f". Right: regimes of the prompts at N = {diagnosis.group_size}, level {diagnosis.level:g}, at shrunk "
            "success rates.",
        )
    drawn = _spread(diagnosis.prompts)
    rates = _rates(drawn, len(diagnosis.windows))
    yield _figure(
        "Prompts",
        inline_svg(
            plot_prompts_over_time(rates, windows["steps"].tolist()),
            "prompts",
            title="Success rate of prompts over time",
            description=f"{len(drawn)} prompts; success rate over the run from "
            f"{drawn[0].success_rate.estimate:.2f} to {drawn[-1].success_rate.estimate:.2f}.",
        ),
        f"{len(drawn)} of {len(diagnosis.prompts)} prompts, evenly spread over the success rates of the run. A gap: "
        "not seen in this window.",
    )
    if diagnosis.run.active_share.estimate > 0:
        shares = _strength(diagnosis)
        yield _figure(
            "What a focal weight would have done",
            inline_svg(
                plot_strength(shares),
                "strength",
                title="Share of update strength by success rate and gamma",
                description=" ".join(
                    _sequence(f"Gamma {gamma}", shares[gamma]) for gamma in shares.columns if gamma != "band"
                )
                + f" Bands: {', '.join(shares['band'])}.",
            ),
            "Share of the update strength (mean size of a group's advantages, divided by its standard deviation) that "
            "groups of each empirical success rate have, recomputed for each gamma.",
        )


def _figure(heading: str, svg: str, caption: str) -> list[str]:
    return [f"<h2>{escape(heading)}</h2>", f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"]


def _sequence(title: str, values: Iterable[float]) -> str:
    """A sentence with the values of a curve, for readers who do not see it."""
    return f"{title}: {', '.join('no value' if isnan(value) else f'{value:.2f}' for value in values)}."


def window_table(windows: Sequence[Part]) -> DataFrame:
    """Shares and tail misses of the windows with their limits, as the plots of `fgrpo.figures.diagnosis` take them."""
    rows = []
    for part in windows:
        row: dict[str, float | str] = {"steps": window_name(part)}
        estimates = {name: getattr(part, name) for name in _SHARES}
        estimates |= {f"tail_miss_{i}": miss.probability for i, miss in enumerate(part.tail_miss)}
        for name, estimate in estimates.items():
            row |= {name: estimate.estimate, f"{name}_lower": estimate.lower, f"{name}_upper": estimate.upper}
        rows.append(row)
    return DataFrame(rows)


def regime_table(windows: Sequence[Part]) -> DataFrame:
    """Shares of prompts in each regime at the first rare fraction, likewise."""
    first = [(window_name(part), part.regimes[0]) for part in windows]
    return DataFrame(
        {
            "steps": [steps for steps, _ in first],
            "inactive": [one.inactive for _, one in first],
            "miss-prone": [one.miss_prone for _, one in first],
            "covered": [one.covered for _, one in first],
        }
    )


def _spread(prompts: Sequence[PromptHistory]) -> list[PromptHistory]:
    """At most `MOST_DRAWN_PROMPTS` prompts by rising success rate, at even distances."""
    rising = sorted(prompts, key=lambda one: one.success_rate.estimate)
    chosen = np.unique(np.linspace(0, len(rising) - 1, min(MOST_DRAWN_PROMPTS, len(rising))).round().astype(int))
    return [rising[i] for i in chosen]


def _rates(prompts: Sequence[PromptHistory], windows: int) -> NDArray[np.float64]:
    rates = np.full((len(prompts), windows), np.nan)
    for row, prompt in enumerate(prompts):
        for seen in prompt.windows:
            rates[row, seen.window] = seen.success_rate.estimate
    return rates


def _strength(diagnosis: Diagnosis) -> DataFrame:
    bands = [f"{band.low:g} to {band.high:g}" for band in diagnosis.bands]
    return DataFrame({"band": bands, **{f"{row.gamma:g}": row.strength[0].shares for row in diagnosis.what_if}})
