"""Does adding heads help at a fixed number of parameters, and what if each gets narrow?

Variable: the number of heads, at a fixed width (so that d_head falls) and at a fixed d_head (so
that parameters grow).

Hypotheses: more heads help where several links are needed at once, and only there: the claim is an
interaction of heads and links. Heads as narrow as one component learn slowly and realize few
attention patterns. `--describe` lists them as they are judged.

Protocol: `multi_shift` asks every position for the tokens at its last offsets at once, so that
one head with one link is not enough; `mqar` under a causal mask asks for the values of
several keys. Learned positions, a fixed length, and the learning rate tuned for each number of
heads. `rank` fits one head of each width to random attention patterns over 16 tokens.

Reading: learning speed and final skill are told apart. `steps_to_fit` is the first look at which
99 % of the answers are right; a run that never fits within its steps is censored there. Most
effects of heads shrink with more steps. ALiBi's slopes follow from the number of heads
unless one number holds them fixed, as in `--set encoder.position='{name: alibi, slopes: 0.25}'`.

Sources: Vaswani et al. 2017 (arXiv:1706.03762); Bhojanapalli et al. 2020 (arXiv:2002.07028).
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from studies.cli.command import command
from studies.experiment.hypothesis import claim
from studies.experiment.study import Budget, Study

if TYPE_CHECKING:
    from studies.experiment.arms import Arm
    from studies.experiment.settings import Settings

WIDTH, D_HEAD, LENGTH, PAIRS = 64, 16, 16, 4

TABLE = {"name": "learned", "max_length": LENGTH}
"""Learned positions with a row for each index."""

ENCODER = {
    "d_model": WIDTH,
    "n_layers": 1,
    "position": TABLE,
    "feedforward": {"name": "gelu", "d_ff": 4 * WIDTH},
    "norm_placement": "pre",
    "initializer": "torch_default",
    "embedding_scale": False,
}

OFFSETS, FIXED, RECALL, RANK = "several offsets", f"heads of {D_HEAD}", "recall", "rank"


def some(noun: str, count: int) -> str:
    """The name of an arm or level of so many, such as "1 head" or "8 links"."""
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


heads, links = partial(some, "head"), partial(some, "link")


def arms(counts: Sequence[int], fixed: Sequence[int]) -> dict[str, Any]:
    """Heads at the fixed width, then heads at the fixed d_head."""
    return {
        **{heads(one): {"encoder.n_heads": one} for one in counts},
        **{
            f"{heads(one)} of {D_HEAD}": {"encoder.n_heads": one, "encoder.d_head": D_HEAD}
            for one in fixed
        },
    }


def panels(
    counts: Sequence[int], needed: Sequence[int], fixed: Sequence[int], steps: int, recall: int
) -> list[dict[str, Any]]:
    """The tasks, each with the arms that it is for."""
    several = {"name": "multi_shift", "offsets": 4, "alphabet": 16}
    mqar = {"name": "mqar", "pairs": PAIRS, "keys": 16, "values": 16, "power": None,
            "filler": "blank"}  # fmt: skip
    at_width = [heads(one) for one in counts]
    return [
        {"label": OFFSETS, "task": several, "steps": steps,
         "arms": [f"{heads(h)} × {links(n)}" for h in counts for n in needed]},
        {"label": FIXED, "task": several, "steps": steps,
         "arms": [f"{heads(one)} of {D_HEAD}" for one in fixed]},
        {"label": RECALL, "task": mqar, "steps": recall, "arms": at_width,
         "encoder": {"n_layers": 2, "mask": "causal",
                     "position": {**TABLE, "max_length": 3 * PAIRS}},
         "training": {"train_lengths": [3 * PAIRS, 3 * PAIRS]},
         "evaluation": {"test_lengths": [3 * PAIRS]}},
        {"label": RANK, "arms": at_width, "training": {"steps": 0, "until": None},
         "perform": {"name": "studies.measurements.rank_bottleneck:measure"}},
    ]  # fmt: skip


claimed = partial(claim, lengths=(LENGTH,))

PRIMARY = [
    claimed("heads serve links", "4 heads × 8 links > 1 head × 8 links", OFFSETS,
          "Four heads help more against one where eight links are needed than where one is.",
          than=("4 heads × 1 link", "1 head × 1 link")),
    claimed("one link, one head", "4 heads × 1 link ≈ 1 head × 1 link", OFFSETS,
          "Where one link is needed, more heads change nothing in the end."),
    claimed("a head can be too narrow", f"{WIDTH} heads × 8 links < 4 heads × 8 links", OFFSETS,
          "With as many heads as components, the same parameters learn less in the same steps."),
    claimed("narrow heads are slow", f"{WIDTH} heads × 1 link > 1 head × 1 link", OFFSETS,
          "Even one link takes heads of one component more steps.",
          metric="steps_to_fit", smallest_effect=20.0),
    claimed("heads at a fixed d_head", f"8 heads of {D_HEAD} > 1 head of {D_HEAD}", FIXED,
          "More heads of the same width help where four links are needed."),
    claimed("rank", f"{heads(WIDTH)} > 4 heads", RANK,
          "A head of one component cannot realize patterns that one of 16 can.", metric="error"),
]  # fmt: skip

EXPLORED = [
    claimed("recall needs wide heads", f"{heads(WIDTH)} < 4 heads", RECALL,
          "Heads of one component recall less in the same steps.", lengths=(3 * PAIRS,)),
    claimed("recall needs one head", "4 heads ≈ 1 head", RECALL,
          "One head recalls as well as four.", lengths=(3 * PAIRS,)),
]  # fmt: skip


def settings(
    counts: Sequence[int],
    needed: Sequence[int],
    fixed: Sequence[int],
    steps: int,
    recall: int,
    seeds: int,
    examples: int,
    rates: Sequence[float] = (3e-3, 1e-2, 3e-2, 1e-1),
) -> dict[str, Any]:
    """A budget: `counts` of heads at the fixed width, `needed` links, `fixed` heads at the fixed
    d_head; training steps on several offsets and on recall; final seeds and tested sequences.
    """
    return {
        "encoder": ENCODER,
        "training": {
            "train_lengths": [LENGTH, LENGTH],
            "warmup_steps": 20,
            "until": {"metric": "accuracy", "value": 0.99, "stop": False, "every": 10,
                      "examples": 32},
        },
        "evaluation": {"test_lengths": [LENGTH], "examples": examples},
        "study": {
            "factors": {
                "encoder.n_heads": {heads(one): one for one in counts},
                "task.offsets": {links(one): one for one in needed},
            },
            "arms": arms(counts, fixed),
            # More links are more answers, and so more logits.
            "also_differs": ["encoder.n_classes"],
            "seeds": seeds,
            "learning_rates": list(rates),
            "panels": panels(counts, needed, fixed, steps, recall),
            "hypotheses": PRIMARY,
            "explored": EXPLORED,
        },
    }  # fmt: skip


def remark(arm: "Arm", settings: "Settings") -> str:
    """What must be said beside the results of an arm: whether ALiBi's slopes moved with it."""
    position: Any = settings.encoder.get("position")
    chosen = position if isinstance(position, dict) else {"name": position}
    if chosen.get("name") != "alibi" or not isinstance(chosen.get("slopes", "paper"), str):
        return ""
    return "(Its ALiBi slopes follow from its number of heads.)"


STUDY = Study(
    name="head_count",
    question="Does adding heads help at a fixed parameter count, and what if each gets narrow?",
    text=__doc__ or "",
    variables=("encoder.n_heads", "encoder.d_head"),
    budgets={
        "smoke": Budget.smoke(
            settings((1, 4, 64), (1, 8), (1, 8), 4, 4, 2, 16, rates=(1e-2,))
        ),
        "quick": Budget(
            "an answer in some minutes on two cores",
            settings((1, 4, 64), (1, 8), (1, 8), 200, 200, 5, 256),
        ),
        "standard": Budget(
            "1 to 64 heads and 1 to 8 links, some hours on two cores",
            settings(
                (1, 2, 4, 8, 16, 32, 64), (1, 2, 4, 8), (1, 2, 4, 8, 16), 450, 300, 8, 512,
                rates=(1e-3, 3e-3, 1e-2, 3e-2, 1e-1),
            ),
        ),
    },
    remark=remark,
)  # fmt: skip

main = command(STUDY)

if __name__ == "__main__":
    main()
