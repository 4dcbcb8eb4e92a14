"""The generated reference: nothing that `params.yaml` has is missing."""

import pkgutil
import re

import pytest
from bench import folder_pages, reference

import medprobe
from helpers import ROOT
from medprobe.core.settings import Section


def test_the_page_in_git_is_that_of_the_code() -> None:
    page = reference.PAGE.read_text(encoding="utf-8")
    assert page == reference.params_page(), "run `python -m bench.reference`"


def test_a_setting_without_a_docstring_is_named() -> None:
    class Undocumented(Section):
        width: int = 1

    with pytest.raises(ValueError, match=r"Undocumented: no docstring below \['width'\]"):
        reference.descriptions(Undocumented)


def test_the_site_lists_every_document() -> None:
    """mkdocs itself only notes a page that its navigation leaves out."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in (ROOT / "docs").rglob("*.md"):
        assert str(path.relative_to(ROOT / "docs")) in text
    for path in folder_pages.list_pages():
        assert str(path.relative_to(folder_pages.CODE)) in text


def test_the_python_reference_has_all_that_is_public() -> None:
    text = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")
    names = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    assert {f"medprobe.library.{name}" for name in medprobe.__all__} <= set(names)
    for name in names:
        assert pkgutil.resolve_name(name), name
