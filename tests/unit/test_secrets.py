"""Secrets: where they are read, how a node is asked for them, and that nothing tells them."""

import stat
import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from facts.probe import Focus, script
from facts.secret_files import SECRETS
from railwright.actions import InstallFile, InstallSecret, Run, render
from railwright.schema.mounted import Secret
from railwright.secret_files import AS_GIVEN, secret_actions, secret_setting, sent
from railwright.secrets import SecretError, SecretFile, content_of, questions, read_secret
from railwright.settings import Standing, State
from railwright.snapshot import Snapshot, parse_probe

PASSED = "s3cret-of-beegfs"


@pytest.fixture
def given(tmp_path: Path) -> Secret:
    path = tmp_path / "given"
    path.write_bytes(b"\x00\xff" + PASSED.encode() + b"\n")
    return Secret(file=str(path))


def file_of(tmp_path: Path, secret: Secret, **more: object) -> SecretFile:
    told = {"path": str(tmp_path / "etc" / "conn.auth"), "field": "storage.mounts./b.auth"}
    return SecretFile.model_validate({"content": (secret,), **told, **more})


def look(*files: SecretFile) -> Snapshot:
    """What a node answers, this machine in its place."""
    focus = Focus(storage=True, secrets=questions(files))
    done = subprocess.run(["sh", "-c", script([SECRETS], focus)], capture_output=True, timeout=60)
    return parse_probe(done.stdout.decode("ascii"), host="here")


def put(*files: SecretFile) -> subprocess.CompletedProcess[bytes]:
    actions = [InstallSecret(file=file) for file in files]
    lines = "".join(f"{line}\n" for line in sent(actions))
    return subprocess.run(["sh", "-c", render(actions)], input=lines.encode(), capture_output=True)


def state(file: SecretFile, owner: str = "root") -> State:
    seen = look(file)
    text = seen.text(SECRETS.name).replace(f" {Path(file.path).parents[1].owner()} ", f" {owner} ")
    section = seen.section(SECRETS.name).model_copy(update={"stdout": text})
    seen = seen.model_copy(update={"sections": {SECRETS.name: section}})
    return secret_setting("beegfs", file, seen).persisted


def test_a_secret_is_a_file_or_a_variable_and_not_both() -> None:
    for wrong in ({}, {"file": "/a", "env": "A"}):
        with pytest.raises(ValidationError, match="either file or env"):
            Secret.model_validate(wrong)


def test_a_file_reaches_the_node_byte_for_byte_and_nobody_else_may_read_it(
    tmp_path: Path, given: Secret
) -> None:
    file = file_of(tmp_path, given)
    assert put(file).returncode == 0
    target = Path(file.path)
    assert target.read_bytes() == Path(str(given.file)).read_bytes()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in target.parent.iterdir()] == ["conn.auth"]


def test_text_around_a_secret_has_it_without_its_line_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVME_KEY", "DHHC-1:00:abc=:\n")
    key = Secret(env="NVME_KEY")
    file = file_of(tmp_path, key, content=('{"dhchap_key": "', key, '"}\n'), mode="400")
    assert content_of(file) == b'{"dhchap_key": "DHHC-1:00:abc=:"}\n'
    assert put(file).returncode == 0
    assert stat.S_IMODE(Path(file.path).stat().st_mode) == 0o400
    for wrong in ('with"quote', "with blank", "back\\slash", "line\nbreak"):
        monkeypatch.setenv("NVME_KEY", wrong)
        with pytest.raises(SecretError, match="variable NVME_KEY has a blank, a quote") as told:
            content_of(file)
        assert wrong not in str(told.value)


def test_it_is_equal_or_differs_and_is_never_told(tmp_path: Path, given: Secret) -> None:
    file = file_of(tmp_path, given)
    assert state(file).standing is Standing.ABSENT
    put(file)
    assert state(file) == State(standing=Standing.RIGHT, value=AS_GIVEN, decider=file.path)
    Path(file.path).write_text("another\n")
    assert (state(file).standing, state(file).value) == (Standing.WRONG, "another")
    assert "s3cret" not in look(file).model_dump_json()


def test_a_file_that_others_may_read_is_wrong(tmp_path: Path, given: Secret) -> None:
    file = file_of(tmp_path, given)
    put(file)
    Path(file.path).chmod(0o644)
    assert state(file).value == "as given, but root 644"
    Path(file.path).chmod(0o600)
    assert state(file, owner="nobody").value == "as given, but nobody 600"


def test_each_question_has_a_nonce_of_its_own(tmp_path: Path, given: Secret) -> None:
    file = file_of(tmp_path, given)
    assert questions([file]) != questions([file])
    assert PASSED not in "".join(questions([file]))


def test_a_secret_that_cannot_be_had_is_told_by_its_field(tmp_path: Path) -> None:
    file = file_of(tmp_path, Secret(env="RAILWRIGHT_NO_SUCH"))
    put(file_of(tmp_path, Secret(env="PATH")))
    found = state(file)
    assert found.standing is Standing.UNREADABLE
    assert found.detail == "storage.mounts./b.auth: variable RAILWRIGHT_NO_SUCH is not set"


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "cannot be read: No such file"), (b" \n", "is empty"), (b"x" * 70_000, "64 KiB")],
)
def test_a_file_that_holds_no_secret(tmp_path: Path, content: bytes | None, told: str) -> None:
    path = tmp_path / "given"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SecretError, match=told):
        read_secret(Secret(file=str(path)))


def test_secrets_go_by_standard_input_and_nothing_else_reads_it(
    tmp_path: Path, given: Secret, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER", "other")
    one = file_of(tmp_path, given)
    two = file_of(tmp_path, Secret(env="OTHER"), path=str(tmp_path / "etc" / "two"))
    plain = InstallFile(path=str(tmp_path / "plain"), content="x\n")
    actions = [InstallSecret(file=one), plain, Run(command=("cat",)), InstallSecret(file=two)]
    text = render(actions)
    assert PASSED not in text
    lines = sent(actions)
    assert len(lines) == 2
    assert not any(line in text for line in lines)
    done = subprocess.run(
        ["sh", "-c", text], input="\n".join(lines) + "\n", capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert Path(two.path).read_text() == "other"


def test_a_secret_that_did_not_come_leaves_what_was_there(tmp_path: Path, given: Secret) -> None:
    file = file_of(tmp_path, given)
    put(file)
    before = Path(file.path).read_bytes()
    script_ = render([InstallSecret(file=file)])
    done = subprocess.run(["sh", "-c", script_], input=b"", capture_output=True)
    assert done.returncode == 1
    assert b"its secret did not come" in done.stderr
    assert Path(file.path).read_bytes() == before


def test_a_secret_that_cannot_be_written_whole_leaves_no_part_of_itself(
    tmp_path: Path, given: Secret
) -> None:
    file = file_of(tmp_path, given)
    (line,) = sent([InstallSecret(file=file)])
    script_ = render([InstallSecret(file=file)])
    # base64 has written what comes before the mark when it finds it.
    done = subprocess.run(["sh", "-c", script_], input=f"{line}!\n".encode(), capture_output=True)
    assert done.returncode == 1
    assert done.stderr.endswith(f"railwright: cannot write {file.path}\n".encode())
    assert list(Path(file.path).parent.iterdir()) == []


def test_a_variable_may_hold_any_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER", "\udcff\udcfe")
    assert read_secret(Secret(env="OTHER")) == b"\xff\xfe"


def test_only_what_is_not_right_is_sent(tmp_path: Path, given: Secret) -> None:
    file = file_of(tmp_path, given)
    setting = secret_setting("beegfs", file, look(file))
    assert secret_actions([file], {file.key: setting}) == [InstallSecret(file=file)]
    right = setting.model_copy(update={"persisted": State(standing=Standing.RIGHT)})
    assert secret_actions([file], {file.key: right}) == []
