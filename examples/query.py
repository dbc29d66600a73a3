"""From the file to a plot: accuracy by length for each arm, with intervals over seeds.

python examples/query.py sqlite:///sandbox.db accuracy.png
"""

import sys

import matplotlib

from store import Results

matplotlib.use("agg")  # no window is opened
from matplotlib import pyplot as plt

storage, picture = sys.argv[1:]
means = Results(storage).summary(["arm", "length"], metric="accuracy", split="test").frame()
for arm, own in means.groupby("arm"):
    plt.plot(own["length"], own["mean"], marker="o", label=arm)
    plt.fill_between(own["length"], own["low"], own["high"], alpha=0.2)
plt.xscale("log", base=2)
plt.xlabel("length")
plt.ylabel("accuracy, mean and 95 % interval over seeds")
plt.legend()
plt.savefig(picture)
