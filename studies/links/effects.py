"""Train a model, cut links of the queries that answer, and measure what becomes of the answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from einops import rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from studies.links.choices import BY_NUMBER, Choice, Keys, Rows, choose
from studies.links.cutting import Links, Place, Weights, check_cuttable, run_cut
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
    """Refuse a task that tells no links, or has several answers at a place, with a ValueError."""
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
class Asked:
    """Sequences, one answering query of each, and what it would need."""

    tokens: Int[Tensor, "row seq"]
    query: Int[Tensor, " row"]
    target: Int[Tensor, " row"]
    true: Keys
    allowed: Keys

    def answers(self, logits: Tensor) -> Float[Tensor, "row classes"]:
        """The logits of the answering queries, in float64."""
        if logits.ndim == 2:
            return logits.double()
        index = repeat(self.query, "row -> row 1 classes", classes=logits.shape[-1])
        return rearrange(logits.gather(1, index), "row 1 classes -> row classes").double()


def ask(task: Task, model: Encoder, generator: Generator, number: int, length: int) -> Asked:
    """Draw sequences, and one query that needs something from each; those without are left out."""
    drawn = task.sample(generator, number, length)
    links: Any = task.links(drawn.tokens)
    some = links.any(dim=(1, 2))
    links, targets, tokens = links[some], drawn.targets[some], drawn.tokens[some]
    query = torch.multinomial(links.any(dim=-1).double(), 1, generator=generator)[:, 0]
    row = torch.arange(len(query))
    batch, seq = tokens.shape
    heads = model.dims.n_heads
    rule = model.mask.dense(batch, heads, seq, seq).expand(batch, heads, seq, seq)
    device = next(model.parameters()).device
    target = targets if targets.ndim == 1 else targets[row, query]
    allowed = reduce(rule[row, :, query], "row heads key -> row key", "any")
    return Asked(*(one.to(device) for one in (tokens, query, target, links[row, query], allowed)))


@dataclass(frozen=True)
class Scope:
    """Where links are cut: some layers, one head of them or all."""

    layers: tuple[int, ...]
    head: int | None = None

    def weights(self, shown: Sequence[Weights], asked: Asked) -> Float[Tensor, "row key"]:
        """The weights of the answering queries, averaged over what is cut."""
        row = torch.arange(len(asked.query), device=asked.query.device)
        heads = slice(None) if self.head is None else slice(self.head, self.head + 1)
        found = [shown[layer][row, heads, asked.query] for layer in self.layers]
        return reduce(torch.stack(found).double(), "layer row heads key -> row key", "mean")

    def cuts(self, keys: Keys, asked: Asked, model: Encoder) -> list[Links | None]:
        """These keys, cut from the answering queries."""
        seq, device = asked.tokens.shape[1], keys.device
        at = torch.arange(seq, device=device) == rearrange(asked.query, "row -> row 1")
        links = rearrange(keys, "row key -> row 1 1 key") & rearrange(
            at, "row query -> row 1 query 1"
        )
        if self.head is not None:
            head = torch.arange(model.dims.n_heads, device=device) == self.head
            links = links & rearrange(head, "heads -> heads 1 1")
        return [links if layer in self.layers else None for layer in range(model.dims.n_layers)]


@dataclass(frozen=True)
class Effect:
    """What a cut did to each answer; see `measure`."""

    right: Bool[Tensor, " row"]
    flipped: Bool[Tensor, " row"]
    kl: Float[Tensor, " row"]


class Bench:
    """A model and the sequences that its links are cut on."""

    def __init__(self, model: Encoder, asked: Asked) -> None:
        self.model, self.asked = model, asked
        layers = model.dims.n_layers
        with torch.no_grad():
            whole: Any = run_cut(model, asked.tokens, [None] * layers)
        self.shown: Sequence[Weights] = whole.weights
        self.answers = asked.answers(whole.logits)

    def rows(self, scope: Scope, count: int | None = None) -> Rows:
        """The links of the answering queries; by default as many are counted as are true."""
        weights, true = scope.weights(self.shown, self.asked), self.asked.true.sum(dim=-1)
        number = true if count is None else torch.full_like(true, count)
        return Rows(weights, self.asked.allowed, self.asked.true, number)

    def cut(self, keys: Keys, scope: Scope, place: Place = "before") -> Effect:
        """Cut these keys."""
        cuts = scope.cuts(keys, self.asked, self.model)
        with torch.no_grad():
            output: Any = run_cut(self.model, self.asked.tokens, cuts, place)
        found = self.asked.answers(output.logits)
        before, after = self.answers.log_softmax(dim=-1), found.log_softmax(dim=-1)
        kl = reduce(before.exp() * (before - after), "row classes -> row", "sum").clamp_min(0)
        chosen = found.argmax(dim=-1)
        return Effect(chosen == self.asked.target, chosen != self.answers.argmax(dim=-1), kl)

    def carrying(self) -> Scope:
        """The layer, and in it the head, in which cutting the true links changes most."""
        true = self.asked.true & self.asked.allowed

        def changed(scope: Scope) -> float:
            return self.cut(true, scope).kl.mean().item()

        layers = [Scope((layer,)) for layer in range(self.model.dims.n_layers)]
        layer = max(layers, key=changed)
        heads = [Scope(layer.layers, head) for head in range(self.model.dims.n_heads)]
        return max(heads, key=changed)


@dataclass(frozen=True)
class _Cut:
    """One choice of links, cut in several places and numbers; see `measure`."""

    bench: Bench
    choice: Choice
    generator: Generator
    length: int

    def carrying_layer(self, layer: Scope) -> Iterator[Measured]:
        """The main outcome, and the same cut behind the softmax."""
        keys, top = self.keys(self.choice, layer), self.keys("top", layer)
        rows = self.bench.rows(layer)
        yield from self.outcomes(keys, layer, "")
        yield self.mean("relative_mass", rows.mass(keys) / rows.mass(top))
        yield self.mean("links", keys.sum(dim=-1))
        behind = self.bench.cut(keys, layer, "after")
        yield self.mean("accuracy_after", behind.right)
        yield self.mean("kl_after", behind.kl)

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
            yield self.mean("links_by_dose", keys.sum(dim=-1), dose)

    def about_model(self, layer: Scope) -> Iterator[Measured]:
        """What the uncut model does, and where it looks."""
        asked = self.bench.asked
        yield self.mean("accuracy_uncut", self.bench.answers.argmax(dim=-1) == asked.target)
        same = self.keys("top", layer) == self.keys("true", layer)
        yield self.mean("top_is_true", same.all(dim=-1))
        yield self.mean("carrying_layer", torch.full((len(asked.query),), layer.layers[0]))

    def keys(self, choice: Choice, scope: Scope, dose: int | None = None) -> Keys:
        """The keys of a choice, by the weights of a scope."""
        return choose(choice, self.bench.rows(scope, dose), self.generator)

    def outcomes(
        self, keys: Keys, scope: Scope, suffix: str, bin: int | None = None
    ) -> Iterator[Measured]:
        """What a cut before the softmax does to the answers."""
        effect = self.bench.cut(keys, scope)
        yield self.mean(f"accuracy{suffix}", effect.right, bin)
        yield self.mean(f"kl{suffix}", effect.kl, bin)
        yield self.mean(f"flips{suffix}", effect.flipped, bin)
        yield self.mean(f"mass{suffix}", self.bench.rows(scope).mass(keys), bin)

    def mean(self, metric: str, values: Tensor, bin: int | None = None) -> Measured:
        """The mean over the sequences."""
        right = int(values.sum()) if values.dtype == torch.bool else None
        value = values.double().mean().item()
        return Measured("test", self.length, metric, len(values), value, right, bin)
