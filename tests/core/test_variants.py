"""Names of variants are read as they were made."""

from hypothesis import given
from hypothesis import strategies as st

from medprobe.core.variants import curve, swept_settings, swept_variant

NAMES = st.from_regex(r"[a-z][a-z_]*(-[a-z][a-z_]*)?", fullmatch=True)
SETTINGS = st.dictionaries(NAMES, st.floats(0, 1e6), max_size=3)


@given(SETTINGS, st.from_regex(r"([a-z][a-z0-9_]*(-[a-z]+)?)?", fullmatch=True))
def test_settings_are_read_as_they_were_written_and_no_other_name_has_any(
    settings: dict[str, float], name: str
) -> None:
    variant = swept_variant(settings)
    assert [*swept_settings(variant).items()] == [*settings.items()]
    assert curve(variant) == (
        (variant.rpartition("-")[0], [*settings.values()][-1]) if settings else None
    )
    assert not swept_settings(name)
    assert not swept_settings("-".join(filter(None, [variant, name or "original"])))
