"""PubMed update files and entity lists of the sample world.

Abstracts state the world's facts about drugs and genes, among sentences that break each of LIPID's
rules. The second file revises, deletes and adds: the last word on an abstract counts.
"""

import random
import zlib
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape

from medprobe.sample.corpus import WORDINGS, fill
from medprobe.sample.files import write_lines
from medprobe.sample.world import Fact, World

MASKED = {  # relation: type of the entity that is masked
    "may_treat": "drug",
    "may_prevent": "drug",
    "has_physiologic_effect": "drug",
    "disease_mapped_to_gene": "gene",
    "gene_encodes_gene_product": "gene",
}
LISTS = {"chemicals": "drug", "genes": "gene"}
WORDING = 1  # a paraphrase, not the wording by which the fact is probed in other benchmarks
FIRST_PMID = 99_000_001  # far above any that is given out
REVISED = 0.05  # of the abstracts: they state another fact until the second file revises them
IN_FIRST = 0.6  # of the abstracts, with those revised
EXTRA = 10  # abstracts that the second file deletes, and as many from before LIPID's cut-off

# [E] is an entity of the abstract, [F] another one: each of these sentences is to be dropped.
BREAKING = (
    "Little is known about this.",
    "We gave [E] for six weeks.",
    "Here [E] was well tolerated.",
    "Patients who took part in the study had [E].",
    "[E] (once a day) was safe.",
    "However, [E] failed in two patients.",
    "[E] was superior to [F].",
    "[E] was repeated when [E] had failed.",
    "The form [E]x was inactive.",
)


def write(world: World, data: Path, seed: int) -> None:
    """Write `pubmed/pubmed99n000{1,2}.xml.gz` and `entities/{chemicals,genes}.txt`."""
    for name, type in LISTS.items():
        names = (entity.name for entity in world.list_entities(type))
        write_lines(data / "entities" / f"{name}.txt", names)
    (data / "pubmed").mkdir(parents=True, exist_ok=True)
    for number, records in enumerate(_draw_records(world, random.Random(seed)), start=1):
        path = data / "pubmed" / f"pubmed99n{number:04}.xml.gz"
        path.write_bytes(_gzip(_document(records)))


def _draw_records(world: World, rng: random.Random) -> tuple[list[str], list[str]]:
    """The records of the first file, and those of the second, which has the last word."""
    facts = [fact for fact in world.facts if fact.relation in MASKED]
    first, second = [], []
    for pmid, fact in enumerate(facts, start=FIRST_PMID):
        record = _record(pmid, fact, world, rng)
        share = rng.random()
        if share < REVISED:
            first.append(_record(pmid, rng.choice(facts), world, rng))  # revised by the second
            second.append(record)
        elif share < IN_FIRST:
            first.append(record)
        else:
            second.append(record)
    next_pmid = FIRST_PMID + len(facts)
    deleted = range(next_pmid, next_pmid + EXTRA)
    old = range(next_pmid + EXTRA, next_pmid + 2 * EXTRA)
    first += [_record(pmid, rng.choice(facts), world, rng) for pmid in deleted]
    second += [_record(pmid, rng.choice(facts), world, rng, old=True) for pmid in old]
    pmids = "".join(f'<PMID Version="1">{pmid}</PMID>' for pmid in deleted)
    second.append(f"<DeleteCitation>{pmids}</DeleteCitation>")
    return first, second


def _document(records: Iterable[str]) -> bytes:
    body = "\n".join(records)
    head = '<?xml version="1.0" encoding="utf-8"?>'
    return f"{head}\n<PubmedArticleSet>\n{body}\n</PubmedArticleSet>\n".encode()


def _record(pmid: int, fact: Fact, world: World, rng: random.Random, old: bool = False) -> str:
    """One abstract: two sentences that break a rule, and between them the fact."""
    masked = fact.subject if fact.subject.type == MASKED[fact.relation] else fact.object
    other = rng.choice([entity for entity in world.list_entities(masked.type) if entity != masked])
    first, last = (
        text.replace("[E]", masked.name).replace("[F]", other.name)
        for text in rng.sample(BREAKING, 2)
    )
    stated = fill(WORDINGS[fact.relation][WORDING], fact.subject.name, fact.object.name)
    stated = escape(_sentence(stated))
    if rng.random() < 0.3:  # names in italics: a sentence that crosses tags
        stated = stated.replace(masked.name, f"<i>{masked.name}</i>")
    day = f"<Month>{rng.randint(1, 12)}</Month><Day>{rng.randint(1, 28)}</Day>"
    year = 2019 if old else 2022
    return (
        '<PubmedArticle><MedlineCitation Status="PubMed-not-MEDLINE">'
        f'<PMID Version="1">{pmid}</PMID>'
        f"<DateRevised><Year>2023</Year>{day}</DateRevised>"
        '<Article PubModel="Print"><Journal><JournalIssue CitedMedium="Print"><PubDate>'
        f"<Year>{year}</Year></PubDate></JournalIssue></Journal>"
        f"<ArticleTitle>A report on {escape(masked.name)}.</ArticleTitle><Abstract>"
        f'<AbstractText Label="BACKGROUND">{escape(_sentence(first))} {stated}</AbstractText>'
        f'<AbstractText Label="RESULTS">{escape(_sentence(last))}</AbstractText>'
        "</Abstract></Article></MedlineCitation><PubmedData><History>"
        f'<PubMedPubDate PubStatus="received"><Year>{year - 1}</Year>{day}</PubMedPubDate>'
        f'<PubMedPubDate PubStatus="entrez"><Year>{year}</Year>{day}</PubMedPubDate>'
        "</History></PubmedData></PubmedArticle>"
    )


def _sentence(words: str) -> str:
    """Text as it is printed: a capital in front, no blank before the full stop.

    >>> _sentence("patients recovered .")
    'Patients recovered.'
    """
    words = words.replace(" .", ".")
    return words[:1].upper() + words[1:]


def _gzip(data: bytes) -> bytes:
    """A gzip file that holds `data` as it is: the same bytes whatever library compresses."""
    blocks = [data[start : start + 65535] for start in range(0, len(data), 65535)] or [b""]
    body = b"".join(
        bytes([number == len(blocks)])
        + len(block).to_bytes(2, "little")
        + (65535 - len(block)).to_bytes(2, "little")
        + block
        for number, block in enumerate(blocks, start=1)
    )
    tail = zlib.crc32(data).to_bytes(4, "little") + (len(data) % 2**32).to_bytes(4, "little")
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + body + tail
