"""Template-based against template-free probing (Shaier et al.): its data sets, its analyses as
tables, and its chapter of the page. Accuracies are those of entity ranking over a data set's own
entity list (mask average); no model is run."""

from typing import Final

METHOD: Final = "mask_average"
WITH_MORE: Final = f"{METHOD}:distractors"
