"""What works on this machine: versions, extras, devices, disk. Judged by what is installed, without importing it."""

import os
import platform
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from fgrpo.simulate.engines import ENGINES, cuda_available, memory_in_bytes
from fgrpo.simulate.pool import available_cores
from fgrpo.theory import _validation as check

FOR_USERS = ("llm", "gpu", "distributed", "notebooks")
"""Extras that a user of the package may want; `dev` and `docs` are for its maintainers."""

BESIDE = ("verl", "vllm")
"""Packages that no extra brings: whoever trains at scale has them already."""


@dataclass(frozen=True)
class Ability:
    """One thing that the toolkit does.

    Attributes:
        name: What, in a few words.
        works: Whether it will work here.
        note: How it will work, or what is missing and how to get it; may be empty.
    """

    name: str
    works: bool
    note: str


@dataclass(frozen=True)
class Health:
    """What was found on this machine.

    Attributes:
        fgrpo, python, system: Versions of this package and of Python, and the platform's name.
        versions: Installed versions by name of package; None for what is not there.
        missing: By extra ('core' for what every installation needs), the requirements that are not met.
        cores: Cores that this process may use.
        memory_gb: Memory of the machine in 1e9 bytes; None where the system does not say.
        gpus: Names of the CUDA GPUs that torch can use.
        folder: The folder for results that was looked at.
        free_gb: Free space where that folder is or would be, in 1e9 bytes.
        abilities: What works here.
    """

    fgrpo: str
    python: str
    system: str
    versions: Mapping[str, str | None]
    missing: Mapping[str, tuple[str, ...]]
    cores: int
    memory_gb: float | None
    gpus: tuple[str, ...]
    folder: str
    free_gb: float
    abilities: tuple[Ability, ...]

    @property
    def works(self) -> bool:
        """Whether the installation itself is whole and its results can be written; extras do not count."""
        return all(ability.works for ability in self.abilities[:2])

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        return asdict(self)


def examine(folder: str | os.PathLike[str] = "results") -> Health:
    """Looks at this machine and installation; changes nothing.

    Args:
        folder: Where results are to go; it need not be there.
    """
    needed = _requirements()
    versions = {
        name: installed(name) for name in sorted({*(one.name for part in needed.values() for one in part), *BESIDE})
    }
    missing = {part: tuple(_unmet(requirements)) for part, requirements in needed.items()}
    where = _nearest(Path(folder).absolute())
    gpus = _gpus()
    return Health(
        fgrpo=version("fgrpo"),
        python=platform.python_version(),
        system=platform.platform(terse=True),
        versions=versions,
        missing=missing,
        cores=available_cores(),
        memory_gb=None if (memory := memory_in_bytes()) is None else memory / 1e9,
        gpus=gpus,
        folder=os.fspath(folder),
        free_gb=shutil.disk_usage(where).free / 1e9,
        abilities=_abilities(missing, versions, gpus, where),
    )


def health_text(health: Health) -> str:
    """What was found, as lines for a reader."""
    there = ", ".join(f"{name} {found}" for name, found in health.versions.items() if found)
    memory = "unknown memory" if health.memory_gb is None else f"{health.memory_gb:.0f} GB of memory"
    gpus = ", ".join(health.gpus) or "no CUDA GPU that torch can use"
    width = max(len(ability.name) for ability in health.abilities)
    return "\n".join(
        [
            f"fgrpo {health.fgrpo}, Python {health.python}, {health.system}",
            f"{health.cores} cores, {memory}, {gpus}",
            f"{health.free_gb:.0f} GB free for {health.folder}",
            f"packages: {there}",
            "",
            *(
                f"{'yes' if ability.works else 'no ':<3}  {ability.name:<{width}}  {ability.note}".rstrip()
                for ability in health.abilities
            ),
        ]
    )


def installed(name: str) -> str | None:
    """Version of an installed package, None if it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _requirements() -> dict[str, list[Requirement]]:
    """What this package declares that it needs: 'core', and every extra for users."""
    declared = [Requirement(line) for line in requires("fgrpo") or ()]

    def asked_for(extra: str) -> list[Requirement]:
        return [one for one in declared if one.marker is None or one.marker.evaluate({"extra": extra})]

    core = asked_for("")
    return {"core": core, **{extra: [one for one in asked_for(extra) if one not in core] for extra in FOR_USERS}}


def _unmet(requirements: Iterable[Requirement]) -> Iterable[str]:
    for one in requirements:
        found = installed(one.name)
        if found is None:
            yield f"{one.name}{one.specifier}"
        elif not one.specifier.contains(found, prereleases=True):
            yield f"{one.name}{one.specifier} (found {found})"


def _nearest(folder: Path) -> Path:
    """The folder itself, or the first one above it that is there."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def _gpus() -> tuple[str, ...]:
    if not cuda_available():
        return ()
    import torch

    properties = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    return tuple(f"{one.name} ({one.total_memory / 1e9:.0f} GB)" for one in properties)


def _abilities(
    missing: Mapping[str, tuple[str, ...]], versions: Mapping[str, str | None], gpus: tuple[str, ...], where: Path
) -> tuple[Ability, ...]:
    def needs(name: str, part: str, note: str) -> Ability:
        lacks = missing[part]
        way_out = check.install("" if part == "core" else part)
        return Ability(name, not lacks, f"lacks {', '.join(lacks)}: {way_out}" if lacks else note)

    def beside(name: str, package: str, way_out: str) -> Ability:
        found = versions[package]
        return Ability(name, found is not None, f"{package} {found}" if found else f"lacks {package}: {way_out}")

    writable = os.access(where, os.W_OK) and where.is_dir()
    engine = "engine sparse" if not ENGINES["sparse"].missing else "engine reference, slow: numba is missing"
    device = "on the GPU" if gpus else "on the CPU: the tiny model, and what fits your patience"
    return (
        needs("theory, proofs, figures, claims, sweeps, diagnosis", "core", engine),
        Ability("writing results", writable, "" if writable else f"{where} cannot be written: choose another --out"),
        needs("sweeps on a GPU", "gpu", "")
        if gpus
        else Ability("sweeps on a GPU", False, "no CUDA GPU that torch can use"),
        needs("sweeps on a dask scheduler", "distributed", "docs/how-to/cluster.md"),
        needs("fgrpo train", "llm", device),
        beside("fgrpo train with vLLM", "vllm", 'pip install "trl[vllm]", on a GPU'),
        beside("focal weights in verl", "verl", "docs/how-to/verl.md"),
        needs("notebooks", "notebooks", ""),
    )
