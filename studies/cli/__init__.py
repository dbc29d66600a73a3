"""The command lines of the studies: what is typed, and what is printed."""
