"""How an expectation of our own is made: a function from values, or rows, to true or false each.

>>> @value_check
... def expect_texts_to_be_short(texts: pd.Series, at_most: int) -> pd.Series:
...     return texts.str.len() <= at_most

is known to suites as `{"type": "expect_texts_to_be_short", "kwargs": {"column": …, "at_most": …}}`.
"""

import inspect
import types
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final

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

# All tables that are being validated, by name, for checks that need another one.
tables: Final[ContextVar[Mapping[str, pd.DataFrame]]] = ContextVar("tables")

# Why rows fail, by the row's id, where a check has more to say than the row's values: what may
# always be shown, and text of the data, which may be licensed.
reasons: Final[ContextVar[dict[str, tuple[str, str]]]] = ContextVar("reasons")

# Great Expectations' classes of our own expectations, by the names that suites know them by.
expectations: Final[dict[str, type]] = {}

Check = Callable[..., pd.Series]


def value_check(function: Check) -> Check:
    """Make an expectation on one `column` of `function(values, **arguments) -> booleans`.

    Values that are missing are not checked: `expect_column_values_to_not_be_null` is for them.
    """
    partial = column_condition_partial(engine=PandasExecutionEngine)
    return _register(function, ColumnMapExpectation, ColumnMapMetricProvider, partial, "column")


def row_check(function: Check) -> Check:
    """Make an expectation on a `column_list`, two columns or more, of
    `function(rows, **arguments) -> booleans`, where `rows` has these columns in this order.

    Rows in which one of them is missing are not checked, as above.
    """
    partial = multicolumn_condition_partial(engine=PandasExecutionEngine)
    base, metric = MulticolumnMapExpectation, MulticolumnMapMetricProvider
    return _register(function, base, metric, partial, "column_list")


def _register(function: Check, base: type, metric: type, partial: Any, domain: str) -> Check:
    """Define the two classes that Great Expectations wants of a custom expectation: the metric,
    which it registers as the class is made, and the expectation, which goes into `expectations`."""
    name = getattr(function, "__name__", "")
    title = "".join(word.capitalize() for word in name.split("_"))
    parameters = list(inspect.signature(function).parameters.values())[1:]
    arguments = tuple(parameter.name for parameter in parameters)

    def condition(cls: type, values: Any, **kwargs: Any) -> pd.Series:
        return function(values, **{argument: kwargs[argument] for argument in arguments})

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
