"""From the file to a plot: accuracy by length for each task and arm, with intervals.

python examples/query.py sqlite:///sandbox.db accuracy.png
"""

import sys

import matplotlib

from store import Results

matplotlib.use("agg")  # no window is opened
from matplotlib import pyplot as plt

storage, picture = sys.argv[1:]
means = Results(storage).summary(["task", "arm", "length"], metric="accuracy", split="test").frame()
for line, own in means.groupby(means["arm"] + ", " + means["task"]):
    plt.plot(own["length"], own["mean"], marker="o", label=str(line))
    plt.fill_between(own["length"], own["low"], own["high"], alpha=0.1)
plt.xscale("log", base=2)
plt.xticks(lengths := sorted(set(means["length"])), lengths)
plt.gca().set(xlabel="length", ylabel="accuracy, mean and 95 % interval over seeds")
plt.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.savefig(picture, bbox_inches="tight")
