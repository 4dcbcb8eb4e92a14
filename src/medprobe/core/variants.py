"""Names of variants that vary a method's settings: the one place where they are made and read."""

import re
from collections.abc import Mapping
from typing import Final

import numpy as np

NUMBER: Final = re.compile(r"\d[\d.]*")


def swept_variant(settings: Mapping[str, str | float]) -> str:
    """Name a variant by the settings that it varies, in their order.

    >>> swept_variant({"learning_rate": "2e-05", "step": 50}), swept_variant({})
    ('learning_rate-0.00002-step-50', '')
    """
    return "-".join(f"{name}-{plain_number(value)}" for name, value in settings.items())


def swept_settings(variant: str) -> dict[str, float]:
    """Return the settings that a variant varies by name; none of another variant.

    >>> swept_settings("learning_rate-0.00002-step-50"), swept_settings("original")
    ({'learning_rate': 2e-05, 'step': 50.0}, {})
    """
    settings: dict[str, float] = {}
    name: list[str] = []
    for word in variant.split("-"):
        if name and NUMBER.fullmatch(word):
            settings["-".join(name)] = float(word)
            name = []
        else:
            name.append(word)
    return {} if name else settings


def curve(variant: str) -> tuple[str, float] | None:
    """Return the curve that a variant is a point of, and the value of its last setting there.

    >>> curve("step-50"), curve("mask_ratio-0.3-step-50"), curve("original")
    (('step', 50.0), ('mask_ratio-0.3-step', 50.0), None)
    """
    settings = swept_settings(variant)
    return (variant.rpartition("-")[0], [*settings.values()][-1]) if settings else None


def plain_number(number: str | float) -> str:
    """Return a number without an exponent.

    >>> plain_number("2e-05"), plain_number(12)
    ('0.00002', '12')
    """
    return np.format_float_positional(float(number), trim="-")
