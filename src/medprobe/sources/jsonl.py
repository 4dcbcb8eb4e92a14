"""JSONL, as every reader here reads it: an object a line, of bounded length and depth."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from medprobe.core.errors import BadInput

LONGEST: Final = 64_000_000  # bytes of a line
ANEW: Final = "fetch the file anew"


class Record(BaseModel):
    """The schema of a line: fields of the wrong type are errors, further ones are passed over."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


RecordType = TypeVar("RecordType", bound=Record)


def objects(path: Path, get: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """`(file and line, object)` for each line that is not blank; `get` says how to get the file.

    Raises BadInput with file and line for what is no JSON object in UTF-8: broken, nested two
    hundred deep, with half a surrogate pair, NaN, or longer than LONGEST. No message holds text.
    """
    if not path.is_file():
        raise BadInput(path, "no such file", get)
    with path.open("rb") as lines:
        for number, line in enumerate(iter(lambda: lines.readline(LONGEST + 1), b""), start=1):
            where = f"{path}, line {number}"
            if len(line) > LONGEST:
                raise BadInput(where, f"longer than {LONGEST:,} bytes", ANEW)
            if not line.strip():
                continue
            try:
                row = from_json(line.strip(), allow_inf_nan=False)
            except ValueError as error:
                raise BadInput(where, f"not JSON: {_short(error)}", ANEW) from None
            if not isinstance(row, dict):
                raise BadInput(where, "not a JSON object", ANEW)
            yield where, row


def records(path: Path, schema: type[RecordType], get: str) -> Iterator[tuple[str, RecordType]]:
    """`(file and line, record)` for each line that is not blank. Raises BadInput with file, line
    and field for one that the schema does not hold for."""
    for where, row in objects(path, get):
        try:
            yield where, schema.model_validate(row)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            raise BadInput(where, f"{field}: {first['msg']}", ANEW) from None


def _short(error: ValueError) -> str:
    return str(error).replace(" at line 1 column ", ", column ")
