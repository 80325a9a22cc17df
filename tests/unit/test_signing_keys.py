"""Signing keys are read once for all nodes, and told by file and repository where they are not."""

from io import BytesIO
from pathlib import Path
from urllib.error import URLError

import pytest

from railwright import signing_keys
from railwright.schema.repositories import AptRepository
from railwright.signing_keys import signing_key
from tests.unit.test_openpgp import ARMOURED, BINARY, FINGERPRINT


def repository(key: str) -> AptRepository:
    return AptRepository(url="https://r.example/x", suite="./", key=key, fingerprint=FINGERPRINT)


class Server:
    """Stands for urlopen: it answers with ``data``, or does not."""

    def __init__(self, data: bytes | OSError) -> None:
        self.data = data
        self.asked: list[tuple[str, float]] = []

    def __call__(self, url: str, timeout: float) -> BytesIO:
        self.asked.append((url, timeout))
        if isinstance(self.data, OSError):
            raise self.data
        return BytesIO(self.data)


def test_a_url_is_fetched_once_for_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(BINARY)
    monkeypatch.setattr(signing_keys, "urlopen", server)
    asked = repository("https://keys.example/once.gpg")
    assert [signing_key("a", asked), signing_key("b", asked)] == [ARMOURED.decode()] * 2
    assert server.asked == [("https://keys.example/once.gpg", 20)]


def test_a_server_that_does_not_answer_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(URLError("timed out"))
    monkeypatch.setattr(signing_keys, "urlopen", server)
    for name in ("a", "b"):
        with pytest.raises(ValueError, match=rf"silent\.gpg of repository {name}: cannot be read"):
            signing_key(name, repository("https://keys.example/silent.gpg"))
    assert len(server.asked) == 1


def test_a_page_instead_of_a_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing_keys, "urlopen", Server(b"<html>Sign in</html>"))
    with pytest.raises(ValueError, match="expected an OpenPGP key, got '<html>"):
        signing_key("a", repository("https://keys.example/page.gpg"))


def test_a_key_that_is_too_long_to_be_read_back_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.gpg"
    user = bytes([0xCD, 255]) + (60000).to_bytes(4, "big") + b"x" * 60000
    path.write_bytes(BINARY + user)
    with pytest.raises(ValueError, match="expected at most 65536"):
        signing_key("a", repository(str(path)))
