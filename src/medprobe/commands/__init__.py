"""The commands that are not stages: one file per command."""
