"""Custom expectations: functions from values, or rows, to a boolean each, or to one for all.

>>> @value_check
... def expect_texts_to_be_short(texts: pd.Series, at_most: int) -> pd.Series:
...     return texts.str.len() <= at_most

is known to suites as `{"type": "expect_texts_to_be_short", "kwargs": {"column": …, "at_most": …}}`.
A check with a parameter `context: Context` gets the tables of the run; suites do not name it. What
is wrong with a row that fails is said by `@says`, below the other decorator.
"""

import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import pandas as pd

# As in Great Expectations' documents "Create a Custom Column Map Expectation" and "Create a Custom
# Multicolumn Map Expectation".
from great_expectations.execution_engine import PandasExecutionEngine
from great_expectations.expectations.expectation import (
    ColumnMapExpectation,
    MulticolumnMapExpectation,
)
from great_expectations.expectations.metrics.map_metric_provider import (
    ColumnMapMetricProvider,
    MulticolumnMapMetricProvider,
    column_condition_partial,
    multicolumn_condition_partial,
)

CONTEXT: Final = "context"  # the parameter of checks that need other tables


@dataclass(frozen=True)
class Context:
    """A run of the gate, for checks that need more than their own values.

    `tables` are all validated tables, by name, and `places` says where rows are in their source, by
    their ids, or by their table and number. A check adds to `reasons` why a row fails, by its own
    name and the row's id: what can always be shown, and text of the data, which can be licensed.
    `computed` holds what takes long and several checks need, by a name.
    """

    tables: Mapping[str, pd.DataFrame]
    places: Mapping[str, str] = field(default_factory=dict)
    reasons: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    computed: dict[str, Any] = field(default_factory=dict)


# Great Expectations calls a check with the arguments of the suite's file and nothing else, so the
# context of a run reaches checks by this variable. Only this module reads it.
_context: Final[ContextVar[Context]] = ContextVar("context")

# Great Expectations' classes of custom expectations, by their names in suites.
expectations: Final[dict[str, type]] = {}

Check = TypeVar("Check", bound=Callable[..., pd.Series | list[bool] | bool])
Fault = str | Callable[[Mapping[str, Any], Mapping[str, Any]], str]  # of arguments and a row


def _other_form(kwargs: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    column = kwargs["column"]
    return f"{column} {'has another form' if is_filled(row.get(column)) else 'is empty'}"


def _not_allowed(kwargs: Mapping[str, Any], _: Mapping[str, Any]) -> str:
    values = [*map(str, kwargs["value_set"])]
    return f"{kwargs['column']} is none of {', '.join(values[:9])}{', …' * (len(values) > 9)}"


# What is wrong with a row, by expectation: here by those of Great Expectations itself.
faults: Final[dict[str, Fault]] = {
    "expect_column_values_to_not_be_null": lambda kwargs, _: f"{kwargs['column']} is missing",
    "expect_column_values_to_be_unique": lambda kwargs, _: f"{kwargs['column']} occurs twice",
    "expect_compound_columns_to_be_unique": lambda kwargs, _: (
        f"{', '.join(kwargs['column_list'])} occur twice together"
    ),
    "expect_column_values_to_be_in_set": _not_allowed,
    "expect_column_values_to_match_regex": _other_form,
    "expect_column_values_to_be_between": lambda kwargs, _: (
        f"{kwargs['column']} is not {limits(kwargs)}"
    ),
}


@contextmanager
def providing(tables: Mapping[str, pd.DataFrame], places: Mapping[str, str]) -> Iterator[Context]:
    """Provide checks with the context of a run on these tables."""
    context = Context(tables, places)
    token = _context.set(context)
    try:
        yield context
    finally:
        _context.reset(token)


def value_check(function: Check) -> Check:
    """Make an expectation on one `column` of `function(values, **arguments) -> booleans`.

    Missing values are not checked; `expect_column_values_to_not_be_null` does that.
    """
    partial = column_condition_partial(engine=PandasExecutionEngine)
    return _register(function, ColumnMapExpectation, ColumnMapMetricProvider, partial, "column")


def row_check(function: Check) -> Check:
    """Make an expectation on a `column_list` of two columns or more.

    It is of `function(rows, **arguments) -> booleans`, where `rows` has these columns in this
    order.

    Rows with a missing value in one of them are not checked.
    """
    partial = multicolumn_condition_partial(engine=PandasExecutionEngine)
    base, metric = MulticolumnMapExpectation, MulticolumnMapMetricProvider
    return _register(function, base, metric, partial, "column_list")


def says(words: Fault) -> Callable[[Check], Check]:
    """Say what is wrong with a row that fails a check, in words without a text of the row."""

    def record(function: Check) -> Check:
        faults[getattr(function, "__name__", "")] = words
        return function

    return record


def describe(expectation: str, kwargs: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Describe why a row fails an expectation; an empty text where only the expectation says it.

    >>> kwargs = {"column": "rows", "min_value": 1, "max_value": 2}
    >>> describe("expect_column_values_to_be_between", kwargs, {"rows": 3})
    'rows is not 1 to 2'
    """
    words = faults.get(expectation, "")
    return words if isinstance(words, str) else words(kwargs, row)


def limits(kwargs: Mapping[str, Any]) -> str:
    """The limits that an expectation's arguments name, in words."""
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    if high is None:
        return f"{low} or more"
    return f"{high} or less" if low is None else f"{low} to {high}"


def is_filled(value: Any) -> bool:
    """Whether a value has a letter or a digit."""
    return any(character.isalnum() for character in str(value if value is not None else ""))


def _register(function: Check, base: type, metric: type, partial: Any, domain: str) -> Check:
    """Define the two classes that a custom expectation of Great Expectations consists of.

    Great Expectations registers the metric when its class is made. The expectation goes into
    `expectations`.
    """
    name = getattr(function, "__name__", "")
    title = "".join(word.capitalize() for word in name.split("_"))
    _, *parameters = inspect.signature(function).parameters.values()
    has_context = any(parameter.name == CONTEXT for parameter in parameters)
    parameters = [parameter for parameter in parameters if parameter.name != CONTEXT]
    arguments = tuple(parameter.name for parameter in parameters)

    def condition(cls: type, values: Any, **kwargs: Any) -> pd.Series:
        context = {CONTEXT: _context.get()} if has_context else {}
        results = function(values, **context, **{name: kwargs[name] for name in arguments})
        return pd.Series(results, values.index, dtype=bool)

    metric_fields = {
        "condition_metric_name": f"{domain}.{name}",
        "condition_domain_keys": (
            *("batch_id", "table", domain),
            *("row_condition", "condition_parser", "ignore_row_if"),
        ),
        "condition_value_keys": arguments,
        "pandas": partial(condition),
    }
    optional = [parameter for parameter in parameters if parameter.default is not parameter.empty]
    fields = {
        "__doc__": function.__doc__,
        "__module__": function.__module__,
        "__annotations__": {parameter.name: parameter.annotation for parameter in parameters},
        "map_metric": f"{domain}.{name}",
        "success_keys": ("mostly", *arguments),
        "args_keys": (domain, *arguments),
        **{parameter.name: parameter.default for parameter in optional},
    }
    if domain == "column_list":
        fields["ignore_row_if"] = "any_value_is_missing"
        fields["__annotations__"]["ignore_row_if"] = str
    types.new_class(f"{title}Metric", (metric,), {}, lambda space: space.update(metric_fields))
    expectations[name] = types.new_class(title, (base,), {}, lambda space: space.update(fields))
    return function
