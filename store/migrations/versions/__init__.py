"""One script a revision; a revision's number is its place."""
