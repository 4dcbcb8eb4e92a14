"""MedLAMA's files: no reader crashes, whatever one holds."""

from helpers.reader_tests import ReaderTests
from papers.medlama.readers import READERS, write_files


class TestReaders(ReaderTests):
    readers = READERS
    may_be_empty = ("sentences",)  # the gate tells of them
    write_files = staticmethod(write_files)
    test_what_was_a_crash_or_silent_is_one_line = None  # none is known
