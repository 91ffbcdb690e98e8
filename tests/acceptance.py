"""The long checks. `make acceptance` runs them and commits their result.

properties      every property test of theory/ with many examples, derandomised, so that a result can be repeated
sparse, torch   these engines at full size against the reference engine, by law (tests/simulate/accept_engines.py)
trl             the trainer's tests with the oldest supported release of TRL (tests/llm/accept_trl.py; a package index)
smollm2         a real language model trained, saved and loaded again (tests/llm/accept_smollm2.py; a package index)

A part that is not run keeps the result it has; the file says of each when, with what, and what came out.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


Result = dict[str, Any]


def properties(options: argparse.Namespace) -> tuple[Result, bool]:
    """What the property tests came to, and whether they passed."""
    with tempfile.TemporaryDirectory() as folder:
        junit = Path(folder, "junit.xml")
        command = [sys.executable, "-m", "pytest", "tests/theory", "-m", "hypothesis", "-n", str(options.workers)]
        command += ["--dist", "worksteal", "--timeout", "36000", "-q", f"--junitxml={junit}"]
        environment = {**ENVIRONMENT, "FGRPO_HYPOTHESIS_EXAMPLES": str(options.examples)}
        subprocess.run(command, cwd=ROOT, env=environment)
        cases = list(ElementTree.parse(junit).iter("testcase"))
    failed = [f"{case.get('classname')}::{case.get('name')}" for case in cases if len(case)]
    print(f"{len(cases)} property tests, {options.examples} examples each, {len(failed)} failed: {options.out}")
    result = {
        "what": "property tests of theory/ (hypothesis, derandomised)",
        "command": f"make acceptance EXAMPLES={options.examples}",
        "examples_of_each_test": options.examples,
        "tests": len(cases),
        "failed": failed,
        "tests_by_module": dict(sorted(Counter(str(case.get("classname")).split(".")[-1] for case in cases).items())),
    }
    return result, not failed and bool(cases)


def engine(name: str, options: argparse.Namespace) -> tuple[Result, bool]:
    """What the comparison of an engine with the reference engine came to, and whether it passed."""
    out = Path(options.cache, f"law_of_{name}.json")
    command = [sys.executable, "tests/simulate/accept_engines.py", "--engine", name, "--out", str(out)]
    command += ["--workers", str(options.workers), "--cache", str(options.cache)]
    code = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT).returncode
    compared = json.loads(out.read_text(encoding="utf-8"))
    print(f"engine {name}: {len(compared['tests'])} comparisons, {len(compared['failed'])} failed: {options.out}")
    what = "final measures of whole runs against the reference engine (two-sample Kolmogorov-Smirnov); rare tails"
    return {"what": what, "command": f"make acceptance PARTS={name}", **compared}, code == 0


def trl(options: argparse.Namespace) -> tuple[Result, bool]:
    """What came of the trainer's tests with the oldest TRL, and whether they passed."""
    out = Path(options.cache, "trl.json")
    command = [sys.executable, "tests/llm/accept_trl.py", "--out", str(out)]
    code = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT).returncode
    return {"command": "make acceptance PARTS=trl", **json.loads(out.read_text(encoding="utf-8"))}, code == 0


def smollm2(options: argparse.Namespace) -> tuple[Result, bool]:
    """What the script with a real model said last, and whether all was as it should be."""
    command = [sys.executable, "tests/llm/accept_smollm2.py"]
    ran = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    lines = ran.stdout.splitlines()
    print(*lines, sep="\n")
    what = "SmolLM2-135M takes two steps with focal weights on easy sums, is saved and loaded again"
    return {"what": what, "command": "make acceptance PARTS=smollm2", "said": lines[-1:]}, ran.returncode == 0


# how each part is run, under which key of the file its result stands, and what it depends on
PARTS = {
    "properties": (properties, None, ("fgrpo", "hypothesis", "mpmath", "numpy", "scipy", "sympy")),
    "sparse": (partial(engine, "sparse"), "engines", ("fgrpo", "numba", "numpy", "scipy")),
    "torch": (partial(engine, "torch"), "engines", ("fgrpo", "numpy", "scipy", "torch")),
    "trl": (trl, "trainer", ("fgrpo", "accelerate", "torch", "transformers")),
    "smollm2": (smollm2, "trainer", ("fgrpo", "accelerate", "torch", "transformers", "trl")),
}


def run(part: str, options: argparse.Namespace) -> tuple[Result, bool]:
    """The result of one part with its date and versions, and whether all is well."""
    began = time.monotonic()
    examine, _, packages = PARTS[part]
    came_out, passed = examine(options)
    came_out |= {
        "passed": passed,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "minutes": round((time.monotonic() - began) / 60, 1),
        "python": platform.python_version(),
        "versions": {**{package: version(package) for package in packages}, **came_out.get("versions", {})},
    }
    return came_out, passed


def main() -> int:
    """Run the parts asked for, update the result file, and return 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated")
    parser.add_argument("--examples", type=int, default=1500, help="examples of each property test")
    parser.add_argument("--cache", type=Path, help="folder for finished runs of the engines; of one state of the code")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "acceptance.json")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    result: Result = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    all_passed = True
    with tempfile.TemporaryDirectory() as folder:
        options.cache = options.cache or Path(folder)
        for part in options.parts.split(","):
            came_out, passed = run(part, options)
            group = PARTS[part][1]
            if group is None:
                result |= came_out
            else:
                result[group] = {**result.get(group, {}), part: came_out}
            # after each part, so that none is lost
            options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
            all_passed &= passed
    return 0 if all_passed else 1


if __name__ == "__main__":
    sys.exit(main())
