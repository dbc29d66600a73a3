"""`python -m studies.run my_study.yaml`: run a study of your own, which one YAML file describes."""

from studies.cli.named import run_app

if __name__ == "__main__":
    run_app(prog_name="python -m studies.run")
