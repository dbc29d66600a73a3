"""A model whose links are cut from queries that answer, and what the cut does to the answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from einops import rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor

from studies.links.choices import Keys, Rows
from studies.links.cutting import Links, Place, run_cut
from studies.tasks.task import Task
from variants.encoder import Encoder

Logits = Float[Tensor, "row classes"]


@dataclass(frozen=True)
class Asked:
    """Sequences, one answering query of each, and what it would need."""

    tokens: Int[Tensor, "row seq"]
    query: Int[Tensor, " row"]
    target: Int[Tensor, " row"]
    true: Keys
    allowed: Keys

    def answers(self, logits: Tensor) -> Logits:
        """The logits of the answering queries, in float64."""
        if logits.ndim == 2:
            return logits.double()
        index = repeat(self.query, "row -> row 1 classes", classes=logits.shape[-1])
        return rearrange(logits.gather(1, index), "row 1 classes -> row classes").double()


def ask(task: Task, model: Encoder, generator: torch.Generator, number: int, length: int) -> Asked:
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

    def weights(
        self, shown: Sequence[Float[Tensor, "row heads query key"]], asked: Asked
    ) -> Float[Tensor, "row key"]:
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
            whole = run_cut(model, asked.tokens, [None] * layers)
        self.shown: Any = whole.weights
        self.answers = asked.answers(_logits(whole))

    def rows(self, scope: Scope, count: int | None = None) -> Rows:
        """The links of the answering queries; by default as many are counted as are true."""
        weights, true = scope.weights(self.shown, self.asked), self.asked.true.sum(dim=-1)
        number = true if count is None else torch.full_like(true, count)
        return Rows(weights, self.asked.allowed, self.asked.true, number)

    def cut(self, keys: Keys, scope: Scope, place: Place = "before") -> Effect:
        """Cut these keys."""
        cuts = scope.cuts(keys, self.asked, self.model)
        with torch.no_grad():
            found = self.asked.answers(_logits(run_cut(self.model, self.asked.tokens, cuts, place)))
        before, after = self.answers.log_softmax(dim=-1), found.log_softmax(dim=-1)
        kl = reduce(before.exp() * (before - after), "row classes -> row", "sum").clamp_min(0)
        chosen = found.argmax(dim=-1)
        return Effect(chosen == self.asked.target, chosen != self.answers.argmax(dim=-1), kl)

    def carrying(self) -> Scope:
        """The layer, and in it the head, in which cutting the true links changes most."""
        true = self.asked.true & self.asked.allowed
        layers = [Scope((layer,)) for layer in range(self.model.dims.n_layers)]
        layer = max(layers, key=lambda scope: self._changed(true, scope))
        heads = [Scope(layer.layers, head) for head in range(self.model.dims.n_heads)]
        return max(heads, key=lambda scope: self._changed(true, scope))

    def _changed(self, keys: Keys, scope: Scope) -> float:
        return self.cut(keys, scope).kl.mean().item()


def _logits(output: Any) -> Tensor:
    return output.logits
