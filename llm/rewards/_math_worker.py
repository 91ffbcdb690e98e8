"""Program of the child process behind `MathReward`: one JSON request a line on stdin, one JSON reply a line on stdout.

It runs as a script, by its path, and imports nothing of this package: whatever the parent is (a script without a main
guard, a rank of torchrun, a Ray worker), the child starts the same way and loads neither torch nor the parent's module.
"""

import functools
import json
import logging
import os
import resource
import signal
import sys
from typing import Any

_MOST_MEMORY = 4 * 2**30  # bytes of address space: an answer that asks for more is wrong, and the machine lives


def main(time_limit: float) -> None:
    """Answer requests until stdin closes: {"gold": text} -> is it mathematics? {"gold", "answer"} -> are they equal?"""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not look like a reply
    sys.stdout = sys.stderr
    _limit(resource.RLIMIT_AS, _MOST_MEMORY)
    _limit(resource.RLIMIT_CORE, 0)
    logging.disable()  # math-verify says at length that its own time limits are off
    expression = functools.lru_cache(256)(_expression)
    expression("1")  # loads the grammar's tables

    from math_verify import verify

    print("true", file=replies, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        # the parent kills a child that is late; should the parent be gone, the child's own alarm ends it
        signal.setitimer(signal.ITIMER_REAL, 2 * time_limit + 1)
        try:
            gold = expression(request["gold"])
            if "answer" in request:
                answer = expression(request["answer"])
                reply = bool(gold) and bool(answer) and verify(gold, answer, timeout_seconds=None)
            else:
                reply = bool(gold)
        except Exception:  # MemoryError, RecursionError and what else a hostile text provokes: no such answer is right
            reply = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(bool(reply)), file=replies, flush=True)


def _limit(what: int, most: int) -> None:
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _expression(text: str) -> list[Any]:
    """The expression in a text as math-verify reads it inside a box: a list of one, or an empty one."""
    from math_verify import LatexExtractionConfig, parse

    reading = LatexExtractionConfig(try_extract_without_anchor=False, boxed_match_priority=0)
    # no fallback: a text that is no mathematics must not be right because it equals itself
    found: list[Any] = parse(f"\\boxed{{{text}}}", [reading], fallback_mode="no_fallback", parsing_timeout=None)
    return found


if __name__ == "__main__":
    main(float(sys.argv[1]))
