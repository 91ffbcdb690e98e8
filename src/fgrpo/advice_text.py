"""An advice in plain words, legible at 100 columns."""

from math import isfinite, isinf, isnan

from fgrpo.advice_model import Advice, Focal, PromptRisk, PromptsRisk
from fgrpo.simulate.summary import counted
from fgrpo.words import name, percent, short, table, words

_MEANING = {
    "inactive": "Groups of this size are often all right or all wrong. A larger group, up to the peak, is active more "
    "often and therefore also misses more often.",
    "miss-prone": "A group is at least as likely as the level to be active without a rollout from the rare region. Its "
    "update then learns from the sampled answers alone; what the rare region loses by it depends on the update rule.",
    "covered": "This size lies at or beyond the peak: a larger group samples the rare region more often and misses it "
    "less. The probability is below the level, which need not be small.",
}


def advice_text(advice: Advice) -> str:
    """The advice as paragraphs and small tables: what was assumed or estimated, the regime, and what was asked for.

    Args:
        advice: Answer of `fgrpo.advice.advise`.

    Returns:
        Lines of at most 100 characters, without a newline at the end; long prompt names are cut.

    Source: this project.
    """
    n = advice.group_size
    parts = []
    if advice.prompt is not None:
        parts += _prompt(advice.prompt, n, advice.level)
    if advice.prompts is not None:
        parts += _prompts(advice.prompts, n, advice.level)
    if advice.rollouts_per_step is not None:
        parts += _budget(advice, advice.rollouts_per_step)
    if advice.focal is not None:
        parts += _focal(advice.focal, n)
    return "\n".join(parts)


def _prompt(risk: PromptRisk, n: int, level: float) -> list[str]:
    mu, tau = risk.success_rate, risk.rare_mass
    lines = [
        words(
            f"One prompt: success rate {short(mu)}, rare mass {short(tau)}, groups of N = {n} independent rollouts. "
            "The rare mass is your assumption: nothing here measures it."
        ),
        "",
        f"Regime at N = {n}: {risk.regime} (level {short(level)})",
        f"  Pr(active)      {short(risk.active_probability):>10}   some rollouts right, some wrong",
        f"  Pr(tail miss)   {short(risk.tail_miss_probability):>10}   active, and no rollout in the rare region",
    ]
    if isnan(risk.peak_group_size):
        why = "every correct rollout is rare" if 0 < mu < 1 else "all rollouts are right" if mu else "none is right"
        return [*lines, words(f"No group size has a tail miss: {why}.", "  ")]
    return [
        *lines,
        words(_MEANING[risk.regime], "  "),
        *(words(line, "  ") for line in _over_group_sizes(risk, level)),
    ]


def _over_group_sizes(risk: PromptRisk, level: float) -> list[str]:
    if isinf(risk.peak_group_size):
        peak = "none: a region of no mass is always missed, so tail misses rise with N as active groups do"
    else:
        peak = f"N = {short(risk.peak_group_size)}, with Pr(tail miss) {short(risk.peak_probability)}"
    if isnan(risk.risky_from):
        risky = "none"
    else:
        last = f"to {short(risk.risky_to)}" if isfinite(risk.risky_to) else "and all larger ones"
        risky = f"N = {short(risk.risky_from)} {last}"
    covered = f"N = {short(risk.coverage_group_size)}" if isfinite(risk.coverage_group_size) else "no N"
    hit = short(risk.misses_before_first_hit) if isfinite(risk.misses_before_first_hit) else "never sampled"
    return [
        f"peak: {peak}",
        f"risky sizes (Pr(tail miss) at least {short(level)}): {risky}",
        f"at or below that level from: {covered}",
        f"tail-miss updates to expect before the rare region is first sampled, if the policy stays as it is: {hit}",
    ]


def _prompts(risk: PromptsRisk, n: int, level: float) -> list[str]:
    return [
        words(
            f"{counted(risk.prompts, 'prompt')} with {counted(risk.samples, 'sample')}, rare fraction "
            f"{short(risk.rare_fraction)}, groups of N = {n} independent rollouts. The rare fraction is your "
            "assumption: counts do not show which correct answers are rare."
        ),
        "",
        words(
            "All numbers below are estimates for the policy that was sampled. Success rates are shrunk by a uniform "
            "prior, (X + 1) / (n + 2), and probabilities averaged over what the counts leave open: tail-miss "
            "probabilities at the plain X/n are biased (0 wherever X is 0 or n). Regimes, shares of update strength "
            "and the noise of the weight are those at the shrunk rate."
        ),
        "",
        f"Regimes at N = {n} (level {short(level)}); mean success rate {short(risk.success_rate)}",
        *(
            f"  {name:<15} {count:>10}   {percent(count / risk.prompts)} of the prompts"
            for name, count in risk.regimes.items()
        ),
        "Shares of groups to expect",
        f"  all wrong       {percent(risk.all_wrong):>10}",
        f"  all right       {percent(risk.all_right):>10}",
        f"  active          {percent(risk.active_probability):>10}   some rollouts right, some wrong",
        f"  tail miss       {percent(risk.tail_miss_probability):>10}   active, and no rollout in the rare region",
        "Most exposed prompts",
        *table(
            ("prompt", "correct", "samples", "success rate", "Pr(tail miss)", "regime"),
            (
                (
                    name(item.prompt),
                    str(item.correct),
                    str(item.samples),
                    short(item.success_rate),
                    short(item.tail_miss_probability),
                    item.regime,
                )
                for item in risk.most_exposed
            ),
        ),
    ]


def _budget(advice: Advice, rollouts: int) -> list[str]:
    n = advice.group_size
    like = "like this one" if advice.prompts is None else "of the file"
    lines = [
        "",
        f"Budget: R = {rollouts} rollouts per step are {counted(rollouts // n, 'prompt')} {like} at N = {n}",
        *table(
            ("N", "prompts", "Pr(active)", "Pr(tail miss) per group", "tail misses per step of R", "per rollout"),
            (
                (
                    str(row.group_size),
                    str(row.prompts_per_step),
                    short(row.active_probability),
                    short(row.tail_miss_probability),
                    short(row.tail_misses_per_step),
                    short(row.tail_miss_per_rollout),
                )
                for row in advice.budget
            ),
        ),
        words(
            "Pr(tail miss) can rise with N before it falls: it answers for a fixed number of visits to each prompt. "
            "Tail misses per rollout never rise from N = 2 on: they answer for a fixed number of rollouts, of which a "
            "larger N spends more on fewer prompts.",
            "  ",
        ),
    ]
    if advice.prompts is not None:
        prompts = advice.prompts.prompts
        steps = prompts * n / rollouts
        taken = "1 step" if steps == 1 else f"{short(steps)} steps"
        lines.append(f"  One pass over the {counted(prompts, 'prompt')} takes {taken}.")
    return lines


def _focal(focal: Focal, n: int) -> list[str]:
    title = ["", f"Focal weight (1 - X/N)^gamma with gamma = {short(focal.gamma)}"]
    if n == 1:
        return [*title, "  A group of one rollout is never active: there is no update to weight."]
    if focal.gamma == 0:
        return [*title, "  It is 1 for every group: the unweighted method."]
    return [
        *title,
        f"  mean weight     {short(focal.mean_weight):>10}   "
        f"(1 - success rate)^gamma would be {short(focal.true_weight)}",
        f"  if active       {short(focal.mean_weight_given_active):>10}   from {short(focal.smallest_active_weight)} "
        f"at one wrong rollout to {short(focal.largest_active_weight)} at one right",
        f"  noise of X/N    {short(focal.spread):>10}   standard deviation of the weight of one prompt "
        f"({short(focal.spread_given_active)} if active)",
        words(f"What gamma changes: {_changes(focal, n)}", "  "),
        *table(
            ("success rate", "mean weight of active groups", "expected step times", "... with division by std"),
            (
                tuple(
                    map(short, (row.success_rate, row.mean_weight_given_active, row.step_length, row.step_length_std))
                )
                for row in focal.rows
            ),
        ),
        *_bands(focal),
        *(words(text, "  ") for text in _unchanged(focal, n)),
    ]


def _changes(focal: Focal, n: int) -> str:
    if n == 2:
        return (
            "at N = 2 every active group has X/N = 1/2, so the weight is the constant "
            f"{short(focal.smallest_active_weight)}. That is a smaller learning rate and nothing else."
        )
    return (
        "the relative weight of prompts, and so the utility of the success rate that updates climb in expectation: "
        "without division by the standard deviation and for large N it is proportional to "
        f"pass@{short(focal.gamma + 1.0)} in place of pass@1."
    )


def _bands(focal: Focal) -> list[str]:
    if not focal.bands:
        return []
    return table(
        ("success rate", "prompts", "share of active groups", "share of their weight"),
        (
            (
                f"{short(band.low)} to {short(band.high)}",
                str(band.prompts),
                percent(band.share_of_active_groups),
                percent(band.share_of_weight),
            )
            for band in focal.bands
        ),
    )


def _unchanged(focal: Focal, n: int) -> list[str]:
    lines = [
        "What it does not change: the direction of a prompt's expected update (on-policy, unclipped, one weight per "
        "rollout; its length alone, by the factors above), and Pr(active) and Pr(tail miss) of the policy as it is."
    ]
    if isfinite(focal.update_share):
        lines.append(
            f"Share of update strength (X/N)(1 - X/N) in tail-miss groups: {short(focal.update_share)} without the "
            f"weight, {short(focal.weighted_update_share)} with it."
        )
    if n == 2:
        control = (
            f"Control: gamma 0 with the learning rate times {short(focal.smallest_active_weight)} is the same method "
            f"in plain gradient steps (for large N it would be {short(focal.matched_learning_rate)})."
        )
    else:
        control = (
            f"Control to run beside it: gamma 0 with the learning rate times {short(focal.matched_learning_rate)}, "
            "the mean advantage size that the weight leaves for success rates spread uniformly over prompts and large "
            "N. It controls for step size in plain gradient steps; with Adam or norm clipping a scaled learning rate "
            "is not the same as scaled advantages."
        )
    return [*lines, control]
