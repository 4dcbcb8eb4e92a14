"""Sections of `params.yaml`: their base class, the types of their values, and how they are read.

A paper or extension adds sections of its own by plugins of the kind `settings`: the file
`settings/<section>.py` ends with its `SETTINGS`, and `settings/<section>.yaml` is what the
params.yaml of a new project has of it.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from medprobe.core.errors import BadInput, nearest
from medprobe.core.plugins import find_plugins, load


class Section(BaseModel):
    """A section of `params.yaml`: unknown keys are errors, values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    QUOTED: ClassVar[bool] = True  # whether errors may quote its values


SectionType = TypeVar("SectionType", bound=Section)


Name = Annotated[  # of models, benchmarks, sets: valid in folders, shells and DVC
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60)
]
Choices = dict[str, Any]  # settings, typed in the file they belong to


def _names_of_map(value: Any) -> Any:
    """Return the keys of a map without settings, such as `{set-0, set-1}`.

    DVC reads a missing map as an empty one, but not a missing list, and it ignores keys that are
    numbers. So params.yaml holds names as keys, and these must be texts.
    """
    if isinstance(value, tuple):  # validated already
        return value
    if not isinstance(value, dict) or any(settings for settings in value.values()):
        raise PydanticCustomError("names", "expected names in braces, such as {set-0, set-1}")
    for key in value:
        if not isinstance(key, str):
            raise PydanticCustomError("quotes", f'{key} needs quotes here: {{"{key}"}}')
    return tuple(value)


Names = Annotated[tuple[Name, ...], BeforeValidator(_names_of_map)]
Number = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?(e-?[0-9]+)?$")]
Values = Annotated[tuple[Number, ...], BeforeValidator(_names_of_map)]


@dataclass(frozen=True)
class Settings:
    """What a plugin adds to `params.yaml`.

    Attributes:
        type: of the section, which has the plugin's name; None if it adds none.
        required: whether params.yaml must have it.
        papers: whether papers replace it, as `medprobe adopt` takes their settings.
        gated: whether its keys are data that have a gate.
        models: whether its keys are models, and so say where their checkpoints are.
    """

    type: Any = None
    required: bool = False
    papers: bool = False
    gated: bool = False
    models: bool = False

    @property
    def empty(self) -> dict[str, Any]:
        """The section where params.yaml leaves it out: DVC's template needs its keys."""
        is_section = isinstance(self.type, type) and issubclass(self.type, Section)
        return {name: {} for name in self.type.model_fields} if is_section else {}


def find_settings() -> dict[str, Settings]:
    """Return the settings of all plugins, by name."""
    return {
        name: load(plugin, "SETTINGS", Settings)
        for name, plugin in find_plugins("settings").items()
    }


def parse_section(section_type: type[SectionType], content: Any, where: object) -> SectionType:
    """Validate one section against its class.

    Args:
        section_type: The class.
        content: The section as YAML holds it.
        where: Named in errors.

    Raises:
        BadInput: For the first thing that is wrong.

    >>> class Width(Section):
    ...     width: int = 1
    >>> parse_section(Width, {"widht": 2}, "params")
    Traceback (most recent call last):
    ...
    medprobe.core.errors.BadInput: params: unknown key widht (did you mean 'width'?)
    """
    try:
        return section_type.model_validate(content)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(str(part) for part in problem["loc"])
        if problem["loc"][-1:] == ("[key]",):
            raise _invalid_name(where, [str(part) for part in problem["loc"][:-1]]) from None
        if problem["type"] != "extra_forbidden":
            owner = _type_at(section_type, problem["loc"][:-1])
            is_quoted = not _is_section(owner) or owner.QUOTED
            value = f", found {problem['input']!r}" if is_quoted else ""
            if not key:  # of the section as a whole
                raise BadInput(where, problem["msg"]) from None
            raise BadInput(where, f"{key}: {problem['msg']}{value}") from None
        siblings = _keys_beside(section_type, problem["loc"])
        similar = nearest(str(problem["loc"][-1]), siblings)
        remedy = "" if similar or not siblings else f"choose one of {', '.join(siblings)}"
        raise BadInput(where, f"unknown key {key}{similar}", remedy) from None


def _invalid_name(where: object, loc: list[str]) -> BadInput:
    """Return the error for an invalid name. For a name of the hub it proposes a valid one."""
    *parents, name = loc
    problem = f"{'.'.join(parents)}: {name!r} is not a valid name"
    suggestion = re.sub("[^A-Za-z0-9_-]+", "-", name.rpartition("/")[2]).strip("-_")[:60]
    remedy = "a name is of a to z, A to Z, digits, _ and -, begins with no _ or -, at most 60 long"
    if re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name) and suggestion:
        remedy = f"choose one of your own, and say in fetch: {{{suggestion}: {{hub: {name}}}}}"
    return BadInput(where, problem, remedy)


def _keys_beside(section_type: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """Return the keys that are allowed where `loc` points to a wrong one."""
    fields = _type_at(section_type, loc[:-1])
    return list(fields.model_fields) if _is_section(fields) else []


def _type_at(section_type: type[BaseModel], loc: tuple[int | str, ...]) -> Any:
    """Return the type of what stands at a place of a section."""
    fields: Any = section_type
    for part in loc:
        if _is_section(fields):
            fields = fields.model_fields[str(part)].annotation if part in fields.model_fields else 0
        elif getattr(fields, "__args__", None):
            fields = fields.__args__[-1]
    return fields


def _is_section(fields: Any) -> bool:
    return isinstance(fields, type) and issubclass(fields, Section)
