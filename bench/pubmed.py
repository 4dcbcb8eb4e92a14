"""LIPID's builder over PubMed files: megabytes of XML a second of one core, and peak memory.

    python -m bench.pubmed             # an eighth of a gigabyte, and one
    python -m bench.pubmed --small     # a tenth of that

Generated records have the shape and the length of real ones: authors, subject headings, references,
and an abstract of ten sentences; every record is recent enough to be searched for 4,461 names.
Each size runs in a process of its own.
"""

import argparse
import gzip
import json
import multiprocessing
import random
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path

from medprobe.papers.template_free.benchmarks import lipid
from medprobe.papers.template_free.benchmarks.lipid.rules import OURS, keyword_pattern

NAMES = 4461  # chemicals and genes of the paper's lists
FILES = 8
MEGABYTE = 1_000_000
PERIOD = (lipid.Settings().submitted_after, None)
TEMPLATES = 400  # distinct abstracts; each record has a PMID of its own

RECORD = """<PubmedArticle><MedlineCitation Status="MEDLINE"><PMID Version="1">{pmid}</PMID>
<DateRevised><Year>2023</Year><Month>02</Month><Day>01</Day></DateRevised><Article>
<Journal><JournalIssue><PubDate><Year>2022</Year></PubDate></JournalIssue></Journal>
<ArticleTitle>{title}</ArticleTitle><Abstract>{abstract}</Abstract>
<AuthorList>{authors}</AuthorList></Article><MeshHeadingList>{headings}</MeshHeadingList>
</MedlineCitation><PubmedData><History><PubMedPubDate PubStatus="entrez"><Year>2022</Year>
<Month>5</Month><Day>7</Day></PubMedPubDate></History><ReferenceList>{references}</ReferenceList>
</PubmedData></PubmedArticle>
"""


def generate(folder: Path, size: int, seed: int = 0) -> list[str]:
    """Write `size` bytes of XML as FILES gzip files below `folder`, and return the names to find:
    one sentence in sixty holds one of them, about as in reality."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("aeioulnrstdmcpbg", k=rng.randint(2, 10))) for _ in range(20_000)]
    names = sorted({word.capitalize() + "x" for word in rng.sample(words, NAMES)})
    templates = [_record(rng, words, names) for _ in range(TEMPLATES)]
    folder.mkdir()
    pmid = 30_000_000
    for number in range(FILES):
        with gzip.open(folder / f"pubmed23n{number:04}.xml.gz", "wb", compresslevel=1) as stream:
            stream.write(b"<PubmedArticleSet>\n")
            written = 0
            while written < size // FILES:
                pmid += 1
                text = templates[pmid % TEMPLATES].replace(b"{pmid}", str(pmid).encode())
                written += stream.write(text)
            stream.write(b"</PubmedArticleSet>\n")
    return names


def _record(rng: random.Random, words: list[str], names: list[str]) -> bytes:
    sentences = []
    for _ in range(10):
        drawn = rng.choices(words, k=20)
        if rng.random() < 1 / 60:
            drawn[rng.randrange(20)] = rng.choice(names)
        sentences.append(" ".join(drawn).capitalize() + ".")
    text = RECORD.format(
        pmid="{pmid}",
        title=" ".join(rng.choices(words, k=12)),
        abstract=f"<AbstractText>{' '.join(sentences)}</AbstractText>",
        authors="".join(
            f"<Author><LastName>{word}</LastName><ForeName>{word}</ForeName>"
            f"<AffiliationInfo><Affiliation>{' '.join(rng.choices(words, k=9))}</Affiliation>"
            "</AffiliationInfo></Author>"
            for word in rng.choices(words, k=7)
        ),
        headings="".join(
            f'<MeshHeading><DescriptorName UI="D000001">{word}</DescriptorName></MeshHeading>'
            for word in rng.choices(words, k=12)
        ),
        references="".join(
            f"<Reference><Citation>{' '.join(rng.choices(words, k=14))}</Citation></Reference>"
            for _ in range(20)
        ),
    )
    return text.encode()


def measure(folder: Path, names: list[str], files: int) -> tuple[int, float, float, float]:
    """Search the first `files` files: prompts, seconds, the peak of memory and the text in MB."""
    paths = sorted(folder.glob("*.xml.gz"))[:files]
    start = time.process_time()
    harvester = lipid.Harvester({"chem": names}, PERIOD, keyword_pattern(OURS), None)
    prompts_by_subset = lipid.harvest(paths, harvester, Counter(), Counter())
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    prompts = [row for rows in prompts_by_subset.values() for row in rows]
    return len(prompts), seconds, peak, len(json.dumps(prompts)) / MEGABYTE


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true")
    size = 1000 * MEGABYTE // (10 if parser.parse_args().small else 1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "pubmed"
        names = generate(folder, size)
        for files in (1, FILES):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                prompts, seconds, peak, held = pool.apply(measure, (folder, names, files))
            megabytes = size * files / FILES / MEGABYTE
            print(
                f"pubmed: {megabytes:.0f} MB of XML, {prompts:,} prompts ({held:.0f} MB as text): "
                f"{seconds:.1f} CPU seconds, {megabytes / seconds:.0f} MB/s, peak {peak:.0f} MB"
            )


if __name__ == "__main__":
    main()
