"""The answer of a study, gathered and put into words: one sentence per arm."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from store.aggregate import Interval, t_interval
from studies.answers.reach import Reach, reach
from studies.design.plan import Cell, Plan
from studies.design.tuning import in_words
from studies.statistics.amounts import lost_seeds, runs_done, seldom_learned, share, short_of
from studies.statistics.outcomes import Measure, floor_of, with_diverged
from studies.training.settings import RunConfig, task_of

if TYPE_CHECKING:
    from store.records import Run, Score
    from studies.answers.alternatives import Alternative
    from studies.design.tuning import Chosen


@dataclass(frozen=True)
class ArmResult:
    """What the confirming runs of one arm on one task say.

    `values` holds the finite values over seeds by (split, metric, length), without what is told
    apart by bin; `scores` holds all of them, by run. What was added to the runs later is in
    neither, since no plan foresaw it: its values are in `later`. `floors` is what a model scores
    that learned nothing, where that is not 0 in skill and exact match.
    """

    cell: Cell
    runs: list["Run"]
    chosen: "Chosen | None"
    values: Mapping[tuple[str, str, int], list[float]]
    scores: Mapping[int, list["Score"]] = field(default_factory=dict[int, "list[Score]"])
    alternatives: Sequence["Alternative"] = ()
    later: Mapping[tuple[str, str, int], list[float]] = field(
        default_factory=dict[tuple[str, str, int], list[float]]
    )
    floors: Mapping[Measure, float] = field(default_factory=dict[Measure, float])

    def counted(self, metric: str, length: int, split: str = "test") -> list[float]:
        """The values over seeds; one that diverged counts as one that learned nothing."""
        floor = floor_of((metric, length), self.floors)
        values = self.values.get((split, metric, length), ())
        return with_diverged(values, self.count("diverged"), floor)

    def interval(self, metric: str, length: int, split: str = "test") -> Interval | None:
        """Mean and 95 % t-interval over seeds; None where nothing was measured."""
        values = self.counted(metric, length, split)
        return t_interval(values) if values else None

    def count(self, status: str) -> int:
        """How many of the confirming runs have this status."""
        return sum(run.status == status for run in self.runs)


def gather_results(
    plan: Plan,
    runs: Mapping[Cell, list["Run"]],
    scores: Iterable["Score"],
    chosen: Mapping[Cell, "Chosen"],
    others: Mapping[Cell, Sequence["Alternative"]] | None = None,
) -> list[ArmResult]:
    """Gather the confirming runs of every arm on every panel.

    `others` are the settings that are shown beside the chosen one.
    """
    of_run: dict[int, list[Score]] = defaultdict(list)
    added: dict[int, list[Score]] = defaultdict(list)
    for score in scores:
        (added if score.later else of_run)[score.run_id].append(score)
    gathered: list[ArmResult] = []
    for cell in plan.cells():
        confirming = [run for run in runs[cell] if run.phase == "confirm"]
        own = {run.id: of_run[run.id] for run in confirming}
        later = _values(score for run in confirming for score in added[run.id])
        values = _values(score for of_one in own.values() for score in of_one)
        beside = (others or {}).get(cell, ())
        floors = accuracy_floors(plan.config(cell))
        found = ArmResult(cell, confirming, chosen.get(cell), values, own, beside, later, floors)
        gathered.append(found)
    return gathered


def accuracy_floors(config: RunConfig) -> dict[Measure, float]:
    """The accuracy at each tested length that skill is measured from."""
    if not config.scored:
        return {}
    task = task_of(config.task)
    lengths = config.evaluation.test_lengths
    return {("accuracy", length): task.floors(length).highest for length in lengths}


def _values(scores: Iterable["Score"]) -> dict[tuple[str, str, int], list[float]]:
    """The finite values over seeds by (split, metric, length)."""
    values: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for score in scores:
        if score.value is not None and score.bin is None:
            values[score.split, score.metric, score.length].append(score.value)
    return values


def sentence(plan: Plan, result: ArmResult) -> str:
    """What became of an arm: holds, falls below the threshold, or did not learn."""
    if result.runs and result.count("not_applicable") == len(result.runs):
        reasons = sorted({(run.reason or "it cannot be asked").rstrip(".") for run in result.runs})
        return f"does not apply: {'; '.join(reasons)}."
    if plan.study.metrics or not plan.config(result.cell).scored:
        done = runs_done(result.count("done"), len(result.runs))
        ended = (run for run in result.runs if run.status not in ("done", "planned", "running"))
        why = "; ".join(sorted({(run.reason or run.status).rstrip(".") for run in ended}))
        return " ".join([f"{done}{': ' * bool(why)}{why}.", *_remarks(plan, result)])
    threshold = plan.settings.study.threshold
    config = plan.config(result.cell)
    longest = config.training.train_lengths[1]
    found = reach(result, longest, config.evaluation.test_lengths, threshold)
    if result.chosen is not None and result.chosen.setting is None:
        verdict = f"has no result: {result.chosen.reason}."
    elif found.skill is not None and not found.learned:
        told = (
            f"skill {_below(found.skill, threshold)} at length {longest}, the longest trained "
            f"(below {threshold})."
        )
        verdict = f"{_missed(result, longest, threshold)}: {told}"
    elif found.held is None:
        verdict = (
            "has no result yet." if not _ended(result) else f"has no result at length {longest}."
        )
    else:
        verdict = _held(result, found, threshold, longest)
    extras = [verdict, *_remarks(plan, result)]
    return " ".join(extras)


def _missed(result: ArmResult, longest: int, threshold: float) -> str:
    values = result.values.get(("test", "skill", longest), [])
    return seldom_learned(sum(value >= threshold for value in values), len(result.runs))


def _ended(result: ArmResult) -> bool:
    ended = [run.status not in ("planned", "running") for run in result.runs]
    return bool(ended) and all(ended)


def _held(result: ArmResult, found: Reach, threshold: float, longest: int) -> str:
    """How far beyond the trained lengths the mean skill of an arm stays above the threshold."""
    held = longest if found.held is None else found.held
    if found.unasked is not None:
        return f"holds to length {held}; it cannot be asked at length {found.unasked}."
    if found.fell is not None and found.skill is not None:
        still = result.interval("skill", held) if held > longest else None
        last = "" if still is None else f"; still {number(still.mean)} at {held}"
        told = f"at length {found.fell} (skill {_below(found.skill, threshold)}{last})"
        return f"falls below {threshold} {told}."
    if held == longest:
        return f"learns the trained lengths; no longer one is tested than {longest}."
    values = result.counted("skill", held)
    # A seed without a value did not hold: it stays in the count.
    kept = sum(value >= threshold for value in values)
    seeds = share(kept, len(result.runs), "seed")
    mean = number(t_interval(values).mean)
    if len(values) < len(result.runs):
        return f"holds to length {held} in {seeds} only (skill {mean} where it was measured)."
    return f"holds to length {held} (skill {mean}; {threshold} or more in {seeds})."


def _below(skill: float, threshold: float) -> str:
    """A skill that falls short, such as ".72"."""
    return short_of(skill, threshold).replace("0.", ".", 1)


def _remarks(plan: Plan, result: ArmResult) -> list[str]:
    """What a reader must know beside the verdict."""
    counted = any(metric == "skill" for _, metric, _ in result.values)
    lost = result.count("diverged"), result.count("failed"), len(result.runs)
    remarks = [f"{told}." for told in lost_seeds(*lost, counted)]
    chosen = result.chosen
    if chosen is not None and chosen.setting is not None:
        for key, side in chosen.edges.items():
            told = in_words({key: chosen.setting[key]}).replace("_", " ")
            remarks.append(f"Its {told} is the {side} tried.")
    said = plan.study.remark(plan.arms[result.cell.arm], plan.settings)
    return [*remarks, said] if said else remarks


def number(value: float) -> str:
    """A share in few signs: ".56", "1.0", "-.03"."""
    # What is not 1 is not shown as 1.
    value = min(value, 0.994) if value < 0.9995 else value
    text = f"{value:.2f}".replace("-0.00", "0.00")
    if text == "1.00":
        return "1.0"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def cell_text(interval: Interval | None) -> str:
    """Mean and half-width of an interval, such as ".56±.02"."""
    if interval is None:
        return "n/a"
    if interval.low is None or interval.high is None:
        return number(interval.mean)
    return f"{number(interval.mean)}±{number((interval.high - interval.low) / 2)}"
