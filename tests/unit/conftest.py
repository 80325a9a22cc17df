"""What holds for all unit tests."""

from hypothesis import HealthCheck, settings

# How long a machine takes, and what else it does meanwhile, is no fault of the code.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
