"""Models and their tokenizers, from a folder or the hub, and what tells two checkpoints apart."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fgrpo.theory import _validation as check

DTYPES = ("auto", "float32", "float64", "bfloat16", "float16")
"""Number formats of the weights; `auto` is the one that the model was saved in."""

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tekken.json")
_WEIGHTS = (".safetensors", ".bin")
_TAIL = 2**16


def load_tokenizer(name: str, **options: Any) -> Any:
    """The tokenizer of a model.

    Args:
        name: A folder, or a name on the hub.
        **options: Of `from_pretrained`, such as `revision`.

    Returns:
        The tokenizer. A generic one of the library `tokenizers` is loaded as such, where transformers would take the
        class from the model's configuration and, for some, drop unknown characters silently.

    Raises:
        ValueError: If there is no such model, or it has no tokenizer, or that is damaged.

    Source: this project.
    """
    folder = _folder(name)
    if folder is not None and not any((folder / file).is_file() for file in _TOKENIZER_FILES):
        raise ValueError(
            f"a model needs its tokenizer beside it, got none in {name!r}: "
            "save the base model's there (tokenizer.save_pretrained)"
        )
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    with _one_line("tokenizer", name):
        declared = folder and _declared_class(folder / "tokenizer_config.json")
        generic = declared in ("TokenizersBackend", "PreTrainedTokenizerFast")
        return (PreTrainedTokenizerFast if generic else AutoTokenizer).from_pretrained(name, **options)


def load_model(name: str, dtype: str = "auto") -> Any:
    """A causal language model in evaluation mode, on the first GPU if there is one.

    Args:
        name: A folder, or a name on the hub.
        dtype: One of `DTYPES`.

    Returns:
        The model.

    Raises:
        ValueError: If there is no such model, it is damaged, or weights are missing (transformers would draw them at
            random), as in a checkpoint that is still being written.

    Source: this project.
    """
    check.one_of("dtype", dtype, DTYPES)
    _folder(name)
    import torch
    from transformers import AutoModelForCausalLM

    with _one_line("model", name):
        model, report = AutoModelForCausalLM.from_pretrained(name, dtype=dtype, output_loading_info=True)
        missing = sorted(report["missing_keys"])
        if missing:
            raise ValueError(f"{len(missing)} weights are missing, among them {missing[0]}")
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()


def fingerprint(name: str) -> str:
    """16 hexadecimal digits that change when the model does.

    Of a folder: a digest of its configuration, and of name, size and last 64 KiB of each file of weights (training
    moves all of them). Of a model on the hub: of its name alone.

    Raises:
        ValueError: If `name` is a path that does not exist, or a folder that cannot be read.

    Source: this project.
    """
    digest = hashlib.sha256()
    folder = _folder(name)
    if folder is None:
        digest.update(name.encode())
        return digest.hexdigest()[:16]
    try:
        for path in sorted(folder.iterdir()):
            if path.name == "config.json":
                digest.update(path.read_bytes())
            elif path.suffix in _WEIGHTS and path.is_file():
                size = path.stat().st_size
                digest.update(f"{path.name} {size}".encode())
                with path.open("rb") as file:
                    file.seek(max(0, size - _TAIL))
                    digest.update(file.read())
    except OSError as error:
        raise ValueError(f"model must be readable, got {name!r}: {error.strerror}") from None
    return digest.hexdigest()[:16]


def vocabulary_digest(tokenizer: Any) -> str:
    """16 hexadecimal digits of which token has which number: completions as numbers mean the same text with both."""
    pairs = sorted((number, token) for token, number in tokenizer.get_vocab().items())
    return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()[:16]


def trainer_step(name: str) -> int | None:
    """The step at which a checkpoint was saved, from trainer_state.json beside it; None if there is none.

    Raises:
        ValueError: If that file is damaged.
    """
    state = Path(name) / "trainer_state.json"
    if not state.is_file():
        return None
    try:
        return int(json.loads(state.read_text(encoding="utf-8"))["global_step"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{str(state)!r} must hold a global_step, got damage: take another checkpoint") from None


def refuse_missing(name: str) -> None:
    """Raise where the name of a model is that of a path, but of no folder.

    What is written `runs/a` is a path where there is a folder `runs`, and else a name on the hub.

    Raises:
        ValueError: One line, instead of what the hub says of such a name after a minute of trying.
    """
    path = Path(name)
    if path.is_dir():
        return
    if not name or path.exists() or name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise ValueError(f"model must be a folder or a name on the hub, got {name!r}: check the path")
    if "/" in name and path.parent.is_dir():
        raise ValueError(
            f"model must be a folder or a name on the hub, got {name!r} with no {path.name} in the folder "
            f"{path.parent}: check the path, or start where no folder {path.parent} hides the hub's"
        )


def _folder(name: str) -> Path | None:
    """The folder that `name` is; None for what can only be a name on the hub."""
    path = Path(name)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ValueError(
                f"a model folder must hold config.json, got {name!r} without one: pass the folder of a checkpoint, "
                "not that of its run"
            )
        return path
    refuse_missing(name)
    return None


def _declared_class(config: Path) -> str | None:
    return json.loads(config.read_text(encoding="utf-8")).get("tokenizer_class") if config.is_file() else None


@contextmanager
def _one_line(what: str, name: str) -> Iterator[None]:
    try:
        yield
    # what a missing network, name or piece of a file raises is of many kinds, some of them of other libraries
    except Exception as error:
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise ValueError(
            f"the {what} of {name!r} must load, got {type(error).__name__} ({reason}): check the folder, or the name "
            "and the network"
        ) from None
