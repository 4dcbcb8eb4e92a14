"""What MLflow records.

`runs` and `comparisons` have what runs contain, and `store` logs them.
"""
