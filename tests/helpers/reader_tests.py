"""What holds of every reader of a source: it reads a file, or refuses it in one line."""

import random
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import damage
from helpers.damage import Reader


class ReaderTests:
    """A subclass names its readers.

    Attributes:
        readers: by name.
        cases: of a reader, the content of its file, and what its refusal says.
        may_be_empty: readers whose empty file is none of their business.
    """

    readers: ClassVar[Mapping[str, Reader]]
    cases: ClassVar[Sequence[tuple[str, bytes, str]]] = ()
    may_be_empty: ClassVar[Collection[str]] = ()

    @staticmethod
    def write_files(data: Path) -> None:
        """Write what these readers read beside the world of `damage`."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "case" in metafunc.fixturenames:
            ids = [f"{reader}: {says}" for reader, _, says in self.cases]
            metafunc.parametrize("case", self.cases, ids=ids)
        if "reader" in metafunc.fixturenames:
            metafunc.parametrize("reader", self.readers)
        if "needed" in metafunc.fixturenames:
            metafunc.parametrize("needed", sorted({*self.readers} - {*self.may_be_empty}))

    @pytest.fixture(scope="class")
    def data(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("world") / "data"
        damage.write_world(folder)
        self.write_files(folder)
        return folder

    def test_a_sound_file_is_read(self, data: Path, reader: str) -> None:
        self.readers[reader][1](data)

    def test_a_damaged_file_is_read_or_refused_in_one_line(self, data: Path, reader: str) -> None:
        @settings(settings.get_profile("few"), derandomize=True, database=None)
        @given(seed=st.integers(0, 2**32))
        def check_seed(seed: int) -> None:
            outcome = damage.try_reader(data, self.readers[reader], random.Random(seed))
            assert outcome in ("read", "refused")

        check_seed()

    def test_an_empty_file_is_refused(self, data: Path, needed: str) -> None:
        """So that no relation, set or source vanishes."""
        assert damage.find_refusal_of_nothing(data, self.readers[needed])

    def test_what_was_a_crash_or_silent_is_one_line(
        self, data: Path, case: tuple[str, bytes, str]
    ) -> None:
        reader, content, says = case
        refusal = damage.find_refusal(data, self.readers[reader], content)
        assert says in refusal
        assert len(refusal) < 400
