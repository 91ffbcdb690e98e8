"""Starting the processes of a run through `accelerate launch`, as `trl grpo` does."""

import os
import subprocess
from collections.abc import Sequence

LAUNCHED = "FGRPO_LAUNCHED"
"""Environment variable that is set in the processes that `launch` starts."""


def is_launched() -> bool:
    """Whether this process is one of a launched run: by `launch`, torchrun or accelerate."""
    return LAUNCHED in os.environ or "WORLD_SIZE" in os.environ


def launch(launch_arguments: Sequence[str], arguments: Sequence[str]) -> int:
    """Run `python -m fgrpo` in the processes that the arguments of `accelerate launch` ask for.

    Args:
        launch_arguments: Arguments of `accelerate launch`, such as `--num_processes 8`.
        arguments: Arguments of `fgrpo`.

    Returns:
        0, or the exit code of the process that failed first; it has said why.

    Source: the convention of TRL's command line.
    """
    from accelerate.commands.launch import launch_command, launch_command_parser
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    os.environ[LAUNCHED] = "1"
    try:
        launch_command(launch_command_parser().parse_args([*launch_arguments, "-m", "fgrpo", *arguments]))
    except subprocess.CalledProcessError as error:
        return error.returncode
    except ChildFailedError as error:
        return int(error.get_first_failure()[1].exitcode)
    return 0
