"""What the machine's environment lacks for the code of others: a user's name, certificates."""

import getpass
import os
from pathlib import Path
from typing import Final

CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
PROXIES: Final = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")
REMEDY: Final = "correct it, or unset it"


def name_user() -> None:
    """Give the user a name where the machine has none, as in a container under another number.

    DVC and PyTorch ask for one.
    """
    try:
        getpass.getuser()
    except (KeyError, OSError):
        os.environ["LOGNAME"] = f"user-{os.getuid()}"


def find_cause(error: BaseException) -> str | None:
    """Return which variable an error of a network's client is due to, if that is known.

    The address of a proxy may contain a password, so that only its kind is quoted.
    """
    import ssl

    unread = (FileNotFoundError, IsADirectoryError, PermissionError)
    is_missing = isinstance(error, unread) and error.filename is None  # as ssl raises it
    is_refused = isinstance(error, ssl.SSLError) or "CERTIFICATE_VERIFY" in str(error)
    for name in CERTIFICATES:
        value = os.environ.get(name)
        of_ssl = name.startswith("SSL") and (is_missing or is_refused)
        if value and (of_ssl or value in str(error)):
            exists = Path(value).exists()
            problem = "whose certificates do not serve" if exists else "which does not exist"
            return f"{name} names {value}, {problem}; {REMEDY}"
    if not isinstance(error, ImportError | ValueError):
        return None
    for name in (*PROXIES, *map(str.lower, PROXIES)):
        kind, mark, _ = os.environ.get(name, "").partition("://")
        if mark:
            reason = str(error).partition(". ")[0] if isinstance(error, ImportError) else "unknown"
            return f"{name} names a proxy of kind {kind} ({reason}); {REMEDY}"
    return None
