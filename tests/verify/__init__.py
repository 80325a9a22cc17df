"""The independent witness: testinfra reads the host by its own means.

Of railwright it knows only the schema, for what the node must be.
"""
