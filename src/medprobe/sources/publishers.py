"""Whether the files of a source are those that its publisher released.

A publisher signs them: the UMLS in MRFILES.RRF and a list of MD5 sums, PhysioNet in
SHA256SUMS.txt, PubMed in one `.md5` per file. Of what lies on GitHub the papers' files here have
bytes, rows and SHA-256 (`Paper.files`). Files are compared by their names, sizes first.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from medprobe.core.papers import papers

UNSIGNED: Final = "unsigned"
LISTS: Final = ("MRFILES.RRF", "SHA256SUMS.txt", "*.md5", "*.MD5")
SUM: Final = re.compile(  # as md5sum and sha256sum write it, or as BSD does: the name before it
    r"(?:\w+ ?\((?P<before>.+)\) ?= ?)?"
    r"(?P<sum>[\da-fA-F]{64}|[\da-fA-F]{32})(?:[ *]+(?P<behind>.+))?"
)
NAMED: Final = 3  # files that a verdict names


class Signature(NamedTuple):
    """What a publisher says of a file, as far as it says it."""

    release: str
    size: int | None = None  # bytes
    rows: int | None = None
    sum: str = ""  # MD5 or SHA-256, in hexadecimal


def compare(data: Path, sources: Iterable[str]) -> dict[str, str]:
    """Compare sources, files and folders below `data`, with what their publishers signed."""
    by_folder: dict[str, list[Path]] = {}
    for source in sources:
        by_folder.setdefault(Path(source).parts[0], []).append(data / source)
    return {folder: _verdict(data / folder, paths) for folder, paths in by_folder.items()}


def _verdict(folder: Path, sources: list[Path]) -> str:
    signed = {**_listed(folder), **_of_papers(folder.name)}
    if not signed:
        return UNSIGNED
    differs, unsigned, releases = [], [], set()
    for file in _files(sources):
        names = (f"{file.parent.name}/{file.name}", file.name, file.stem)
        signature = next((signed[name] for name in names if name in signed), None)
        place = file.relative_to(folder).as_posix()  # LAMA has two test.jsonl
        if signature is None:
            unsigned.append(place)
        elif difference := _difference(file, signature):
            differs.append(place + difference)
        else:
            releases.add(signature.release)
    parts = [f"differs: {_first(differs)}"] if differs else []
    if releases and not differs:
        parts.append(f"as published ({', '.join(sorted(releases))})")
    if unsigned and parts:
        parts.append(f"{UNSIGNED}: {_first(unsigned)}")
    return "; ".join(parts) or UNSIGNED


def _files(sources: list[Path]) -> Iterator[Path]:
    for source in sources:
        below = sorted(source.rglob("[!.]*")) if source.is_dir() else [source]
        yield from (file for file in below if file.is_file() and not any(map(file.match, LISTS)))


def _first(names: list[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _of_papers(source: str) -> dict[str, Signature]:
    released = [paper.files[source] for paper in papers().values() if source in paper.files]
    return {
        name: Signature(files.release, *about)
        for files in released
        for name, about in files.files.items()
    }


def _listed(folder: Path) -> dict[str, Signature]:
    """The signatures of the publisher's lists in a folder and in those right below it."""
    found: dict[str, Signature] = {}
    for pattern in LISTS:
        for path in sorted([*folder.glob(pattern), *folder.glob(f"*/{pattern}")]):
            for line in path.read_text("utf-8-sig", errors="replace").splitlines():
                name, signature = _signature(path, line)
                found[name] = signature if signature.sum else found.get(name, signature)
    return found


def _signature(path: Path, line: str) -> tuple[str, Signature]:
    if path.name == "MRFILES.RRF":  # name, description, columns and their number, rows, bytes
        name, *_, rows, size = [*line.split("|"), "", "", "", "", "", ""][:6]
        if not (size.isdigit() and rows.isdigit()):
            return "", Signature("")
        return Path(name).name, Signature(_release(path), int(size), int(rows))
    if not (found := SUM.fullmatch(line.strip())):
        return "", Signature("")
    name = found["before"] or found["behind"] or path.name.removesuffix(path.suffix)
    release = _release(path) if path.suffix == ".MD5" else path.name
    return Path(name).name, Signature(release, sum=found["sum"].lower())


def _release(path: Path) -> str:
    """The release of the UMLS, which `release.dat` beside its files names."""
    notes = path.with_name("release.dat")
    text = notes.read_text("utf-8", errors="replace") if notes.is_file() else ""
    found = re.search(r"umls\.release\.name=(\S+)", text)
    return found[1] if found else path.name


def _difference(file: Path, signature: Signature) -> str:
    """How a file differs from what its publisher signed, in brackets; or nothing."""
    size = file.stat().st_size
    if signature.size is not None and size != signature.size:
        if signature.rows is None:
            return f" ({size:,} bytes, published {signature.size:,})"
        with file.open("rb") as stream:
            rows = sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(1 << 24), b""))
        here, there = f"{rows:,} rows, {size:,} bytes", f"{signature.rows:,} and {signature.size:,}"
        return f" ({here}; published {there})"
    if not signature.sum:
        return ""
    with file.open("rb") as stream:
        algorithm = "md5" if len(signature.sum) == 32 else "sha256"
        digest = hashlib.file_digest(stream, algorithm).hexdigest()
    return "" if digest == signature.sum else " (other content)"
