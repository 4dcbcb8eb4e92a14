"""Named characters of XML, such as `&alpha;`, in files whose DTD is not there."""

from html.entities import html5
from typing import Any

from medprobe.core.errors import BadInput, quote


def entity_text(entity: Any) -> str:
    """Return the character of a named entity, by the names that HTML and ISO share.

    Args:
        entity: A node of lxml.

    Raises:
        BadInput: The name is unknown, with the line.
    """
    if text := html5.get(f"{entity.name};"):
        return text
    where = f"{entity.getroottree().docinfo.URL or 'XML'}, line {entity.sourceline}"
    problem = f"{quote(f'&{entity.name};')} is no entity of HTML"
    raise BadInput(where, problem, "write the character in its place")
