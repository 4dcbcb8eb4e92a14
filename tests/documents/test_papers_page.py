"""docs/reference/papers.md names parameters that there are."""

import re
from collections.abc import Iterator
from typing import Any, Final, get_args

import pydantic
import pytest
import yaml
from bench import reference
from pydantic.fields import FieldInfo

from helpers import ROOT
from medprobe import benchmarks, methods

PAGE: Final = ROOT / "docs/reference/papers.md"
FILES: Final = {"LIPID.json"}  # named in the rows, and no parameters


def quoted() -> set[tuple[str, str | None]]:
    """The parameters that the page quotes, each with its value, if one follows.

    They are what stands between backticks in a table and has a dot; paths and commands are not
    meant.
    """
    rows = re.findall(r"^\| .* \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    texts = [text for row in rows for text in re.findall(r"`([^`]+)`", row)]
    matches = [re.fullmatch(r"(\w+(?:\.[\w<>]+)+)(?:: (.+))?", text) for text in texts]
    return {(match[1], match[2]) for match in matches if match and match[1] not in FILES}


def classes(annotation: Any) -> Iterator[type[pydantic.BaseModel]]:
    """The classes of settings within a type, such as that of a map's values."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from classes(inner)


def find(parameter: str) -> FieldInfo:
    """A parameter's field, by its dotted name; a key that the user chooses may be `<any name>`."""
    owner, *path = parameter.split(".")
    kinds: list[type[pydantic.BaseModel]]
    if owner in methods.list_names():
        kinds = [methods.find(owner).Settings]
    elif owner in benchmarks.list_names():
        kinds = [benchmarks.find(owner).settings]
    else:
        kinds = [kind for kind in [reference.SECTIONS[owner][1]] if kind]
    *parents, name = [key for key in path if not key.startswith("<")]
    for parent in parents:
        kinds = [*classes(kinds[0].model_fields[parent].annotation)]
    (field,) = [kind.model_fields[name] for kind in kinds if name in kind.model_fields]
    return field


def test_all_quoted_parameters_can_be_set() -> None:
    assert len(quoted()) > 80
    for parameter, value in quoted():
        field = find(parameter)
        if value is not None:
            model = pydantic.create_model("Quoted", value=(field.annotation, field))
            model.model_validate({"value": yaml.safe_load(value)})


def test_a_parameter_that_there_is_not_is_found_out() -> None:
    assert find("context.resources.<resource>.path").annotation
    for wrong in ("medlama.reach", "nothing.at_all", "context.resources.<resource>.reach"):
        with pytest.raises((KeyError, ValueError)):
            find(wrong)
