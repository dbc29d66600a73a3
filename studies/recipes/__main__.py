"""`python -m studies.recipes`: put to the test what practitioners say about encoders."""

from studies.cli.named import recipes_app

if __name__ == "__main__":
    recipes_app(prog_name="python -m studies.recipes")
