"""Train a model, cut links of the queries that answer, and measure what becomes of the answers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from studies.links.bench import Bench, Scope, ask
from studies.links.choices import BY_NUMBER, Choice, Keys, choose
from studies.links.cutting import check_cuttable
from studies.tasks.task import Task
from studies.training.execute import trained_once
from studies.training.outcome import Measured, Outcome, Work
from studies.training.settings import task_of
from variants.encoder import Encoder
from variants.positions import BeyondTableError

DOSES = (1, 2, 4, 8)
"""So many links are cut for a curve of doses."""


def measure(work: Work, choice: Choice = "nothing") -> Outcome:
    r"""Cut one choice of links from one query of each test sequence, and compare the answers.

    The model is trained as the config says, once for all choices. The layer that *carries* the
    true links is the one in which cutting them changes the answers most (mean KL), the carrying
    head likewise within it: both are chosen on other sequences than those that are measured.

    Metrics, at each tested length, from `evaluation.examples` sequences with one query each, the
    same for every choice: `accuracy` after the cut in the carrying layer, before the softmax;
    `kl` $\sum p \ln (p / q)$ in nats from the answer p without the cut to q with it; `flips`, the
    share of answers that change; `mass`, the weight that was cut, `relative_mass` the same as a
    share of what the largest links hold; `links`, how many were cut. `_after` cuts behind the
    softmax without renormalizing, `_head` in the carrying head, `_all` in every layer;
    `_by_layer` in each layer as bin, `_by_dose` so many links as bin. `carrying_layer`,
    `accuracy_uncut` and `top_is_true` (the share of queries whose largest links in that layer are
    the true ones) tell about the model.

    The floor of the accuracy is that of the task; a run that diverged has that accuracy.

    A task that tells no links, or has several answers a place, and a model whose attention is no
    softmax make the run not applicable.

    Args:
        work: The run.
        choice: Which links are cut.
    """
    task, trained = task_of(work.config.task), trained_once(work)
    kept = ("floor",) if trained.status == "done" else ("floor", "accuracy")
    outcome = replace(
        trained,
        scores=[one for one in trained.scores if one.split != "test" or one.metric in kept],
    )
    if trained.status != "done":
        return outcome
    try:
        check_cuttable(trained.model)
        check_linked(task)
    except ValueError as error:
        outcome.status, outcome.reason, outcome.scores = "not_applicable", str(error), []
        return outcome
    model: Any = trained.model
    model.eval()
    for length in work.config.evaluation.test_lengths:
        try:
            outcome.scores += list(_measured(model, task, work, choice, length))
        except BeyondTableError:
            continue
        work.between_batches()
    return outcome


def check_linked(task: Task) -> None:
    """Refuse a task that does not tell which tokens an answer needs.

    Raises:
        ValueError: If it tells no links, or has several answers at a place.
    """
    tokens = task.sample(torch.Generator().manual_seed(0), 1, task.min_length).tokens
    if task.answers > 1 or task.links(tokens) is None:
        raise ValueError(
            "links are known for tasks with one answer at a place that tell which tokens it needs "
            f"(Task.links); {task!r} does not"
        )


def _measured(
    model: Encoder, task: Task, work: Work, choice: Choice, length: int
) -> Iterator[Measured]:
    number, seeds = work.config.evaluation.examples, work.seeds
    aside, asked = (
        ask(task, model, seeds.generator("evaluation", purpose, length), number, length)
        for purpose in ("aside", "cut")
    )
    head = Bench(model, aside).carrying()
    generator = seeds.generator("evaluation", "links", length)
    cut = _Cut(Bench(model, asked), choice, generator, length)
    yield from cut.carrying_layer(Scope(head.layers))
    yield from cut.elsewhere(head)
    yield from cut.by_dose(Scope(head.layers))
    yield from cut.about_model(Scope(head.layers))


@dataclass(frozen=True)
class _Cut:
    """One choice of links, cut in several places and numbers; see `measure`."""

    bench: Bench
    choice: Choice
    generator: torch.Generator
    length: int

    def carrying_layer(self, layer: Scope) -> Iterator[Measured]:
        """The main outcome, and the same cut behind the softmax."""
        keys, top = self.keys(self.choice, layer), self.keys("top", layer)
        rows = self.bench.rows(layer)
        yield from self.outcomes(keys, layer, "")
        yield self.told("relative_mass", rows.mass(keys) / rows.mass(top))
        yield self.told("links", keys.sum(dim=-1))
        behind = self.bench.cut(keys, layer, "after")
        yield self.told("accuracy_after", behind.right)
        yield self.told("kl_after", behind.kl)

    def elsewhere(self, head: Scope) -> Iterator[Measured]:
        """In one head, in every layer at once, and in each for itself."""
        layers = range(self.bench.model.dims.n_layers)
        for suffix, scope in (("_head", head), ("_all", Scope(tuple(layers)))):
            yield from self.outcomes(self.keys(self.choice, scope), scope, suffix)
        for layer in layers:
            scope = Scope((layer,))
            yield from self.outcomes(self.keys(self.choice, scope), scope, "_by_layer", layer)

    def by_dose(self, layer: Scope) -> Iterator[Measured]:
        """More and more links."""
        for dose in DOSES if self.choice in BY_NUMBER else ():
            keys = self.keys(self.choice, layer, dose)
            yield from self.outcomes(keys, layer, "_by_dose", dose)
            yield self.told("links_by_dose", keys.sum(dim=-1), dose)

    def about_model(self, layer: Scope) -> Iterator[Measured]:
        """What the uncut model does, and where it looks."""
        asked = self.bench.asked
        yield self.told("accuracy_uncut", self.bench.answers.argmax(dim=-1) == asked.target)
        same = self.keys("top", layer) == self.keys("true", layer)
        yield self.told("top_is_true", same.all(dim=-1))
        where = torch.full((len(asked.query),), layer.layers[0])
        yield self.told("carrying_layer", where)

    def keys(self, choice: Choice, scope: Scope, dose: int | None = None) -> Keys:
        """The keys of a choice, by the weights of a scope."""
        return choose(choice, self.bench.rows(scope, dose), self.generator)

    def outcomes(
        self, keys: Keys, scope: Scope, suffix: str, bin: int | None = None
    ) -> Iterator[Measured]:
        """What a cut before the softmax does to the answers."""
        effect = self.bench.cut(keys, scope)
        yield self.told(f"accuracy{suffix}", effect.right, bin)
        yield self.told(f"kl{suffix}", effect.kl, bin)
        yield self.told(f"flips{suffix}", effect.flipped, bin)
        yield self.told(f"mass{suffix}", self.bench.rows(scope).mass(keys), bin)

    def told(self, metric: str, values: Tensor, bin: int | None = None) -> Measured:
        """The mean over the sequences."""
        right = int(values.sum()) if values.dtype == torch.bool else None
        mean = values.double().mean().item()
        return Measured("test", self.length, metric, len(values), mean, right, bin)
