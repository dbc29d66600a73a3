"""Statistics over seeds: tests, intervals, verdicts on hypotheses, summaries that outliers spare.

`judge` turns hypotheses and what came of the seeds into verdicts, `sentence` says one in English;
`docs/statistics.md` tells what is computed, and why.
"""

from typing import TYPE_CHECKING

from variants.faces import face

if TYPE_CHECKING:
    from studies.statistics.bimodality import Modes as Modes
    from studies.statistics.bimodality import modes as modes
    from studies.statistics.contrasts import Contrast as Contrast
    from studies.statistics.contrasts import contrast as contrast
    from studies.statistics.crossed_factors import CrossedEffect as CrossedEffect
    from studies.statistics.crossed_factors import crossed as crossed
    from studies.statistics.endpoints import Endpoint as Endpoint
    from studies.statistics.endpoints import compare_endpoints as compare_endpoints
    from studies.statistics.judging import judge as judge
    from studies.statistics.multiplicity import holm as holm
    from studies.statistics.outcomes import ArmOutcome as ArmOutcome
    from studies.statistics.outcomes import Fit as Fit
    from studies.statistics.outcomes import SeedOutcome as SeedOutcome
    from studies.statistics.permutation import PermutationTest as PermutationTest
    from studies.statistics.permutation import permutation_test as permutation_test
    from studies.statistics.power import seeds_needed as seeds_needed
    from studies.statistics.sentences import sentence as sentence
    from studies.statistics.summaries import interquartile_mean as interquartile_mean
    from studies.statistics.summaries import optimality_gap as optimality_gap
    from studies.statistics.summaries import (
        probability_of_improvement as probability_of_improvement,
    )
    from studies.statistics.summaries import stratified_bootstrap as stratified_bootstrap
    from studies.statistics.times import LogRank as LogRank
    from studies.statistics.times import Survival as Survival
    from studies.statistics.times import Time as Time
    from studies.statistics.times import kaplan_meier as kaplan_meier
    from studies.statistics.times import log_rank as log_rank
    from studies.statistics.verdict import Verdict as Verdict

__getattr__, __dir__ = face(
    __name__,
    {
        "contrasts": ["Contrast", "contrast"],
        "crossed_factors": ["CrossedEffect", "crossed"],
        "endpoints": ["Endpoint", "compare_endpoints"],
        "multiplicity": ["holm"],
        "judging": ["judge"],
        "bimodality": ["Modes", "modes"],
        "outcomes": ["ArmOutcome", "Fit", "SeedOutcome"],
        "permutation": ["PermutationTest", "permutation_test"],
        "power": ["seeds_needed"],
        "sentences": ["sentence"],
        "summaries": [
            "interquartile_mean",
            "optimality_gap",
            "probability_of_improvement",
            "stratified_bootstrap",
        ],
        "times": ["LogRank", "Survival", "Time", "kaplan_meier", "log_rank"],
        "verdict": ["Verdict"],
    },
)
