"""Starting the processes of a run through `accelerate launch`, as `trl grpo` does."""

import os
import subprocess
from collections.abc import Sequence

LAUNCHED = "FGRPO_LAUNCHED"
"""Environment variable that is set in the processes that `launch` starts."""


def is_launched() -> bool:
    """Whether this process is one of a launched run: by `launch`, torchrun or accelerate.

    LOCAL_RANK tells, as for accelerate: some clusters set WORLD_SIZE and RANK in shells that run a single process.
    """
    return LAUNCHED in os.environ or "LOCAL_RANK" in os.environ


def running_processes() -> int:
    """How many processes run this program: 1 where it is not launched."""
    return int(os.environ.get("WORLD_SIZE", 1)) if is_launched() else 1


def is_main_process() -> bool:
    """Whether this process is the one that writes and speaks for all."""
    return not is_launched() or int(os.environ.get("RANK", 0)) == 0


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

    os.environ[LAUNCHED] = "1"  # inherited by what is started
    try:
        launch_command(launch_command_parser().parse_args([*launch_arguments, "-m", "fgrpo", *arguments]))
    except subprocess.CalledProcessError as error:
        return error.returncode
    except ChildFailedError as error:
        return int(error.get_first_failure()[1].exitcode)
    finally:
        del os.environ[LAUNCHED]
    return 0
