"""Template-based against template-free probing (Shaier et al.).

Its data sets and its analyses, as tables. Accuracies are those of entity ranking over a data set's
own entities (`mask_average`); no model is run.
"""
