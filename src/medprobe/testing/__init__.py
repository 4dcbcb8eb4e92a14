"""What tests and measurements share: tiny models, small projects, damaged and marked data.

No other room imports it, so no stage follows from it.
"""
