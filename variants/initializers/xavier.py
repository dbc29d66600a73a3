import torch
from torch import Tensor, nn

from variants.initializers.initializer import Initializer


class Xavier(Initializer):
    """Matrices uniform in ±√(6/(in + out)), biases 0, tables normal with variance 1/d_model.

    Token vectors so have norm about 1, and about √d_model with `embedding_scale`, as in the
    2017 encoder.

    Source: Glorot and Bengio 2010, equation 16; Vaswani et al. 2017, section 3.4
    (arXiv:1706.03762), for the scale of the embeddings.
    """

    name = "xavier"

    def matrix(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.xavier_uniform_(weight, generator=generator)

    def table(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.normal_(weight, std=self.dims.d_model**-0.5, generator=generator)
