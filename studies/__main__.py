"""`python -m studies`: list the studies and the tasks; write and check reports and bundles."""

import sys

from studies.cli.app import app

if __name__ == "__main__":
    app(sys.argv[1:] or ["list"], prog_name="python -m studies")
