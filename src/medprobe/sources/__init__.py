"""Readers of licensed and released files, one file per source."""
