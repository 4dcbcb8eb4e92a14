"""Reading PubMed's update files and entity lists."""

import gzip
from datetime import date
from pathlib import Path

import pytest

from medprobe.core.errors import BadInput
from medprobe.papers.template_free import pubmed
from medprobe.papers.template_free.entities import read_names

RECORD = """
<PubmedArticle><MedlineCitation><PMID Version="2">77</PMID>
  <DateRevised><Year>2024</Year><Month>01</Month><Day>01</Day></DateRevised>
  <Article><ArticleTitle>On <i>E. coli</i></ArticleTitle>
    <Abstract><AbstractText Label="AIM">Effects of H<sub>2</sub>O
      on <b>mice</b> &amp; men.</AbstractText>
      <AbstractText Label="END">Done &#946;.</AbstractText>
      <CopyrightInformation>Mine.</CopyrightInformation></Abstract></Article>
  <OtherAbstract><AbstractText>Autre.</AbstractText></OtherAbstract>
</MedlineCitation><PubmedData><History>
  <PubMedPubDate PubStatus="received"><Year>2022</Year><Month>1</Month><Day>2</Day></PubMedPubDate>
  <PubMedPubDate PubStatus="entrez"><Year>2022</Year><Month>3</Month><Day>4</Day><Hour>6</Hour>
  </PubMedPubDate></History></PubmedData></PubmedArticle>"""
DELETION = "<DeleteCitation><PMID Version='1'>5</PMID><PMID>6</PMID></DeleteCitation>"


def write(path: Path, *records: str) -> Path:
    text = f"<PubmedArticleSet>{''.join(records)}</PubmedArticleSet>"
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_a_record_is_read_through_its_tags(tmp_path: Path) -> None:
    all_records = list(pubmed.read_records(write(tmp_path / "a.xml.gz", RECORD, DELETION)))
    assert all_records == [
        pubmed.Article(
            pmid="77",
            version=2,
            abstract=("Effects of H2O on mice & men.", "Done β."),
            submitted=date(2022, 3, 4),
        ),
        pubmed.Deletion(pmid="5"),
        pubmed.Deletion(pmid="6"),
    ]


def test_the_day_received_counts_where_none_entered(tmp_path: Path) -> None:
    record = RECORD.replace('"entrez"', '"pubmed"')
    (only_record,) = pubmed.read_records(write(tmp_path / "a.xml.gz", record))
    assert isinstance(only_record, pubmed.Article) and only_record.submitted == date(2022, 1, 2)


def test_a_record_without_a_date_that_counts_has_none(tmp_path: Path) -> None:
    record = RECORD.replace('"entrez"', '"pubmed"').replace('"received"', '"medline"')
    (only_record,) = pubmed.read_records(write(tmp_path / "a.xml.gz", record))
    assert isinstance(only_record, pubmed.Article) and only_record.submitted is None


def test_a_file_that_is_cut_short_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.xml.gz", *[RECORD] * 50)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadInput, match=r"a\.xml\.gz: broken gzip after record \d+: .*download"):
        list(pubmed.read_records(path))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (">77<", "><", r"a\.xml\.gz, record 2, PMID none: pmid is"),
        ("<Day>4</Day>", "<Day>40</Day>", r"record 2, PMID 77: submitted is .*2022-3-40"),
    ],
)
def test_a_bad_field_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = write(tmp_path / "a.xml.gz", RECORD, RECORD.replace(old, new))
    with pytest.raises(BadInput, match=message):
        list(pubmed.read_records(path))


def test_foreign_entities_are_never_opened(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    text = f"""<!DOCTYPE a [<!ENTITY x SYSTEM "{tmp_path}/secret">]>
    <PubmedArticleSet>{RECORD.replace("&#946;", "&x;")}</PubmedArticleSet>"""
    (tmp_path / "a.xml").write_text(text)
    with pytest.raises(BadInput, match="'&x;' is no entity of HTML"):
        list(pubmed.read_records(tmp_path / "a.xml"))


def test_named_characters_and_bold_labels_are_read_as_words(tmp_path: Path) -> None:
    text = RECORD.replace("&#946;", "&beta;<b>Sex:</b><b>Female</b><b>Age:</b> 7")
    document = f'<!DOCTYPE a SYSTEM "x.dtd"><PubmedArticleSet>{text}</PubmedArticleSet>'
    (tmp_path / "a.xml").write_text(document, "utf-8")
    (only_record,) = pubmed.read_records(tmp_path / "a.xml")
    assert isinstance(only_record, pubmed.Article)
    assert "βSex: Female Age: 7" in " ".join(only_record.abstract)


def test_files_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("pubmed22n2.xml.gz", "pubmed22n1.xml.gz", "notes.txt"):
        (tmp_path / name).touch()
    assert [path.name[9] for path in pubmed.list_files(tmp_path)] == ["1", "2"]
    with pytest.raises(BadInput, match="no pubmed"):
        pubmed.list_files(tmp_path / "none")


def test_a_list_of_names(tmp_path: Path) -> None:
    (path := tmp_path / "genes.txt").write_text("CAT\n\n cat \nBRX2\n", encoding="utf-8-sig")
    assert read_names(path) == ["CAT", "cat", "BRX2"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"genes\.txt: contains no names"),
        (b"\n \n", r"genes\.txt: contains no names"),
        (b"BRX2\nP53\nbrx2\n", r"genes\.txt, line 3: 'brx2' is also on line 1"),
        (b"BRX2\n\xff\n", r"genes\.txt, line 2: not UTF-8 at byte 5"),
        (b"BRX2\nP53\tgene\n", r"genes\.txt, line 2: a tab or a line end of another system"),
        (b"BRX2\rP53\r", r"genes\.txt, line 1: a tab or a line end of another system"),
    ],
)
def test_a_bad_list_is_named_with_its_line(tmp_path: Path, content: bytes, message: str) -> None:
    (path := tmp_path / "genes.txt").write_bytes(content)
    with pytest.raises(BadInput, match=message):
        read_names(path)


def test_chemdner_mentions_in_their_most_frequent_spelling(tmp_path: Path) -> None:
    path = tmp_path / "a.annotations.txt"
    rows = [("aspirin", 5), ("Aspirin", 4), ("aspirin", 9), ("NO", 1)]
    path.write_text("".join(f"1\tA\t{n}\t{n}\t{name}\tTRIVIAL\n" for name, n in rows))
    assert read_names(path) == ["aspirin", "NO"]
    path.write_text("1\tA\t5\taspirin\n")
    with pytest.raises(BadInput, match="line 1: 4 fields, expected 6"):
        read_names(path)


NAMES = [
    "aspirin",
    "sodium chloride",
    "1,2-dichloroethane",
    "N,N-dimethyltryptamine",
    "5-HT",
    "NaCl",
]


@pytest.mark.parametrize("separator", [", ", "; ", ","])
def test_a_list_in_one_line_is_refused(tmp_path: Path, separator: str) -> None:
    (path := tmp_path / "chemicals.txt").write_text(separator.join(NAMES))
    with pytest.raises(BadInput, match="one line with several names; expected one name"):
        read_names(path)


@pytest.mark.parametrize(
    "other",
    [
        *("name", "-", "nan", "drug_name", "Chemical", "Entities:"),
    ],
)
def test_a_line_of_a_list_that_is_no_name_is_named(tmp_path: Path, other: str) -> None:
    (path := tmp_path / "chemicals.txt").write_text("\n".join([other, *NAMES]))
    with pytest.raises(BadInput, match=r"chemicals\.txt, line 1: .* is no name"):
        read_names(path)
