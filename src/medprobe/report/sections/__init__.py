"""The sections of a benchmark's chapter: one file, one section.

A section is a function `section(results, benchmark) -> list[Part]`, empty where its data is absent.
It knows nothing of HTML; `page` lists the sections and shows them.
"""
