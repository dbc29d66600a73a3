"""Reports: what a study found, as a page, as Markdown, and as files for a paper."""
