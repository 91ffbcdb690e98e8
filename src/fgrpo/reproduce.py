"""The main job: the paper's sweep at full scale, Figures 2, 4 and 5, and a report that sets its sentences beside them.

What is reproduced, and where it deviates from the paper:
1. the categorical simulation of Appendix J with the reading that draws the paper's figure (importance ratio, Adam,
   learning rate 1e-2), N = 2, 4, ..., 131072, gamma 0 and 1, four seeds, 1000 steps: Figure 4 (Figure 2 in v2);
2. beyond the paper: four group sizes run on to step 4000, since the large-N regime is a matter of when one stops;
3. beyond the paper: two other readings of the text on a few group sizes, gamma 0 and 1, eight seeds;
4. Figures 2 and 5 (3 and 5 in v2) from Lemma 3.1; Figure 5 for mu = .64 as printed and for the start's own Q_pos.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from fgrpo import figures
from fgrpo.claims.evidence import DEFAULT_READING, OTHER_READINGS, Evidence
from fgrpo.drawing import Material, draw_figures
from fgrpo.figure_name import FigureName
from fgrpo.report import reproduction_report
from fgrpo.simulate import RunConfig, paper_sweep, run_sweep
from fgrpo.simulate.files import write_atomically
from fgrpo.simulate.store import SWEEP
from fgrpo.simulate.sweep import quick_sweep

REPORT = "report.md"
FIGURES = (FigureName.TWO, FigureName.FOUR, FigureName.FIVE)


@dataclass(frozen=True)
class Plan:
    """The runs of the main job.

    Attributes:
        sweep: Figure 4 a to c.
        trajectories: Group sizes whose trajectories Figure 4 shows; they are also run on (Figure 4 d).
        readings: Runs of the two other readings.
    """

    sweep: list[RunConfig]
    trajectories: tuple[int, ...]
    readings: list[RunConfig]

    @property
    def long(self) -> list[RunConfig]:
        """The default reading, four times as long, with two seeds."""
        first = self.sweep[0]
        return paper_sweep(
            DEFAULT_READING,
            group_sizes=self.trajectories,
            seeds=range(2),
            steps=4 * first.steps,
            record_every=2 * first.record_every,
            policy=first.policy,
        )


def _full_plan() -> Plan:
    literal = paper_sweep("appendix_j_literal", group_sizes=(2, 32, 512, 8192, 131072), seeds=range(8))
    # Hu et al.'s own group sizes, and the smallest and largest of the sweep
    hu = paper_sweep("hu2025", group_sizes=(2, 4, 16, 512, 51200, 131072), seeds=range(8))
    return Plan(paper_sweep(), figures.TRAJECTORY_GROUP_SIZES, literal + hu)


def _quick_plan() -> Plan:
    sweep = quick_sweep()
    sizes = sorted({config.group_size for config in sweep})
    few = (sizes[0], sizes[len(sizes) // 2], sizes[-1])
    readings = [
        run
        for name in OTHER_READINGS
        for run in paper_sweep(name, group_sizes=few, seeds=range(1), steps=sweep[0].steps, policy=sweep[0].policy)
    ]
    return Plan(sweep, few, readings)


def reproduce(
    out: str | os.PathLike[str], *, quick: bool = False, workers: int | None = None, progress: bool = True
) -> list[Path]:
    """Runs what `out` does not hold yet, draws the figures and writes the report.

    Args:
        out: Results folder; finished runs in it are reused.
        quick: A reduced action space that still shows the three regimes.
        workers: Processes; None for one per core.
        progress: Whether to show a progress bar, if stderr is a terminal.

    Returns:
        Paths of the files written: figures, table of results, report.

    Raises:
        ValueError: If workers < 1, or the folder cannot be used.
        OSError: If a file cannot be written; finished runs stay stored.
    """
    plan = _quick_plan() if quick else _full_plan()
    results = run_sweep([*plan.sweep, *plan.long, *plan.readings], out, workers=workers, progress=progress)
    evidence = Evidence(results, plan.sweep[0].policy, plan.sweep[0].steps)
    material = Material(out, required=True)
    drawn = [path for name in FIGURES for path in draw_figures(name, out, material).paths]
    report = Path(out, REPORT)
    write_atomically(report, reproduction_report(evidence).encode())
    return [*drawn, Path(out, SWEEP), report]
