"""Articles and plain texts: what counts as text, and how broken files are named."""

from collections import Counter
from pathlib import Path

import pytest

from helpers.reading import check_refusal
from medprobe.core.errors import BadInput
from medprobe.papers.context import articles, texts
from medprobe.papers.context.texts import Document

ARTICLE = """<?xml version="1.0"?>
<!-- a comment -->
<article{namespace}>
 <front><article-meta>
  <article-id pub-id-type="doi">10.1/x</article-id>{number}
  <title-group><article-title>On <italic>sudden</italic> fever</article-title></title-group>
  <abstract><sec><title>Aim</title>
  <p>We saw fever<xref ref-type="bibr">3</xref>.</p></sec></abstract>
 </article-meta></front>
 <body><sec><title>Case</title>
  <p>Cough &amp; fever<sup>2</sup>:
   <table-wrap><table><tr><td>hidden</td></tr></table></table-wrap> then rash.</p>
  <fig><caption><p>hidden too</p></caption></fig>
  <p>A list <list><list-item><p>of itch</p></list-item></list></p>
 </sec></body>
 <back><ref-list><ref>hidden as well</ref></ref-list></back>
</article>"""
TEXT = "On sudden fever Aim We saw fever. Case Cough & fever2: then rash. A list of itch"


def article(path: Path, number: str = "", namespace: str = "") -> Path:
    path.write_text(ARTICLE.format(number=number, namespace=namespace), encoding="utf-8")
    return path


@pytest.mark.parametrize("namespace", ["", ' xmlns="https://jats.nlm.nih.gov/ns/archiving/1.0/"'])
def test_running_text_is_read_and_nothing_else(tmp_path: Path, namespace: str) -> None:
    path = article(tmp_path / "a.xml", namespace=namespace)
    assert list(articles.read(path, Counter())) == [Document("a", TEXT)]


def test_an_article_is_called_by_its_number(tmp_path: Path) -> None:
    article(tmp_path / "a.nxml", '<article-id pub-id-type="pmc">12</article-id>')
    article(tmp_path / "b.nxml", '<article-id pub-id-type="pmcid">PMC12</article-id>')
    skipped: Counter[str] = Counter()
    assert [document.id for document in articles.read(tmp_path, skipped)] == ["12"]
    assert skipped["read before"] == 1


def test_an_entity_alone_is_its_character(tmp_path: Path) -> None:
    head = "<!DOCTYPE article SYSTEM 'x.dtd'>"
    path = tmp_path / "a.xml"
    path.write_text(f"{head}<article><body><p>&alpha;</p><p>&nbsp;</p></body></article>")
    assert [document.text for document in articles.read(path, Counter())] == ["α"]


def test_a_folder_is_read_in_order_and_empty_articles_are_counted(tmp_path: Path) -> None:
    article(tmp_path / "b.xml")
    (tmp_path / "a.txt").write_text(
        "==== Front\nJ Med\n==== Body\nOnly this.\n==== Refs\n1. X", encoding="utf-8"
    )
    (tmp_path / "c.xml").write_text("<article><body/></article>", encoding="utf-8")
    skipped: Counter[str] = Counter()
    documents = list(articles.read(tmp_path, skipped))
    assert documents == [Document("a", "Only this."), Document("b", TEXT)]
    elements = {"element fig": 1, "element table-wrap": 1, "element xref": 1}
    assert skipped == {"empty": 1, **elements}


def test_broken_xml_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<article>\n<body>\n<p>secret</body></article>", "utf-8")
    with pytest.raises(BadInput, match=r"a\.xml, line 3: broken XML") as error:
        list(articles.read(tmp_path, Counter()))
    assert "secret" not in str(error.value)
    (tmp_path / "a.xml").write_bytes(b"")
    with pytest.raises(BadInput, match="broken XML"):
        list(articles.read(tmp_path, Counter()))


def test_entities_of_an_article_are_not_fetched(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("outside", encoding="utf-8")
    path = tmp_path / "a.xml"
    path.write_text(
        '<!DOCTYPE article [<!ENTITY x SYSTEM "secret.txt">]>'
        "<article><body><p>in &x;</p></body></article>",
        encoding="utf-8",
    )
    with pytest.raises(BadInput, match="line 1: '&x;' is no entity of HTML") as error:
        list(articles.read(path, Counter()))
    assert "outside" not in str(error.value)


def running_text(tmp_path: Path, body: str, start: str = "") -> str:
    path = tmp_path / "a.xml"
    path.write_text(f"{start}<article><body>{body}</body></article>", encoding="utf-8")
    [document] = articles.read(path, Counter())
    return document.text


DTD = '<!DOCTYPE article PUBLIC "-//NLM//DTD JATS//EN" "JATS.dtd">'


@pytest.mark.parametrize(
    ("entity", "character"), [("&alpha;", "α"), ("&Auml;", "Ä"), ("&hellip;", "…"), ("&#945;", "α")]
)
def test_named_characters_are_read_without_the_dtd(
    tmp_path: Path, entity: str, character: str
) -> None:
    assert running_text(tmp_path, f"<p>an {entity}-helix</p>", DTD) == f"an {character}-helix"


@pytest.mark.parametrize(
    "body",
    [
        "<p>fever<list><list-item><p>itch</p></list-item></list>rash</p>",
        "<p>fever<disp-quote><p>itch</p></disp-quote>rash</p>",
        "<p>fever<def-list><def-item><term>itch</term><def><p>rash</p></def></def-item></def-list></p>",
        "<p>fever<boxed-text><p>itch</p></boxed-text>rash</p>",
        "<verse-group><verse-line>fever</verse-line><verse-line>itch</verse-line>"
        "<verse-line>rash</verse-line></verse-group>",
        "<list><list-item>fever</list-item><list-item>itch</list-item><list-item>rash</list-item></list>",
        "<p>fever<break/>itch<break/>rash</p>",
    ],
)
def test_what_is_no_part_of_a_line_ends_a_word(tmp_path: Path, body: str) -> None:
    assert running_text(tmp_path, body) == "fever itch rash"


def test_parts_of_a_line_do_not_end_a_word(tmp_path: Path) -> None:
    body = "<p>H<sub>2</sub>O, <bold>p</bold>53 and a <xref ref-type='list'>rash</xref></p>"
    assert running_text(tmp_path, body) == "H2O, p53 and a rash"


@pytest.mark.parametrize(
    ("attributes", "text", "left_out"),
    [
        ({}, "title abstract body", {}),
        ({"article": "en"}, "title abstract body", {}),
        ({"article": "EN-us"}, "title abstract body", {}),
        ({"article": "pt"}, "", {"article-title", "abstract", "body"}),
        ({"abstract": "fr"}, "title body", {"abstract"}),
        ({"article": "es", "abstract": "en"}, "abstract", {"article-title", "body"}),
    ],
)
def test_what_is_in_another_language_is_left_out(
    tmp_path: Path, attributes: dict[str, str], text: str, left_out: set[str]
) -> None:
    of = {name: f' xml:lang="{language}"' for name, language in attributes.items()}
    (tmp_path / "a.xml").write_text(
        f"<article{of.get('article', '')}><front><article-meta>"
        "<title-group><article-title>title</article-title></title-group>"
        f"<abstract{of.get('abstract', '')}><p>abstract</p></abstract></article-meta></front>"
        "<body><p>body</p></body></article>",
        encoding="utf-8",
    )
    skipped: Counter[str] = Counter()
    assert [document.text for document in articles.read(tmp_path, skipped)] == [text] * bool(text)
    counts = {f"{name} in another language": 1 for name in left_out}
    assert skipped == (counts if text else {**counts, "empty": 1})


def test_texts_are_files_or_rows(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\ntwo", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(
        '{"id": 1, "text": "three"}\n{"id": "x", "text": " "}\n', encoding="utf-8"
    )
    skipped: Counter[str] = Counter()
    assert list(texts.read(tmp_path, skipped)) == [Document("a", "one two"), Document("1", "three")]
    assert skipped == {"empty": 1}


def test_a_path_outside_of_the_sources_is_refused(working_folder: Path) -> None:
    resources = {
        "notes": {"form": "notes", "path": "notes/NOTEEVENTS.csv"},
        "articles": {"form": "articles", "path": "articles"},
    }
    relation = {"prompt": "[X] may have [Y] .", "subjects": ["a"], "objects": ["b"]}
    settings = {"relations": {"disease_may_have_finding": relation}, "resources": resources}
    check_refusal("context_articles", settings, "resources.notes.path")
