"""Mutation tests of theory: how many small changes of the closed forms make a test fail. `make mutation` runs it.

mutmut makes the mutants (one changed operator, number, argument or assignment of a function; module constants and
decorated functions stay) and runs each against those tests of its module that reach the changed function.
"""

import argparse
import ast
import difflib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from mutmut.mutation.file_mutation import mutate_file_contents

ROOT = Path(__file__).resolve().parent.parent
LEAST_KILLED = 0.9
# a module's tests are test_<module>.py and those of test_public_calls.py that reach it; what only other modules call
# has the tests of its users
TESTS = {
    "_binomial": ("binomial", "focal_moments", "utilities"),
    "_tail_miss_kernel": ("tail_miss", "risk", "modes", "weighted_tail_miss", "difficulty"),
    "_urn": ("difficulty", "weighted_tail_miss"),
    "_validation": ("action_classes", "advantages", "pass_estimates", "retention", "risk", "tail_miss", "updates"),
    "updates": ("updates", "mass_dynamics"),
    "weights": ("focal_weight", "comparison_weights"),
}
MODULES = sorted(path.stem for path in (ROOT / "theory").glob("*.py") if path.stem != "__init__")
# one example that fails is enough: nobody reads it
NO_SHRINKING = """
from hypothesis import Phase
settings.register_profile("mutation", settings(), phases=[Phase.explicit, Phase.generate])
settings.load_profile("mutation")
"""
CHECKS = {"ValueError"} | {
    node.name
    for node in ast.parse((ROOT / "theory/_validation.py").read_text()).body
    if isinstance(node, ast.FunctionDef)
}
SURVIVED = {0: "no test failed", 5: "no test ran", 33: "no test reaches it"}
TIMED_OUT = {-24, 24, 36, 152, 255}
UNDECIDED = {2, None}


class WithoutText(ast.NodeTransformer):
    """Blanks what no result depends on: the texts of errors, None in their place, and zip's check of its lengths."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = ast.unparse(node.func)
        if function.removeprefix("check.") in CHECKS:
            node.args = [ast.Constant("") if is_text(arg) else arg for arg in node.args]
        if function == "zip":
            node.keywords = []
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        return ast.Pass() if is_text(node.targets[0]) else node


def is_text(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.Constant(value=None | str()):
            return True
        case ast.Name(id=name):
            return name in ("name", "limit_name", "way_out")
    return False


def function_sources(code: str) -> dict[str, ast.FunctionDef]:
    """Originals and mutants of a mutated file by name, with that name taken out."""
    functions = {node.name: node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef)}
    for name, node in functions.items():
        node.name = name.partition("__mutmut")[0]
    return functions


def mutants(module: str) -> dict[str, str]:
    """Names of the mutants that change more than texts, each with its diff."""
    path = ROOT / "theory" / f"{module}.py"
    mutated = mutate_file_contents(str(path), path.read_text())
    functions = function_sources(mutated.code)
    blanked = {name: ast.unparse(WithoutText().visit(node)) for name, node in function_sources(mutated.code).items()}
    diffs = {}
    for name in mutated.mutant_names:
        original = name.rpartition("_")[0] + "_orig"
        if blanked[name] != blanked[original]:
            lines = (ast.unparse(functions[key]).splitlines() for key in (original, name))
            diff = difflib.unified_diff(*lines, fromfile=f"theory/{module}.py", tofile=name, n=1, lineterm="")
            diffs[f"fgrpo.theory.{module}.{name}"] = "\n".join(diff)
    return diffs


def build_tree(tree: Path, module: str) -> None:
    """The package as it is installed, its tests beside it, and mutmut's configuration."""
    folders = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    for package, folder in folders.items():
        shutil.copytree(ROOT / folder, tree / package.replace(".", "/"), dirs_exist_ok=True)
    for part in ("tests/theory", "tests/reference"):
        shutil.copytree(ROOT / part, tree / part)
    (tree / "tests/conftest.py").write_text((ROOT / "tests/conftest.py").read_text() + NO_SHRINKING)
    shutil.copy(ROOT / "pyproject.toml", tree)
    names = (*TESTS.get(module, (module,)), "public_calls")
    tests = "\n    ".join(f"tests/theory/test_{name}.py" for name in names)
    (tree / "setup.cfg").write_text(
        "[mutmut]\n"
        "source_paths = fgrpo\n"
        f"only_mutate = fgrpo/theory/{module}.py\n"
        f"pytest_add_cli_args_test_selection =\n    {tests}\n"
        "timeout_multiplier = 8.0\n"
    )


def run(module: str, chosen: list[str]) -> dict[str, int | None]:
    """Exit codes of the module's tests under each chosen mutant."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        build_tree(tree, module)
        command = [Path(sys.executable).with_name("mutmut"), "run", "--max-children", "1", *chosen]
        done = subprocess.run(
            command, cwd=tree, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
        )
        if done.returncode:
            raise RuntimeError(f"mutmut failed on {module}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        codes = json.loads((tree / f"mutants/fgrpo/theory/{module}.py.meta").read_text())["exit_code_by_key"]
        return {name: codes[name] for name in chosen}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", default=",".join(MODULES), help="comma-separated modules of theory")
    parser.add_argument("--sample", type=float, default=1.0, help="share of each module's mutants to run")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutation.diff", help="file for the survivors")
    options = parser.parse_args()
    modules = options.modules.split(",")
    if unknown := set(modules) - set(MODULES):
        parser.error(f"no such module: {', '.join(sorted(unknown))}; there are {', '.join(MODULES)}")

    total = dict.fromkeys(("killed", "timed out", "survived"), 0)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w") as survivors:
        for module in modules:
            diffs = mutants(module)
            size = min(len(diffs), max(1, round(options.sample * len(diffs))))
            chosen = random.Random(f"{options.seed} {module}").sample(sorted(diffs), size)
            count = dict.fromkeys(total, 0)
            for name, code in run(module, chosen).items():
                if code in UNDECIDED:
                    raise RuntimeError(f"the run of {name} did not end: run {module} again")
                count["survived" if code in SURVIVED else "timed out" if code in TIMED_OUT else "killed"] += 1
                if code in SURVIVED:
                    print(f"# {name}: {SURVIVED[code]}\n{diffs[name]}\n", file=survivors, flush=True)
            report(f"{module} ({size} of {len(diffs)})", count)
            total = {key: total[key] + count[key] for key in total}
    report("total", total)
    print(f"survivors: {options.out}")
    return int(found(total) < LEAST_KILLED)


def found(count: dict[str, int]) -> float:
    """Share of the mutants that the tests told from the original: a run that does not end counts."""
    return 1.0 - count["survived"] / sum(count.values())


def report(name: str, count: dict[str, int]) -> None:
    print(
        f"{name:40}",
        *(f"{key} {value:4}" for key, value in count.items()),
        f"{found(count):7.1%}",
        sep="  ",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
