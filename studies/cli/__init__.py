"""The commands of studies: what is typed, and what is printed of it."""
