"""What collectives cost: bytes over bandwidth, and steps times latency.

Bandwidths are of one rank and one direction. Sources: NVIDIA/nccl-tests doc/PERFORMANCE.md (the
factors of bus bandwidth) and NCCL's src/graph/tuning.cc (steps of ring and tree, inside nodes and
between them).
"""

import math
from typing import Annotated

from pydantic import Field

from railwright.model import Model
from railwright.sizing.fields import Rate, Seconds
from railwright.sizing.units import Quantity, seconds


class Link(Model):
    """A way between ranks: bandwidth of one rank, latency of one step of a ring and of a tree."""

    bandwidth: Rate
    ring_step: Seconds = seconds(0)
    tree_step: Seconds = seconds(0)


class Group(Model):
    """Ranks of a collective: ``nodes`` × ``per_node``, evenly."""

    per_node: Annotated[int, Field(ge=1)]
    nodes: Annotated[int, Field(ge=1)]

    @property
    def ranks(self) -> int:
        return self.per_node * self.nodes


def ring_all_reduce(amount: Quantity, ranks: int, link: Link) -> Quantity:
    """2(n−1)/n·S/B + 2(n−1)·α: all ranks in one ring of links that are alike."""
    steps = 2 * (ranks - 1)
    return amount * (steps / ranks) / link.bandwidth + link.ring_step * steps


def through(group: Group, inside: Link, fabric: Link) -> Quantity:
    """What one rank sends at once in a ring or tree through all ranks of ``group``.

    Libraries lay one through each rail, so that ranks that share a node have all their rails
    together, up to what goes from rank to rank in the node: this is what nccl-tests' busbw nears.
    A rank that is alone in its node has its own rail.
    """
    if group.nodes == 1:
        return inside.bandwidth
    rails = fabric.bandwidth * group.per_node
    return rails if group.per_node == 1 else min(inside.bandwidth, rails)


def flat_all_reduce(amount: Quantity, group: Group, inside: Link, fabric: Link) -> Quantity:
    """2(n−1)/n·S/B + steps: rings through all ranks, of whose steps 2·k are between k nodes.

    Source: NCCL's src/graph/tuning.cc, nInterSteps and busBw.
    """
    steps = 2 * (group.ranks - 1)
    between = min(2 * group.nodes, steps) if group.nodes > 1 else 0
    waits = inside.ring_step * (steps - between) + fabric.ring_step * between
    return amount * (steps / group.ranks) / through(group, inside, fabric) + waits


def tree_all_reduce(amount: Quantity, group: Group, inside: Link, fabric: Link) -> Quantity:
    """2·S/B + 2·[(g−1)·α + log2(k)·α']: a chain in each node, two trees between nodes.

    Two trees use both directions of each link, so the bandwidth term does not grow with ranks.
    Source: Sanders, Speck, Träff 2009, Parallel Computing 35(12), two-tree algorithms.
    """
    if group.ranks == 1:
        return seconds(0)
    steps = inside.tree_step * (group.per_node - 1)
    steps = steps + fabric.tree_step * math.ceil(math.log2(group.nodes))
    return amount * 2 / through(group, inside, fabric) + steps * 2


def hierarchical_all_reduce(amount: Quantity, group: Group, inside: Link, fabric: Link) -> Quantity:
    """2(g−1)/g·S/B + 2(k−1)/k·(S/g)/B': reduced inside nodes first, then each part on its rail.

    ``fabric`` has the bandwidth of one rank's rail: with as many rails as ranks each rank has one
    to itself, and no traffic leaves its rail.
    """
    return reduce_scatter(amount, group, inside, fabric) * 2


def reduce_scatter(amount: Quantity, group: Group, inside: Link, fabric: Link) -> Quantity:
    """(g−1)/g·S/B + (k−1)/k·(S/g)/B': half of an all-reduce; an all-gather takes as long."""
    within = _half_ring(amount, group.per_node, inside)
    between = _half_ring(amount / group.per_node, group.nodes, fabric)
    return within + between


def _half_ring(amount: Quantity, ranks: int, link: Link) -> Quantity:
    return amount * ((ranks - 1) / ranks) / link.bandwidth + link.ring_step * (ranks - 1)


def all_to_all(amount: Quantity, group: Group, inside: Link, fabric: Link) -> Quantity:
    """Each rank sends 1/n of ``amount`` to each: (g−1)/n inside and (n−g)/n over the fabric, at
    the same time; the slower of both decides."""
    ranks = group.ranks
    within = amount * ((group.per_node - 1) / ranks) / inside.bandwidth
    between = amount * ((ranks - group.per_node) / ranks) / fabric.bandwidth
    step = fabric.ring_step if group.nodes > 1 else inside.ring_step
    return max(within, between) + step * (1 if ranks > 1 else 0)


def send(amount: Quantity, link: Link) -> Quantity:
    """S/B + α: from one rank to the next."""
    return amount / link.bandwidth + link.ring_step
