"""A paper of a project's own: settings and printed numbers in its `plugins/published/`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from medprobe.core.papers import papers

PAPER = """
title: A paper that nobody wrote
version: nowhere 2020
url: https://example.org/paper
stands: true
sizes: {table: {full: {queries: 19000, relations: 19, answers_per_query: 2.3}}}
released: {table: {hard: {queries: 152, relations: 19}, other: {relations: 19}}}
names: {chf: C0018802}
models:
  Old BERT: {hub: someone/old, revision: abc, kind: masked, group: general}
  New BERT: {hub: someone/new, kind: masked, heads: [encoder], group: biomedical,
    larger_than: Old BERT, averaged: false, note: "section 2 does not say which one"}
  Lost BERT: {kind: masked, group: adapted, note: "section 2 gives it out by a link"}
adopted:
  benchmarks: {table: {facts: {facts: tables/facts.csv}}}
  methods: {masked: {mask_average: {facts: {}}, fill_mask: {facts: {}}}}
open: [how prompts were made]
tables:
  "1":
    about: the first table
    rows:
      - {model: Old BERT, benchmark: table, subset: full, relation: macro, method: fill_mask,
        values: {acc_at_1: 3.28, acc_at_10: 7.5}, std: {acc_at_1: 0.2}}
      - {model: Old BERT, benchmark: table, subset: named, relation: treats, method: fill_mask,
        values: {acc_at_1: 1}}
      - {model: Old BERT, benchmark: table, subset: named, relation: causes, method: fill_mask,
        values: {acc_at_1: 3}}
  "2":
    about: the second table, of other facts
    open: [which facts it asks]
    adopted:
      benchmarks: {table: {others: {facts: tables/others.csv}}}
      methods: {masked: {fill_mask: {others: {}}}}
    rows:
      - {model: mean, benchmark: table, subset: full, relation: macro, method: fill_mask,
        values: {acc_at_1: 3.28}}
  figure 1: {about: what has no numbers}
"""


@contextmanager
def published(folder: Path) -> Iterator[None]:
    """Put the paper into a project, which is to be the working folder."""
    (folder / "params.yaml").touch()
    file = folder / "plugins/published/made_up.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(PAPER, encoding="utf-8")
    papers.cache_clear()
    yield
    papers.cache_clear()
