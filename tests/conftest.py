"""Settings of the whole test run."""

import os

# Before torch is imported, here and in the processes that tests start: tests that run beside one
# another would fight over the cores otherwise, and numbers depend on the thread count.
os.environ["OMP_NUM_THREADS"] = "1"
