"""The long checks: every property test of theory/ with many examples. `make acceptance` runs it and commits its result.

Examples are derandomised, so a result can be repeated; the result file says when, with what, and what came out.
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
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("fgrpo", "hypothesis", "mpmath", "numpy", "scipy", "sympy")


def main() -> int:
    """Run the property tests, write the result file, and return 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, required=True, help="examples of each property test")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "acceptance.json")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        junit = Path(folder, "junit.xml")
        command = [sys.executable, "-m", "pytest", "tests/theory", "-m", "hypothesis", "-n", str(options.workers)]
        command += ["--dist", "worksteal", "--timeout", "36000", "-q", f"--junitxml={junit}"]
        environment = {**os.environ, "FGRPO_HYPOTHESIS_EXAMPLES": str(options.examples), "OMP_NUM_THREADS": "1"}
        subprocess.run(command, cwd=ROOT, env=environment)
        cases = list(ElementTree.parse(junit).iter("testcase"))
    failed = [f"{case.get('classname')}::{case.get('name')}" for case in cases if len(case)]
    result = {
        "what": "property tests of theory/ (hypothesis, derandomised)",
        "command": f"make acceptance EXAMPLES={options.examples}",
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "minutes": round((time.monotonic() - began) / 60, 1),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "examples_of_each_test": options.examples,
        "tests": len(cases),
        "failed": failed,
        "tests_by_module": dict(sorted(Counter(str(case.get("classname")).split(".")[-1] for case in cases).items())),
    }
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(f"{len(cases)} property tests, {options.examples} examples each, {len(failed)} failed: {options.out}")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
