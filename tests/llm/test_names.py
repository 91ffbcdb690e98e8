"""The public names of fgrpo.llm come when they are used, and not before."""

import pytest

import fgrpo.llm


def test_names_are_those_that_are_listed() -> None:
    assert dir(fgrpo.llm) == fgrpo.llm.__all__
    for name in fgrpo.llm.__all__:
        assert getattr(fgrpo.llm, name).__name__ == name
    with pytest.raises(AttributeError, match=r"module 'fgrpo\.llm' has no attribute 'nothing'"):
        fgrpo.llm.nothing  # noqa: B018
