"""The ledger without stored runs, judged once for all tests."""

import pytest

from fgrpo.claims.evidence import NO_RUNS
from fgrpo.claims.ledger import Entry, claims_ledger


@pytest.fixture(scope="session")
def entries() -> dict[str, Entry]:
    return {entry.claim.id: entry for entry in claims_ledger(NO_RUNS)}
