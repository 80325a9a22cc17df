"""The rails alone: what the server's address comes from."""

from railwright.site import inventory
from tests.storage.site import CLIENT, SERVER, hosts

globals().update(inventory(__file__, {"nodes": [CLIENT, SERVER]}, hosts()))
