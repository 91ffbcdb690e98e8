"""The trainer's tests with the oldest supported release of TRL; `make acceptance` calls `oldest_trl`.

That release is put, alone, into a folder before the environment's own packages, so that all else stays as it is.
Needs a package index. Run from the repository's root: python tests/llm/accept_trl.py --out trl_oldest.json
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from packaging.specifiers import SpecifierSet

from fgrpo.llm.contract import SUPPORTED_TRL

OLDEST = "1.14.0"
ALSO_NEEDED = ("requests", "aiohttp")  # imported by that release, no longer brought in by huggingface_hub
TESTS = Path(__file__).parent


def oldest_trl() -> dict[str, Any]:
    """Run the trainer's tests with that release; what came of it, with `failed` an empty list if all is well."""
    assert OLDEST in SpecifierSet(SUPPORTED_TRL)
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder]
        subprocess.run([*pip, "--no-deps", f"trl=={OLDEST}"], check=True)
        subprocess.run([*pip, *ALSO_NEEDED], check=True)
        environment = {**os.environ, "PYTHONPATH": folder, "OMP_NUM_THREADS": "1"}
        found = subprocess.run(
            [sys.executable, "-c", "import trl; print(trl.__version__)"],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        report = Path(folder, "junit.xml")
        tests = [str(path) for path in sorted(TESTS.glob("test_trainer_*.py"))]
        others = [str(TESTS / f"test_{name}.py") for name in ("config", "contract", "diagnostics")]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        subprocess.run([*command, *tests, *others], env=environment, cwd=TESTS.parents[1])
        cases = list(ElementTree.parse(report).iter("testcase"))
    return {
        "what": "tests of the trainer with the oldest supported release of TRL",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": {
            "trl": found,
            **{name: version(name) for name in ("fgrpo", "transformers", "accelerate", "torch")},
        },
        "tests": len(cases),
        "failed": [f"{c.get('classname')}::{c.get('name')}" for c in cases if c.find("failure") is not None]
        + [f"{c.get('classname')}::{c.get('name')}" for c in cases if c.find("error") is not None],
    }


def main() -> int:
    """Write the result, and return 1 if it is not what it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    result = oldest_trl()
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(f"trl {result['versions']['trl']}: {result['tests']} tests, {len(result['failed'])} failed: {options.out}")
    return int(bool(result["failed"]) or not result["tests"] or result["versions"]["trl"] != OLDEST)


if __name__ == "__main__":
    sys.exit(main())
