"""The commands of `python -m store`: what each prints. The questions themselves are elsewhere."""
