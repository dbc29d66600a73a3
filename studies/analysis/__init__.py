"""The outcome of a study: results of arms, verdicts on hypotheses, summaries, and their words.

`judge` turns hypotheses and what came of the seeds into verdicts, `sentence` says one in English;
`docs/statistics.md` tells what is computed, and why.
"""

from typing import TYPE_CHECKING

from variants.faces import face

if TYPE_CHECKING:
    from studies.analysis.contrasts import Contrast as Contrast
    from studies.analysis.contrasts import compare_endpoints as compare_endpoints
    from studies.analysis.contrasts import contrast as contrast
    from studies.analysis.contrasts import crossed as crossed
    from studies.analysis.contrasts import seeds_needed as seeds_needed
    from studies.analysis.permutation import holm as holm
    from studies.analysis.permutation import permutation_test as permutation_test
    from studies.analysis.results import Arm as Arm
    from studies.analysis.results import Seed as Seed
    from studies.analysis.results import StudyResults as StudyResults
    from studies.analysis.results import Task as Task
    from studies.analysis.sentences import sentence as sentence
    from studies.analysis.summaries import interquartile_mean as interquartile_mean
    from studies.analysis.summaries import modes as modes
    from studies.analysis.summaries import optimality_gap as optimality_gap
    from studies.analysis.summaries import probability_of_improvement as probability_of_improvement
    from studies.analysis.summaries import stratified_bootstrap as stratified_bootstrap
    from studies.analysis.survival import Time as Time
    from studies.analysis.survival import kaplan_meier as kaplan_meier
    from studies.analysis.survival import log_rank as log_rank
    from studies.analysis.verdicts import Frozen as Frozen
    from studies.analysis.verdicts import Verdict as Verdict
    from studies.analysis.verdicts import judge as judge

__getattr__, __dir__ = face(
    __name__,
    {
        "contrasts": ["Contrast", "compare_endpoints", "contrast", "crossed", "seeds_needed"],
        "permutation": ["holm", "permutation_test"],
        "results": ["Arm", "Seed", "StudyResults", "Task"],
        "sentences": ["sentence"],
        "summaries": [
            *("interquartile_mean", "optimality_gap", "probability_of_improvement"),
            *("modes", "stratified_bootstrap"),
        ],
        "survival": ["Time", "kaplan_meier", "log_rank"],
        "verdicts": ["Frozen", "Verdict", "judge"],
    },
)
