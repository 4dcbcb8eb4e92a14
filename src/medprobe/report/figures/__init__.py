"""Drawings from tables, the same on the page and in files for papers.

`plots.py` has the kinds of drawings. Each other file has one drawing and the table that it needs.
"""
