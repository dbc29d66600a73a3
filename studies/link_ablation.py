"""Do attention weights say what matters?

Variable: which links are cut from a query that answers. A link is one key that the query may use.
The true links are those that the task says its answer needs; the top ones have the largest
weights; random ones are as many, or (mass) as many as hold the same weight; keep cuts all others.

Hypotheses: in the layer that carries them, cutting the true links destroys accuracy where a random
set of the same weight does not; nothing but the true links is needed. `--describe` lists them as
they are judged.

Protocol: one model a replicate is trained on each task, and every choice is cut from the same one,
on the same test sequences, one query each. The layer that carries the true links differs from seed
to seed: it is the one in which cutting them changes the answers most, on sequences apart. Cuts are
made before the softmax, so the other weights rise; `_after` leaves those as they are. Random
links are never true ones, nor among the largest. An untrained model of the same seed is a control.

Reading: beside each effect stands the weight that was cut, `mass`, and `relative_mass`, the same as
a share of what the largest links hold: where these hold nearly all of it, no random set can match
them, and the comparison is with what it reached. That cutting changes an answer does not say that
the link is needed, since a query is left with weights that it never had in training; `keep` asks
what is enough. Source: Serrano and Smith 2019 (arXiv:1906.03731), whose text has no true links.
"""

from typing import TYPE_CHECKING, Any

from studies.cli.command import command
from studies.experiment.hypothesis import Hypothesis, claim
from studies.experiment.study import Budget, Study
from studies.extrapolation import QUICK, SHIFT, complete

if TYPE_CHECKING:
    from studies.experiment.arms import Arm
    from studies.experiment.settings import Settings

ARMS: dict[str, Any] = {
    **{
        choice.replace("_", " "): {"perform.choice": choice}
        for choice in (
            "nothing", "true", "top", "random", "mass", "keep_true", "keep_top", "keep_random",
        )
    },
    **{
        f"untrained {choice}": {"perform.choice": choice, "training.steps": 0}
        for choice in ("nothing", "true", "top", "mass")
    },
}  # fmt: skip

METRICS = {
    "accuracy": "accuracy after a cut in the layer that carries the true links",
    "kl": "change of the answer there: KL divergence in nats",
    "flips": "share of answers that change",
    "mass": "weight that was cut",
    "relative_mass": "weight that was cut, as a share of what the largest links hold",
    "links": "links that were cut",
    "accuracy_after": "accuracy where weights are cut behind the softmax and not renormalized",
    "accuracy_head": "accuracy after a cut in the head that carries the true links",
    "accuracy_all": "accuracy after a cut in every layer at once",
    "kl_all": "change of the answer there",
    "accuracy_uncut": "accuracy without a cut",
    "top_is_true": "share of queries whose largest links are the true ones",
    "carrying_layer": "the layer that carries the true links",
    "accuracy_by_layer": "accuracy after a cut in one layer, by layer",
    "accuracy_by_dose": "accuracy after a cut of so many links",
    "kl_by_dose": "change of the answer there",
    "mass_by_dose": "weight that was cut",
}


def panel(label: str, task: Any, position: str, steps: int, **more: Any) -> dict[str, Any]:
    """One task with an encoder that learns it."""
    encoder = {"position": position, **more.pop("encoder", {})}
    return {"label": label, "task": task, "steps": steps, "encoder": encoder, **more}


WIDE = {"d_model": 64, "feedforward": {"name": "gelu", "d_ff": 256}}
CAUSAL = {"mask": "causal"}

PANELS = [
    panel("shift, rope", SHIFT, "rope", 400),
    panel("shift, learned", SHIFT, "learned", 400),
    panel("previous occurrence", {"name": "previous_occurrence"}, "rope", 600, encoder=CAUSAL),
    panel("first and last", {"name": "first_last_match", "alphabet": 2, "answer_at": "prepended"},
          "learned", 1500, encoder=WIDE, training={"learning_rate": 1e-3}),
    panel("recall", {"name": "mqar", "pairs": 8, "keys": 16, "values": 16, "power": None},
          "learned", 300, encoder={**WIDE, **CAUSAL}, training={"train_lengths": [24, 24]},
          evaluation={"test_lengths": [24]}),
]  # fmt: skip


def claims(where: str) -> list[Hypothesis]:
    """What is claimed on a panel: the primary hypothesis first, then those that are explored."""

    def claimed(name: str, contrast: str, text: str, **other: Any) -> Hypothesis:
        lengths = (24 if where == "recall" else 16,)
        options = {"metric": "accuracy", "lengths": lengths, **other}
        return claim(f"{name}: {where}", contrast, where, text, **options)

    return [
        claimed("true against mass", "true < mass",
                "Cutting the true links destroys accuracy as cutting the same weight does not.",
                smallest_effect=0.2),
        claimed("mass", "mass ≈ nothing", "Cutting as much weight elsewhere changes nothing."),
        claimed("top against mass", "top < mass", "Cutting the largest links does more than "
                "cutting the same weight elsewhere.", smallest_effect=0.2),
        claimed("top against true", "top ≈ true", "The largest links matter as the true ones do."),
        claimed("true is enough", "keep true ≈ nothing",
                "In every layer at once the true links alone are enough.", metric="accuracy_all"),
        claimed("untrained", "untrained true ≈ untrained nothing",
                "In an untrained model no link matters.", metric="kl", smallest_effect=0.05),
    ]  # fmt: skip


def settings(panels: list[dict[str, Any]], seeds: int, examples: int) -> dict[str, Any]:
    """A budget."""
    claimed = [claims(one["label"]) for one in panels]
    return {
        "encoder": QUICK["encoder"],
        "perform": "studies.links.effects:measure",
        "training": {"learning_rate": 3e-3, "warmup_steps": 50, "train_lengths": [2, 16]},
        "evaluation": {"test_lengths": [16], "examples": examples},
        "study": {
            "arms": ARMS,
            "seeds": seeds,
            "panels": panels,
            "hypotheses": [primary for primary, *_ in claimed],
            "explored": [one for _, *explored in claimed for one in explored],
        },
    }


def remark(arm: "Arm", settings: "Settings") -> str:
    """What must be said beside the results of a control matched in weight."""
    if arm.overlay is None or arm.over(STUDY.variables)["perform"]["choice"] != "mass":
        return ""
    return (
        "(Where all others together hold less weight than the largest links, all of them are cut; "
        "relative_mass is the share of that weight that was reached, 1 where it is matched.)"
    )


STUDY = Study(
    name="link_ablation",
    question="Do attention weights say what matters?",
    text=__doc__ or "",
    variables=("perform.choice", "training.steps"),
    budgets={
        "smoke": Budget.smoke(settings([{**PANELS[0], "steps": 20}], seeds=2, examples=32)),
        "quick": Budget(
            "five tasks, an answer in some minutes on two cores", settings(PANELS, 6, 256)
        ),
        "standard": Budget("the same with 16 seeds and more sequences", settings(PANELS, 16, 2048)),
    },
    complete=complete,
    metrics=METRICS,
    beside=("relative_mass", "accuracy_uncut"),
    remark=remark,
)

main = command(STUDY)

if __name__ == "__main__":
    main()
