"""Traffic over the rails: RDMA between pairs of nodes, and what their counters say of it.

``ends`` finds out how a node takes part, ``pairs`` who meets whom, ``perftest`` what is run,
``run`` runs it, ``judge`` says what came of it, ``report`` tells it.
"""
