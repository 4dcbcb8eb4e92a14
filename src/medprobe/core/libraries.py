"""The versions of libraries: those in requirements.lock and the installed ones."""

from collections.abc import Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Final

from medprobe.core.places import LIBRARIES

MISSING: Final = "none"


def pinned_versions(lock: Path = LIBRARIES) -> dict[str, str]:
    """Read the versions that a lock file names for this Python and system."""
    if not lock.is_file():
        return {}
    from packaging.requirements import InvalidRequirement, Requirement

    versions = {}
    for line in lock.read_text(encoding="utf-8").splitlines():
        with suppress(InvalidRequirement):  # a comment, a hash, an option of pip
            found = Requirement(line.partition("#")[0].rstrip(" \\"))
            for pin in found.specifier:
                if pin.operator == "==" and (not found.marker or found.marker.evaluate()):
                    versions[found.name] = pin.version
    return versions


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the installed versions of libraries; `none` for one that is not installed."""
    versions = {}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = MISSING
    return versions


def differing_versions(lock: Path = LIBRARIES) -> dict[str, tuple[str, str]]:
    """Return the versions in a lock file and the installed ones of libraries where they differ.

    A build such as `2.13.0+cpu` is of the version 2.13.0, unless the lock names a build.
    """
    pinned = pinned_versions(lock)
    installed = installed_versions(pinned)
    return {
        name: (version, installed[name])
        for name, version in pinned.items()
        if version != (installed[name] if "+" in version else installed[name].partition("+")[0])
    }


def describe_differing(lock: Path = LIBRARIES) -> list[str]:
    """Say which installed versions are other ones than those in a lock file, a line each."""
    return [
        f"{lock}: {name} {version} is required, "
        + ("it is not installed" if installed == MISSING else f"{installed} is installed")
        for name, (version, installed) in differing_versions(lock).items()
    ]


def write_versions(lock: Path = LIBRARIES) -> None:
    """Write the versions of all that is installed to a lock file."""
    versions = {found.name: found.version for found in metadata.distributions()}
    lines = [f"{name}=={version}\n" for name, version in sorted(versions.items())]
    lock.write_text("".join(lines), encoding="utf-8")
