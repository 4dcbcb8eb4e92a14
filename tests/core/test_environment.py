"""What is wrong with the environment is named, without what may be secret."""

import getpass
import os
import ssl
from typing import Any

import pytest

from medprobe.core.environment import CERTIFICATES, PROXIES, find_cause, name_user

NAMES = ("LOGNAME", "USER", "LNAME", "USERNAME")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*NAMES, *CERTIFICATES, *PROXIES, *map(str.lower, PROXIES)):
        monkeypatch.delenv(name, raising=False)


def test_a_user_without_a_name_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> Any:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.setenv("LOGNAME", "")  # is put back after the test
    name_user()
    assert getpass.getuser() == f"user-{os.getuid()}"


@pytest.mark.parametrize("name", CERTIFICATES)
def test_certificates_that_are_not_there_are_named(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "/nowhere/ca.pem")
    errors: list[Exception] = [OSError("invalid path: /nowhere/ca.pem")]
    if name.startswith("SSL"):
        errors += [FileNotFoundError(2, "No such file or directory"), ssl.SSLError("X509")]
        errors += [IsADirectoryError(21, "Is a directory")]
        errors += [ConnectionError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")]
    for error in errors:
        assert f"{name} names /nowhere/ca.pem, which does not exist" in (find_cause(error) or "")
    assert find_cause(ConnectionError("refused")) is None


@pytest.mark.parametrize("name", [*PROXIES, *map(str.lower, PROXIES)])
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "socks5://me:passphrase@proxy.example:1080")
    cause = find_cause(ImportError("the 'socksio' package is not installed. Install it")) or ""
    assert f"{name} names a proxy of kind socks5 (the 'socksio' package is not insta" in cause
    assert "passphrase" not in cause
    assert "kind socks5" in (find_cause(ValueError("Unknown scheme for me:passphrase")) or "")
    assert find_cause(ConnectionError("refused")) is None
