"""Real Ed25519 keys: on disk for their owner alone, and checked by the RFC's own vectors."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from aggregator.plans.keys import KeyFileError, make_key, read_signer
from edge_ldp.cli import main
from edge_ldp.extras import pip_install
from edge_ldp.protocol.signing import key_id, signed_bytes
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.service.verify import keyring, verify
from tests import needs
from tests.processes import run_told

# RFC 8032 section 7.1, tests 1 and 2: public key, message, signature
VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
]
PLAN = b'{"v":1}'


@pytest.mark.parametrize(("public", "signed", "signature"), VECTORS)
def test_the_vectors_of_the_rfc_hold(public: str, signed: str, signature: str) -> None:
    key, said, made = (bytes.fromhex(text) for text in (public, signed, signature))
    assert verify(key, made, said)
    assert not verify(key, made, said + b"x")
    assert not verify(key, bytes(64), said)
    assert not verify(key, made[:63], said)
    assert not verify(key[:31], made, said)


def test_a_key_signs_what_its_public_half_opens_and_the_same_way_each_time(tmp_path: Path) -> None:
    public = make_key(tmp_path / "plan.key")
    signer = read_signer(tmp_path / "plan.key")
    assert signer.public == public
    assert signer.wrap(PLAN) == signer.wrap(PLAN)
    assert keyring([public]).open(signer.wrap(PLAN)) == PLAN
    assert verify(public, signer.sign(signed_bytes(PLAN)), signed_bytes(PLAN))
    other = make_key(tmp_path / "other.key")
    with pytest.raises(MessageError, match="envelope: key"):
        keyring([other]).open(signer.wrap(PLAN))


@pytest.mark.parametrize("mask", [0, 0o077, 0o777])
def test_a_private_key_is_its_owners_alone_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        make_key(tmp_path / "plan.key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "plan.key").stat().st_mode) == 0o600


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    make_key(tmp_path / "plan.key")
    held = (tmp_path / "plan.key").read_bytes()
    with pytest.raises(KeyFileError, match="is there already"):
        make_key(tmp_path / "plan.key")
    assert (tmp_path / "plan.key").read_bytes() == held


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_may_read_is_not_used(tmp_path: Path, mode: int) -> None:
    make_key(tmp_path / "plan.key")
    (tmp_path / "plan.key").chmod(mode)
    with pytest.raises(KeyFileError, match="chmod 600"):
        read_signer(tmp_path / "plan.key")
    assert read_signer(tmp_path / "plan.key", shielded=True)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\x00", b"-----BEGIN PRIVATE KEY-----\n", b"x" * 70_000]
)
def test_what_is_no_key_is_told_without_showing_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "plan.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(KeyFileError) as refused:
        read_signer(path)
    assert "PRIVATE" not in str(refused.value)


def test_keys_of_other_kinds_and_with_passwords_are_refused(tmp_path: Path) -> None:
    for name, arguments in (
        ("rsa", ["-algorithm", "RSA"]),
        ("locked", ["-algorithm", "ed25519", "-aes256", "-pass", "pass:x"]),
    ):
        path = tmp_path / name
        command = [needs.program("openssl"), "genpkey", *arguments, "-out", str(path)]
        subprocess.run(command, check=True, capture_output=True, timeout=240)
        path.chmod(0o600)
        with pytest.raises(KeyFileError, match="edge-ldp keys make"):
            read_signer(path)


def test_a_key_that_openssl_made_serves_too(tmp_path: Path) -> None:
    path = tmp_path / "plan.key"
    command = [needs.program("openssl"), "genpkey", "-algorithm", "ed25519", "-out", str(path)]
    subprocess.run(command, check=True, capture_output=True, timeout=240)
    path.chmod(0o600)
    signer = read_signer(path)
    assert keyring([signer.public]).open(signer.wrap(PLAN)) == PLAN


def test_the_commands_make_a_pair_and_show_what_goes_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.key"
    assert main(["keys", "make", str(path)]) == 0
    made = capsys.readouterr().out
    public = read_signer(path).public
    assert f'keys = ["{public.hex()}"]' in made
    assert key_id(public).hex() in made
    assert f'signing_key_file = "{path}"' in made
    assert "PRIVATE" not in made
    assert main(["keys", "show", str(path)]) == 0
    assert capsys.readouterr().out == made
    assert main(["keys", "make", str(path)]) == 4
    assert "is there already" in capsys.readouterr().err


def test_without_the_extra_the_command_says_which_one_is_missing() -> None:
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from edge_ldp.cli import main; sys.exit(main(['keys', 'show', 'x']))"
    )
    done = run_told([sys.executable, "-c", code])
    assert done.returncode == 2
    assert done.stderr.endswith(f": {pip_install('edge-ldp-aggregator[sign]')}\n")
