"""Initializers: one file each; the contract is `Initializer`."""

from typing import TYPE_CHECKING

from variants.faces import face

if TYPE_CHECKING:
    from variants.initializers.initializer import Initializer as Initializer
    from variants.initializers.normal import Normal as Normal
    from variants.initializers.torch_default import TorchDefault as TorchDefault
    from variants.initializers.xavier import Xavier as Xavier

__getattr__, __dir__ = face(__name__, {"initializer": ["Initializer"]})
