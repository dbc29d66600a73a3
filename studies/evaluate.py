"""`python -m studies.evaluate`: score stored models at further lengths."""

from studies.cli.evaluate import app

if __name__ == "__main__":
    app(prog_name="python -m studies.evaluate")
