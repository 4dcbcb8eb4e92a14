"""The page of results: `reports/index.html`."""
