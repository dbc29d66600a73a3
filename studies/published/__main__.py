"""`python -m studies.published`: results as their papers print them, beside ours."""

from studies.cli.named import published_app

if __name__ == "__main__":
    published_app(prog_name="python -m studies.published")
