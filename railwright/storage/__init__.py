"""Whether mounts reach what is expected of them: ``railwright storage test``.

``sizes`` says how much is written and how, ``fio`` what a node runs, ``run`` runs it, ``judge``
says what came of it, ``document`` and ``table`` tell it.
"""
