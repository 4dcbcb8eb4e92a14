"""What MLflow records.

`lineage` has what a result was made from, `runs` and `comparisons` what its runs contain, and
`store` logs them.
"""
