"""`python -m registry`: look at the parts, and at what a config builds."""

from registry.cli import main

if __name__ == "__main__":
    main()
