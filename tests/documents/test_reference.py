"""The generated reference: nothing that `params.yaml` or the command line has is missing."""

import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import click
import pytest
import yaml
from bench import folder_pages, reference

import medprobe
from helpers import ROOT
from medprobe import benchmarks, methods
from medprobe.cli import main
from medprobe.core.params import Params
from medprobe.core.settings import Section


@pytest.fixture(scope="module")
def page() -> str:
    return reference.params_page()


def test_the_pages_in_git_are_those_of_the_code() -> None:
    for path, text in reference.pages().items():
        assert path.read_text(encoding="utf-8") == text, "run `python -m bench.reference`"


def rows(page: str, heading: str) -> set[str]:
    """The settings of a section of the page, by its heading."""
    level = heading.partition(" ")[0]
    start = page.index(f"\n{heading}\n") + len(heading)
    end = re.search(rf"^#{{2,{len(level)}}} ", page[start:], re.MULTILINE)
    return set(re.findall(r"^\| `([^`]+)` \|", page[start:][: end and end.start()], re.MULTILINE))


def test_every_section_has_a_heading_and_every_setting_a_row(page: str) -> None:
    for name in Params.model_fields:
        assert f"\n## {name}\n" in page
    for name, (prefix, section) in reference.SECTIONS.items():
        fields = section.model_fields if section else {}
        assert {f"{prefix}{field}" for field in fields} <= rows(page, f"## {name}")
    for name in methods.list_names():
        assert {*methods.find(name).Settings.model_fields} == rows(page, f"### {name}")
    for name in benchmarks.list_names():
        assert {*benchmarks.find(name).settings.model_fields} <= rows(page, f"### {name}")


def keys(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """A heading of the page, and a setting below it, for each setting of a params.yaml."""
    for name in ("engine", "sample", "rewire", "score", "track"):
        yield from ((f"## {name}", f"{name}.{key}") for key in content[name])
    for name in ("train", "continued"):
        for recipe in content[name].values():
            yield from ((f"## {name}", f"{name}.<model>.{key}") for key in recipe)
    for builder, named in content["benchmarks"].items():
        for settings in named.values():
            yield from ((f"### {builder}", key) for key in settings)
    for by_method in content["methods"].values():
        for method, by_benchmark in by_method.items():
            for settings in by_benchmark.values():
                yield from ((f"### {method}", key) for key in settings)


def test_every_key_of_the_projects_params_yaml_is_there(page: str) -> None:
    content = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    assert len(list(keys(content))) > 50
    for heading, key in keys(content):
        assert key in rows(page, heading), (heading, key)


def test_defaults_are_as_yaml_writes_them(page: str) -> None:
    assert "| `rewire.learning_rate` | `2.0e-05` |" in page
    assert "| `engine.offline` | `false` |" in page
    assert "| `train.<model>.kind` | required |" in page
    assert '| `separator` | `"\\n"` |' in page


def test_a_setting_without_a_docstring_is_named() -> None:
    class Undocumented(Section):
        width: int = 1

    with pytest.raises(ValueError, match=r"Undocumented: no docstring below \['width'\]"):
        reference.descriptions(Undocumented)


def test_every_command_is_there() -> None:
    page = reference.commands_page()
    assert all(
        f"\n## medprobe {name}\n" in page for name in main.list_commands(click.Context(main))
    )


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
