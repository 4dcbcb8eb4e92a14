"""Custom expectations: functions from values, or rows, to a boolean each, or to one for all.

>>> @value_check
... def expect_texts_to_be_short(texts: pd.Series, at_most: int) -> pd.Series:
...     return texts.str.len() <= at_most

is known to suites as `{"type": "expect_texts_to_be_short", "kwargs": {"column": …, "at_most": …}}`.
A check with a parameter `context: Context` gets the tables of the run; suites do not name it.
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

    `tables` are all validated tables, by name. A check adds to `reasons` why a row fails, by the
    row's id: what can always be shown, and text of the data, which can be licensed. `computed`
    holds what takes long and several checks need, by a name.
    """

    tables: Mapping[str, pd.DataFrame]
    reasons: dict[str, tuple[str, str]] = field(default_factory=dict)
    computed: dict[str, Any] = field(default_factory=dict)


# Great Expectations calls a check with the arguments of the suite's file and nothing else, so the
# context of a run reaches checks by this variable. Only this module reads it.
_context: Final[ContextVar[Context]] = ContextVar("context")

# Great Expectations' classes of custom expectations, by their names in suites.
expectations: Final[dict[str, type]] = {}

Check = TypeVar("Check", bound=Callable[..., pd.Series | list[bool] | bool])


@contextmanager
def providing(tables: Mapping[str, pd.DataFrame]) -> Iterator[Context]:
    """Provide checks with the context of a run on these tables."""
    context = Context(tables)
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
