"""A proof as Markdown."""

from fgrpo.theory.proofs._proof import Proof


def to_markdown(proof: Proof) -> str:
    """A section of Markdown with the statement, its assumptions and source, every step, and the falsified variant.

    Args:
        proof: What to render. Nothing is checked here.

    Returns:
        Text that ends in a newline. Each step says whether sympy checks it or which lemma it rests on.
    """
    steps = (
        f"{number}. {step.text}. " + ("*Checked by sympy.*" if step.check else f"*Rests on: {step.lemma}.*")
        for number, step in enumerate(proof.steps, start=1)
    )
    lines = [
        f"## {proof.name}",
        f"**Statement.** {proof.statement}.",
        "**Assumptions.** " + "; ".join(proof.assumptions) + ".",
        f"**Source.** {proof.source}.",
        "\n".join(steps),
        f"**What must fail.** {proof.wrong.statement}. Counterexample: {proof.wrong.counterexample}.",
    ]
    return "\n\n".join(lines) + "\n"
