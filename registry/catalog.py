"""One table per kind of part, filled from the files of `variants`."""

from registry.table import Table

positions = Table(
    kind="position",
    plural="positions",
    contract="variants.positions.position:Position",
    package="variants.positions",
    about="tells the encoder where its tokens are",
)
feedforwards = Table(
    kind="feedforward",
    plural="feedforwards",
    contract="variants.feedforwards.feedforward:FeedForward",
    package="variants.feedforwards",
    about="works on each token alone",
)
norms = Table(
    kind="norm",
    plural="norms",
    contract="variants.norms.norm:Norm",
    package="variants.norms",
    about="brings each token's vector to a standard size",
)
norm_placements = Table(
    kind="norm_placement",
    plural="norm_placements",
    contract="variants.norm_placements.norm_placement:NormPlacement",
    package="variants.norm_placements",
    about="joins a sublayer to the residual stream",
)
masks = Table(
    kind="mask",
    plural="masks",
    contract="variants.masks.mask:Mask",
    package="variants.masks",
    about="says which keys each query may attend to",
    not_parts=frozenset({"testing"}),
)
attentions = Table(
    kind="attention",
    plural="attentions",
    contract="variants.attentions.attention:Attention",
    package="variants.attentions",
    about="computes attention (a backend)",
)
readouts = Table(
    kind="readout",
    plural="readouts",
    contract="variants.readouts.readout:Readout",
    package="variants.readouts",
    about="reads one vector a sequence, or one a token, from the final states",
)
initializers = Table(
    kind="initializer",
    plural="initializers",
    contract="variants.initializers.initializer:Initializer",
    package="variants.initializers",
    about="sets the weights before training",
)
