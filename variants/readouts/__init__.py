"""Readouts: one file each; the contract is `Readout`."""

from typing import TYPE_CHECKING

from variants.faces import face

if TYPE_CHECKING:
    from variants.readouts.first import First as First
    from variants.readouts.last import Last as Last
    from variants.readouts.max import Max as Max
    from variants.readouts.mean import Mean as Mean
    from variants.readouts.readout import Readout as Readout
    from variants.readouts.tokens import Tokens as Tokens

__getattr__, __dir__ = face(__name__, {"readout": ["Readout"]})
