"""Statistics over seeds: tests, intervals, verdicts on hypotheses, summaries that outliers spare.

`judge` turns hypotheses and what came of the seeds into verdicts, `sentence` says one in English;
`docs/statistics.md` tells what is computed, and why.
"""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from studies.statistics.contrasts import Contrast as Contrast
    from studies.statistics.contrasts import contrast as contrast
    from studies.statistics.frozen import Frozen as Frozen
    from studies.statistics.holm import holm as holm
    from studies.statistics.judging import judge as judge
    from studies.statistics.outcomes import ArmOutcome as ArmOutcome
    from studies.statistics.outcomes import Fit as Fit
    from studies.statistics.outcomes import SeedOutcome as SeedOutcome
    from studies.statistics.permutation import PermutationTest as PermutationTest
    from studies.statistics.permutation import permutation_test as permutation_test
    from studies.statistics.power import seeds_needed as seeds_needed
    from studies.statistics.sentences import sentence as sentence
    from studies.statistics.verdict import Verdict as Verdict

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "contrasts": ["Contrast", "contrast"],
        "frozen": ["Frozen"],
        "holm": ["holm"],
        "judging": ["judge"],
        "outcomes": ["ArmOutcome", "Fit", "SeedOutcome"],
        "permutation": ["PermutationTest", "permutation_test"],
        "power": ["seeds_needed"],
        "sentences": ["sentence"],
        "verdict": ["Verdict"],
    },
)
