"""What holds for all unit tests."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.unit.test_openpgp import ARMOURED

# How long a machine takes, and what else it does meanwhile, is no fault of the code.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture
def key(tmp_path: Path) -> str:
    """The path of a signing key."""
    path = tmp_path / "doca.asc"
    path.write_bytes(ARMOURED)
    return str(path)
