"""The documents of the papers' and extensions' folders, as pages of the site: a hook of mkdocs."""

import posixpath
import re
from pathlib import Path
from typing import Any, Final

CODE: Final = Path(__file__).parent.parent / "src/medprobe"
FOLDERS: Final = ("papers", "extensions")  # `src/medprobe/papers/diskne/README.md` and so on


def on_files(files: Any, config: Any) -> None:
    """Add the documents to the site: mkdocs calls this hook."""
    from mkdocs.structure.files import File

    for path in list_pages():
        name = path.relative_to(CODE).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page's text with the links of the site: mkdocs calls this hook."""
    return site_links(markdown, page.file.src_uri)


def list_pages() -> list[Path]:
    """Return the documents in sorted order."""
    return sorted(path for folder in FOLDERS for path in (CODE / folder).glob("*/*.md"))


def site_links(markdown: str, name: str) -> str:
    """Return a page's text with links to documents as the site has them, not the repository.

    In the repository the folders are in `src/medprobe`, on the site next to the pages of `docs`. A
    link to a file of the root, such as dvc.yaml, which the site has not, becomes its text.

    Args:
        markdown: The text of the page.
        name: Where the site has the page, such as `papers/diskne/README.md`.

    >>> site_links("[why](../../../../docs/decisions.md#tests)", "papers/diskne/README.md")
    '[why](../../decisions.md#tests)'
    >>> site_links("[why](../src/medprobe/papers/diskne/decisions.md)", "decisions.md")
    '[why](papers/diskne/decisions.md)'
    >>> site_links("[install it](../../README.md#install)", "how-to/library.md")
    'install it'
    """
    above = "src/medprobe" if name.startswith(FOLDERS) else "docs"
    folder = posixpath.dirname(name)

    def move(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(above, folder, link[2]))
        inside = re.sub(r"^(docs|src/medprobe)/", "", target)
        if inside == target:
            return link[1]
        return f"[{link[1]}]({posixpath.relpath(inside, folder or '.')}{link[3] or ''})"

    return re.sub(r"\[([^\]]*)\]\((?!\w+:)([^)#]+\.(?:md|yaml))(#[^)]*)?\)", move, markdown)
