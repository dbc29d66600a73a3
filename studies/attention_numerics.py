"""How exact is each way to compute attention, and what does it cost?

Variable: the implementation. The readable one (explicit), ours in blocks (chunked), and torch's
`scaled_dot_product_attention` with each kernel that the device offers.

Hypotheses: in float32 and in bfloat16 no implementation is less exact than the readable one by
more than two roundings; without the scale 1/√d_head the weights of wide heads collapse onto few
keys. `--describe` lists them as they are judged.

Protocol: queries, keys, values and upstream gradients are standard normal, rounded to the dtype;
every implementation is compared with the formula in float64 on the same rounded numbers, never
with another implementation. Errors are root mean squares relative to that of the reference, in
units of the roundoff of the dtype. Eight draws of the inputs take the place of seeds.

Reading: an error of 1 is what it costs to round an exact result once. Time and memory depend on
the machine; they are for comparing within one table.
"""

from functools import partial
from typing import Any

from studies.cli.command import command
from studies.experiment.hypothesis import Hypothesis, claim
from studies.experiment.study import Budget, Study

PERFORM = {"name": "studies.measurements.numerics:measure"}

ARMS: dict[str, Any] = {
    **{name: {"perform": {"attention": name}} for name in ("explicit", "chunked", "sdpa")},
    **{
        f"sdpa_{kernel}": {"perform": {"attention": "sdpa", "kernel": kernel}}
        for kernel in ("math", "flash", "efficient", "cudnn")
    },
    "unscaled": {"perform": {"attention": "explicit", "scaled": False}},
}

METRICS = {
    **{
        f"{name}_{how}": f"{size} error of the {what}, in roundings (1: rounded once)"
        for how, size in (("rms", "typical (rms)"), ("max", "largest"))
        for name, what in (
            ("forward", "output"),
            ("q_grad", "gradient of q"),
            ("k_grad", "gradient of k"),
            ("v_grad", "gradient of v"),
        )
    },
    "entropy": "entropy of the exact weights, as a share of that of even ones",
    "seconds": "seconds of a forward and backward pass, on this machine",
    "mebibytes": "MiB that tensors of a pass held at one time",
}


def panel(label: str, dtype: str, **options: Any) -> dict[str, Any]:
    """One dtype, width and size of the scores."""
    return {"label": label, "training": {"dtype": dtype}, "perform": {**PERFORM, **options}}


PANELS = [
    panel("float32", "float32"),
    panel("bfloat16", "bfloat16"),
    panel("float16", "float16"),
    panel("float32, d_head 128", "float32", d_head=128),
    panel("float32, scores x 8", "float32", logit_scale=8.0),
    panel("float32, causal", "float32", mask="causal"),
]


def claims(length: int) -> list[Hypothesis]:
    """The hypotheses at a length."""
    claimed = partial(claim, lengths=(length,))

    def alike(arm: str, where: str) -> Hypothesis:
        text = f"In {where} {arm} is as exact as the readable formula, within two roundings."
        return claimed(f"{arm} is exact in {where}", f"{arm} ≈ explicit", where, text,
                       metric="forward_rms", smallest_effect=2.0)  # fmt: skip

    return [
        *(alike(arm, "float32") for arm in ("sdpa", "chunked")),
        *(alike(arm, "bfloat16") for arm in ("sdpa", "chunked")),
        claimed("no scale, no spread", "unscaled < explicit", "float32, d_head 128",
                "Without 1/√d_head the weights of heads of width 128 collapse onto few keys.",
                metric="entropy", smallest_effect=0.3),
    ]  # fmt: skip


def settings(*lengths: int, seeds: int = 8) -> dict[str, Any]:
    """A budget: the lengths at which everything is measured."""
    return {
        "perform": PERFORM,
        "training": {"steps": 0},
        "evaluation": {"test_lengths": list(lengths)},
        "study": {
            "arms": ARMS,
            "seeds": seeds,
            "panels": PANELS,
            "hypotheses": claims(lengths[-1]),
        },
    }


STUDY = Study(
    name="attention_numerics",
    question="How exact is each way to compute attention, and what does it cost?",
    text=__doc__ or "",
    variables=("perform.attention", "perform.kernel", "perform.scaled"),
    budgets={
        "smoke": Budget(
            "seconds, to see that everything works; two draws", settings(16, 64, seeds=2)
        ),
        "quick": Budget("an answer in some minutes on two cores", settings(16, 64, 256, 512)),
        "standard": Budget("up to 2,048 tokens, half an hour", settings(64, 256, 1024, 2048)),
    },
    metrics=METRICS,
)

main = command(STUDY)

if __name__ == "__main__":
    main()
