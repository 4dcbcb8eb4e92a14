"""DisKnE's files: no reader crashes, whatever one holds."""

from helpers.reader_tests import ReaderTests
from papers.diskne.readers import READERS, write_files

NOTE = b'{"pairID": "p", "sentence1": "a", "sentence2": "b", "gold_label": "neutral"}'
CASES = [
    ("MedNLI", NOTE.replace(b'"p"', b'["p"]'), "line 1: pairID is a list, expected a valid"),
    ("MedNLI", NOTE + b"\n\n" + NOTE + b"\xff", "line 3: not UTF-8 at byte 154"),
    ("MEDIQA", b"pair_id,label\n" + b"x" * 200_000 + b",neutral\n", "a text of 200,000"),
    ("MEDIQA", b"pair_id,label\n" + b"x" * 5_000_000 + b",neutral\n", "line 2: not CSV: field"),
    ("the annotation", b"", "annotation.csv: empty"),
    ("the annotation", b"pair_id\n\xe9\n", "line 1: no column 'premise'"),
    ("cui2vec", b'"","V1"\n', "line 1: expected a header, then one concept per line"),
    ("cui2vec", b"C0000001,1\nC0000002,0\n", "line 1: expected a header, then one"),
]


class TestReaders(ReaderTests):
    readers = READERS
    cases = CASES
    write_files = staticmethod(write_files)
