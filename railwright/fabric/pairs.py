"""Who meets whom: every pair of nodes once, in rounds in which no node is in two pairs."""

from collections.abc import Sequence

Pair = tuple[str, str]


def rounds(nodes: Sequence[str]) -> tuple[tuple[Pair, ...], ...]:
    """All pairs of ``nodes``, by the circle method.

    One node stays and the others go round it, so that n nodes need n - 1 rounds, or n where n is
    odd and one node rests in each. The first of a pair sends. Raises ValueError where a node is
    named twice.
    """
    if len(set(nodes)) != len(nodes):
        raise ValueError("expected each node once")
    circle: list[str | None] = [*nodes]
    if len(circle) % 2:
        circle.append(None)
    found = []
    for turn in range(len(circle) - 1):
        half = len(circle) // 2
        meeting = zip(circle[:half], reversed(circle[half:]), strict=True)
        pairs = [(a, b) for a, b in meeting if a is not None and b is not None]
        # Each node sends in about half of its pairs.
        found.append(tuple((a, b) if turn % 2 == 0 else (b, a) for a, b in pairs))
        circle = [circle[0], circle[-1], *circle[1:-1]]
    return tuple(pairs for pairs in found if pairs)
