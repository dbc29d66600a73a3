"""How long every promise of every part of the catalog takes, dear ones too, on two cores.

python benchmarks/catalog.py

Exit code 1 where a promise is broken or it takes longer than three minutes. Capture by dynamo and
learning are tried too; tests of the default run leave these out.
"""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT_SECONDS = 180
WORDS = ("-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "tests/test_conformance.py")


def main() -> None:
    begun = time.monotonic()
    done = subprocess.run([sys.executable, *WORDS], cwd=ROOT, check=False)
    took = time.monotonic() - begun
    print(f"the whole catalog took {took:.0f} s; limit {LIMIT_SECONDS} s")
    if done.returncode or took > LIMIT_SECONDS:
        sys.exit("a promise is broken" if done.returncode else "above its limit")


if __name__ == "__main__":
    main()
