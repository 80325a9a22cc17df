"""openibd, the service of MLNX_OFED and DOCA-OFED that loads their modules at boot."""

from facts.probe import Section
from facts.unit_failures import failures

OPENIBD = "openibd.service"
UNITS = Section(name="ofed_units", for_drivers=True, script=f"units {OPENIBD}")
FAILURES = failures("ofed_failures", OPENIBD)
SECTIONS = (UNITS, FAILURES)
