"""One table per kind of part, filled from the files of `variants`."""

from registry.table import Table


def _promises(*modules: str) -> tuple[str, ...]:
    return tuple(f"registry.promises.{module}" for module in modules)


OF_EVERY_PART = ("weights", "options", "documentation")
OF_ENCODERS = ("numerics", "batches", "influence", *OF_EVERY_PART, "transforms", "learning")

positions = Table(
    kind="position",
    plural="positions",
    contract="variants.positions.position:Position",
    package="variants.positions",
    about="tells the encoder where its tokens are",
    promises=_promises("positions", "ranges", *OF_ENCODERS),
)
feedforwards = Table(
    kind="feedforward",
    plural="feedforwards",
    contract="variants.feedforwards.feedforward:FeedForward",
    package="variants.feedforwards",
    about="works on each token alone",
    promises=_promises("feedforwards", *OF_ENCODERS),
)
norms = Table(
    kind="norm",
    plural="norms",
    contract="variants.norms.norm:Norm",
    package="variants.norms",
    about="brings each token's vector to a standard size",
    promises=_promises("norms", *OF_ENCODERS),
)
norm_placements = Table(
    kind="norm_placement",
    plural="norm_placements",
    contract="variants.norm_placements.norm_placement:NormPlacement",
    package="variants.norm_placements",
    about="joins a sublayer to the residual stream",
    promises=_promises("norm_placements", *OF_ENCODERS),
)
masks = Table(
    kind="mask",
    plural="masks",
    contract="variants.masks.mask:Mask",
    package="variants.masks",
    about="says which keys each query may attend to",
    not_parts=frozenset({"testing"}),
    promises=_promises("masks", "options", "documentation"),
)
attentions = Table(
    kind="attention",
    plural="attentions",
    contract="variants.attentions.attention:Attention",
    package="variants.attentions",
    about="computes attention (a backend)",
    promises=_promises("attentions", *OF_ENCODERS),
)
readouts = Table(
    kind="readout",
    plural="readouts",
    contract="variants.readouts.readout:Readout",
    package="variants.readouts",
    about="reads one vector a sequence, or one a token, from the final states",
    promises=_promises("readouts", *OF_ENCODERS),
)
initializers = Table(
    kind="initializer",
    plural="initializers",
    contract="variants.initializers.initializer:Initializer",
    package="variants.initializers",
    about="sets the weights before training",
    promises=_promises("initializers", *OF_EVERY_PART, "learning"),
)
