"""Sections of `params.yaml`: their base class, the types of their values, and how they are read."""

import re
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    ValidationError,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from medprobe.core.errors import BadInput, nearest


class Section(BaseModel):
    """A section of `params.yaml`: unknown keys are errors, values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    QUOTED: ClassVar[bool] = True  # whether errors may quote its values

    @classmethod
    def types(cls) -> dict[str, Any]:
        """Return the type of each key."""
        return {name: field.annotation for name, field in cls.model_fields.items()}


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


def parse_section(section_type: type[SectionType], content: Any, where: object) -> SectionType:
    """Validate one section against its class.

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
        found = error.errors()
        unknown = [one for one in found if one["type"] == "extra_forbidden"]
        is_renamed = unknown and found[0]["type"] == "missing"  # the unknown one is what was meant
        problem = unknown[0] if is_renamed else found[0]
        key = ".".join(str(part) for part in problem["loc"])
        if problem["loc"][-1:] == ("[key]",):
            raise _invalid_name(where, [str(part) for part in problem["loc"][:-1]]) from None
        owner = _type_at(section_type, problem["loc"][:-1])
        if problem["type"] != "extra_forbidden":
            is_quoted = not is_section(owner) or owner.QUOTED
            value = f", found {problem['input']!r}" if is_quoted else ""
            expected = _expected(problem, is_quoted=is_quoted)
            if not key:  # of the section as a whole
                raise BadInput(where, expected) from None
            raise BadInput(where, f"{key}: {expected}{value}") from None
        siblings = list(owner.types()) if is_section(owner) else []
        similar = nearest(str(problem["loc"][-1]), siblings)
        remedy = "" if similar or not siblings else f"choose one of {', '.join(siblings)}"
        raise BadInput(where, f"unknown key {key}{similar}", remedy) from None


def _expected(problem: ErrorDetails, *, is_quoted: bool) -> str:
    """Word what a value should be; of a map, how these words are written as one."""
    if problem["type"] not in ("dict_type", "model_type"):
        return problem["msg"].partition(", unable to parse")[0]
    value = problem["input"]
    names = value if isinstance(value, list) else [value]
    if not is_quoted or not all(isinstance(x, str) and re.fullmatch(r"[\w-]+", x) for x in names):
        return "expected a map, {} where it is empty"
    return f"expected a map, such as {{{', '.join(f'{name}: {{}}' for name in names)}}}"


def check_name(name: object, choices: Any, where: str) -> None:
    """Refuse a name at a path of params.yaml that is not among `choices`."""
    if name is not None and name not in choices:
        names = [str(choice) for choice in choices]
        among = f"is not among {', '.join(names)}" if names else "is unknown, and none is defined"
        problem = f"'{name}' {among}{nearest(str(name), names)}"
        raise BadInput(f"params.yaml: {where}", problem)


def check_settings(kind: type[SectionType], choices: Choices, where: str) -> SectionType:
    """Check a section; `where` is its path in params.yaml."""
    return parse_section(kind, choices, f"params.yaml: {where}")


def _invalid_name(where: object, loc: list[str]) -> BadInput:
    """Return the error for an invalid name. For a name of the hub it proposes a valid one."""
    *parents, name = loc
    problem = f"{'.'.join(parents)}: {name!r} is not a valid name"
    suggestion = re.sub("[^A-Za-z0-9_-]+", "-", name.rpartition("/")[2]).strip("-_")[:60]
    remedy = "a name is of a to z, A to Z, digits, _ and -, begins with no _ or -, at most 60 long"
    if re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name) and suggestion:
        remedy = f"choose one of your own, and say in fetch: {{{suggestion}: {{hub: {name}}}}}"
    return BadInput(where, problem, remedy)


def _type_at(section_type: type[BaseModel], loc: tuple[int | str, ...]) -> Any:
    fields: Any = section_type
    for part in loc:
        if is_section(fields):
            fields = fields.types().get(str(part), 0)
        elif getattr(fields, "__args__", None):
            fields = fields.__args__[-1]
    return fields


def is_section(fields: Any) -> bool:
    """Return whether a type is a section's class."""
    return isinstance(fields, type) and issubclass(fields, Section)
