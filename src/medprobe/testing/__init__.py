"""What tests and measurements share: tiny models, small projects, damaged and marked data.

No other part of the package imports it, so no stage depends on it.
"""
