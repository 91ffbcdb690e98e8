"""A child process that compares mathematical answers and is killed when one takes too long."""

import json
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from enum import Enum
from pathlib import Path

_PROGRAM = Path(__file__).with_name("_math_worker.py")
_STARTING = 120.0  # seconds that importing sympy may take on a busy machine
_LONGEST_REQUEST = 60_000  # bytes: a pipe takes them without a reader, so writing never waits


class Verdict(Enum):
    """What came of a question."""

    YES = "yes"
    NO = "no"
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"


class MathWorker:
    """Compares answers by math-verify in a persistent child process.

    Questions go through pipes, one at a time. A child that does not reply within the time limit is killed and the next
    question starts another. Nothing here uses a thread or a signal of the parent, so it works from any thread, under
    torchrun and in daemonic processes. After a fork the new process starts a child of its own. POSIX only.

    Args:
        time_limit: Seconds of wall time per question, > 0.
    """

    def __init__(self, time_limit: float) -> None:
        self.time_limit = time_limit
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._child: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] | None = None

    def is_mathematics(self, gold: str) -> Verdict:
        """Whether a reference answer can be read as mathematics."""
        return self._ask({"gold": gold})

    def equal(self, gold: str, answer: str) -> Verdict:
        """Whether an answer equals the reference answer."""
        return self._ask({"gold": gold, "answer": answer})

    def close(self) -> None:
        """End the child, if there is one; a later question starts another."""
        with self._lock:
            self._stop()

    def _ask(self, request: dict[str, str]) -> Verdict:
        line = json.dumps(request).encode() + b"\n"  # ASCII: a lone surrogate passes, too
        if len(line) > _LONGEST_REQUEST:
            return Verdict.NO
        if self._owner != os.getpid():  # forked: the child and the lock belong to the parent
            self._owner, self._lock = os.getpid(), threading.Lock()
            self._child, self._end = None, None
        with self._lock:
            try:
                child = self._running()
                assert child.stdin is not None
                os.write(child.stdin.fileno(), line)
                verdict = self._reply(child, self.time_limit)
            except BrokenPipeError:
                verdict = Verdict.CRASHED
            except BaseException:  # an interrupt: the reply that is still to come would answer the next question
                self._stop()
                raise
            if verdict not in (Verdict.YES, Verdict.NO):
                self._stop()
            return verdict

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is not None and self._child.poll() is not None:  # killed while idle: no answer's fault
            self._stop()
        if self._child is None:
            # a session of its own: Ctrl-C at the terminal is for the parent
            self._child = subprocess.Popen(
                [sys.executable, "-P", str(_PROGRAM), repr(self.time_limit)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._end = weakref.finalize(self, _end, self._child, os.getpid())
            if self._reply(self._child, _STARTING) is not Verdict.YES:
                self._stop()
                raise OSError(
                    "the process that compares answers must start, got none: "
                    "check that `python -c 'import math_verify'` works"
                )
        return self._child

    def _reply(self, child: subprocess.Popen[bytes], limit: float) -> Verdict:
        assert child.stdout is not None
        replies, deadline, reply = child.stdout.fileno(), time.monotonic() + limit, b""
        poll = select.poll()
        poll.register(replies, select.POLLIN)
        while not reply.endswith(b"\n"):
            if not poll.poll(max(0.0, 1000 * (deadline - time.monotonic()))):
                return Verdict.TIMED_OUT
            part = os.read(replies, 64)
            if not part:
                return Verdict.CRASHED
            reply += part
        return Verdict.YES if reply == b"true\n" else Verdict.NO

    def _stop(self) -> None:
        if self._end is not None:
            self._end()
        self._child, self._end = None, None


def _end(child: subprocess.Popen[bytes], owner: int) -> None:
    """Kill a child and wait for it, so that no zombie stays; in the process that started it, not in a fork of that."""
    if owner == os.getpid():
        child.kill()
        child.wait()
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        pipe.close()
