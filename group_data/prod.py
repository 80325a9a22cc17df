"""The production site."""

from railwright.schema import TimeSource, TimeSpec

time = TimeSpec(
    sources={"ntp1.example.net": TimeSource(prefer=True), "ntp2.example.net": TimeSource()},
    max_offset_ms=1.0,
)
