"""Notes and articles of the sample world: what patients with its diseases have, and do not have.

`notes/NOTEEVENTS.csv` has MIMIC-III's columns and its habits (quoted texts of many lines, notes
marked as errors); `articles/*.xml` are JATS. Each is about one disease and mentions its findings,
by name or by synonym, among those of another system, which the patient has not: a correct answer
shows from what goes together as well as from what is said.
"""

import csv
import itertools
import random
from pathlib import Path
from xml.sax.saxutils import escape

from medprobe.papers.context.notes import COLUMNS
from medprobe.sample.corpus import RELATION, write_story
from medprobe.sample.files import write_csv, write_lines
from medprobe.sample.world import Entity, World

FIRST = 99_000_000  # above any row of MIMIC-III and any article of PMC


def write(world: World, data: Path, seed: int) -> None:
    """Write a note and every other time an article for each disease with findings, below `data`."""
    rng = random.Random(f"{seed} context")
    findings: dict[Entity, list[Entity]] = {}
    for fact in world.facts:
        if fact.relation == RELATION:
            findings.setdefault(fact.subject, []).append(fact.object)
    notes: list[list[str | int]] = []
    for number, disease in enumerate(findings, start=1):
        story = _story(world, disease, findings[disease], rng)
        notes.append(_note(number, "\n".join(story), rng))
    write_csv(data / "notes" / "NOTEEVENTS.csv", [COLUMNS, *notes], csv.QUOTE_NONNUMERIC)
    for number, disease in enumerate(list(findings)[::2], start=1):
        article = _article(number, disease, _story(world, disease, findings[disease], rng))
        write_lines(data / "articles" / f"PMC{FIRST + number}.xml", [article])


def _story(
    world: World, disease: Entity, findings_of_disease: list[Entity], rng: random.Random
) -> list[str]:
    """Draw a patient's story.

    It has the findings of the disease, in pairs, and findings of another system, which the patient
    has not, one by one. So each correct finding is among as many correct as incorrect ones, and on
    average as near to the correct ones as the incorrect one next to it is. Copying alone then does
    the same around a target and a negative target.
    """
    system = rng.choice(
        [system for system in world.systems if findings_of_disease[0] not in system]
    )
    others = rng.sample(system, len(findings_of_disease) - 1)
    ordered = rng.sample(findings_of_disease, len(findings_of_disease))
    parts = [ordered[at : at + 2] for at in range(0, len(ordered), 2)] + [
        [other] for other in others
    ]
    rng.shuffle(parts)
    return write_story(disease, list(itertools.chain(*parts)), findings_of_disease, rng)


def _note(number: int, text: str, rng: random.Random) -> list[str | int]:
    """Return a row of NOTEEVENTS.csv; every twentieth is marked as an error."""
    day = f"2150-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
    error = "1" if number % 20 == 0 else ""
    patient = 90_000 + number
    kinds = ("Discharge summary", "Report")
    text = f"Patient [**Last Name {number}**]\n\nHistory:\n{text}\n"
    return [FIRST + number, patient, patient, day, "", "", *kinds, 1, error, text]


def _article(number: int, disease: Entity, sentences: list[str]) -> str:
    half = len(sentences) // 2
    paragraphs = [" ".join(sentences[:half]), " ".join(sentences[half:])]
    body = "\n".join(f"      <p>{escape(part)}</p>" for part in paragraphs if part)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<article article-type="case-report">
  <front>
    <article-meta>
      <article-id pub-id-type="pmc">{FIRST + number}</article-id>
      <title-group>
        <article-title>A case of {escape(disease.name)}</article-title>
      </title-group>
    </article-meta>
  </front>
  <body>
    <sec>
      <title>Case</title>
{body}
    </sec>
  </body>
</article>"""
