"""The engines and the choice among them for one run.

All engines have one law and random numbers of their own, so their trajectories agree in distribution and not in value:
reference  every action in every step, numpy; reads like the method.
sparse     compiled, follows the actions that were ever drawn.
torch      every action in every step, many runs at once, on a CPU or a CUDA GPU.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from fgrpo.simulate import engine_reference
from fgrpo.simulate.config import RunConfig
from fgrpo.simulate.trajectory import Trajectory
from fgrpo.theory._validation import one_of, shown

# measured: one draw takes about as long as two actions of a step
ACTIONS_PER_DRAW = 2
# measured with 12,800 and 128,000 actions, N = 2 to 131072: within a factor of 2.5, in actions of a dense step
SPARSE_STEP, SPARSE_POWER = 110, 0.55


@dataclass(frozen=True)
class Engine:
    """One way to compute a run; the functions import what they need when they are called.

    Attributes:
        run: Computes these runs, in their order; picklable.
        batches: Which runs are best computed in one call of `run`; takes the same options.
        supports: Whether it has what the configuration names.
        bytes_needed: Memory that one run takes at most, about.
        cost: How long one run takes, in units that all engines share, about.
        modules: What must be installed.
        options: Further arguments that `run` takes.
        prepare: What to do once in this process before several others compute runs.
    """

    run: Callable[..., list[Trajectory]]
    batches: Callable[..., list[list[RunConfig]]]
    supports: Callable[[RunConfig], bool]
    bytes_needed: Callable[[RunConfig], int]
    cost: Callable[[RunConfig], float]
    modules: tuple[str, ...] = ()
    options: frozenset[str] = frozenset()
    prepare: Callable[[], None] | None = None

    @property
    def missing(self) -> list[str]:
        """Modules that are not installed."""
        return [name for name in self.modules if find_spec(name) is None]


def _one_by_one(configs: Sequence[RunConfig], **options: Any) -> list[list[RunConfig]]:
    return [[config] for config in configs]


def _run_reference(configs: Sequence[RunConfig], **options: Any) -> list[Trajectory]:
    return [engine_reference.simulate(config, **options) for config in configs]


def _run_sparse(configs: Sequence[RunConfig]) -> list[Trajectory]:
    from fgrpo.simulate.sparse import simulate_sparse

    return [simulate_sparse(config) for config in configs]


def _sparse_supports(config: RunConfig) -> bool:
    from fgrpo.simulate.sparse import supports

    return supports(config)


def _sparse_bytes_needed(config: RunConfig) -> int:
    from fgrpo.simulate.sparse import bytes_needed

    return bytes_needed(config)


def _sparse_prepare() -> None:
    from fgrpo.simulate.sparse import prepare

    prepare()


def _run_torch(configs: Sequence[RunConfig], device: str | None = None) -> list[Trajectory]:
    from fgrpo.simulate.torch_engine import simulate_torch

    return simulate_torch(configs, device=torch_device(device))


def _torch_batches(configs: Sequence[RunConfig], device: str | None = None) -> list[list[RunConfig]]:
    from fgrpo.simulate.torch_engine import torch_batches

    return torch_batches(configs, device=torch_device(device))


def _torch_bytes_needed(config: RunConfig) -> int:
    from fgrpo.simulate.torch_engine import bytes_needed

    return bytes_needed(config)


def _dense_cost(config: RunConfig) -> float:
    return config.steps * float(config.policy.actions + ACTIONS_PER_DRAW * config.group_size)


def _sparse_cost(config: RunConfig) -> float:
    return config.steps * SPARSE_STEP * float(config.group_size**SPARSE_POWER)


def torch_device(device: str | None) -> str:
    """Where the torch engine computes."""
    return device or ("cuda" if cuda_available() else "cpu")


ENGINES: dict[str, Engine] = {
    "reference": Engine(
        run=_run_reference,
        batches=_one_by_one,
        supports=lambda config: True,
        bytes_needed=engine_reference.bytes_needed,
        cost=_dense_cost,
        options=frozenset({"logits", "snapshots"}),
    ),
    "sparse": Engine(
        run=_run_sparse,
        batches=_one_by_one,
        supports=_sparse_supports,
        bytes_needed=_sparse_bytes_needed,
        cost=_sparse_cost,
        modules=("numba",),
        prepare=_sparse_prepare,
    ),
    "torch": Engine(
        run=_run_torch,
        batches=_torch_batches,
        supports=lambda config: True,
        bytes_needed=_torch_bytes_needed,
        cost=_dense_cost,
        modules=("torch",),
        options=frozenset({"device"}),
    ),
}


def simulate(
    config: RunConfig,
    *,
    engine: str = "auto",
    device: str | None = None,
    logits: Any = None,
    snapshots: Sequence[int] = (),
) -> Trajectory:
    """Runs one configuration to its end.

    Args:
        config: The run.
        engine: "reference", "sparse", "torch", or "auto": torch on a CUDA GPU where there is one, else sparse where it
            has what the run names, else reference.
        device: "cpu", "cuda", or None for the GPU if there is one (torch) or the CPU (the others).
        logits: A start of one's own in place of config.policy's: finite, shape [actions], the correct ones first.
        snapshots: Steps after which the whole policy is kept (0 for the start).

    Raises:
        ValueError: If `config` is none; if the engine is unknown, not installed, or lacks what is asked for; if there
            is no CUDA GPU and one is asked for; if the run cannot fit in memory; if logits or snapshots do not fit it.
    """
    options = given(device=device, logits=logits, snapshots=tuple(snapshots) or None)
    name, options = choose_engine(known_run(config), engine, options)
    [trajectory] = ENGINES[name].run([config], **options)
    return trajectory


def choose_engine(config: RunConfig, engine: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The engine that shall compute a run, and those of the options that it has to be given.

    Raises:
        ValueError: If there is none, see `simulate`.
    """
    one_of("engine", engine, ["auto", *ENGINES])
    device = options.get("device")
    on_gpu = device is not None and _is_gpu(device)
    if device == "cpu" and engine != "torch":
        # where all others are anyway
        options = {name: value for name, value in options.items() if name != "device"}
    if engine != "auto":
        candidates = [engine]
    elif on_gpu:
        candidates = ["torch"]
    else:
        candidates = [*(["torch"] if device is None and cuda_available() else []), "sparse", "reference"]
    refusals = {name: _refusal(name, config, options) for name in candidates}
    for name, refusal in refusals.items():
        if refusal is None:
            return name, options
    raise ValueError(refusals[candidates[-1]])


def _refusal(name: str, config: RunConfig, options: dict[str, Any]) -> str | None:
    """Why the engine cannot compute the run, in one line; None if it can."""
    engine, way_out = ENGINES[name], "choose engine='reference'" if name != "reference" else "leave it out"
    if engine.missing:
        return f"engine {name!r} needs what is installed, got no {' and no '.join(engine.missing)}: {way_out}"
    lacking = sorted(set(options) - engine.options)
    if lacking:
        return f"engine {name!r} must take what it is given, got {' and '.join(lacking)}, which it does not: {way_out}"
    if not engine.supports(config):
        update = config.update
        rules = (update.surrogate, update.optimizer, update.advantage_scale, config.weight, config.success_estimate)
        return f"engine {name!r} must have what the run names, got {', '.join(rules)}: {way_out}"
    needed, memory = engine.bytes_needed(config), memory_in_bytes()
    if memory is not None and needed > memory:
        return (
            f"a run must fit in memory, got one that needs {needed / 1e9:.3g} GB of {memory / 1e9:.3g} GB with engine "
            f"{name!r}: pass fewer actions"
        )
    return None


@cache
def cuda_available() -> bool:
    """Whether torch is installed and sees a CUDA GPU; torch is imported only where there is a driver for one."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    if find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def memory_in_bytes() -> int | None:
    """Memory of this machine; None where the system does not say.

    All of it, not what is free now: the system frees what it merely caches when it is asked for more.
    """
    if not hasattr(os, "sysconf"):
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _is_gpu(device: Any) -> bool:
    if device == "cpu":
        return False
    kind, _, index = str(device).partition(":")
    if kind != "cuda" or not (index.isdecimal() or device == "cuda"):
        raise ValueError(f"device must be 'cpu' or 'cuda', got {device!r}: leave it out for the GPU if there is one")
    if not cuda_available():
        raise ValueError(f"device must be there, got {device!r} and no CUDA GPU that torch can use: pass 'cpu'")
    return True


def known_run(config: Any) -> RunConfig:
    """The run, if it is one."""
    if not isinstance(config, RunConfig):
        raise ValueError(f"a run must be a RunConfig, got {shown(config)}: pass RunConfig(group_size=...)")
    return config


def given(**options: Any) -> dict[str, Any]:
    """The options that were set."""
    return {name: value for name, value in options.items() if value is not None}
