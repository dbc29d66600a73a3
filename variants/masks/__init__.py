"""Masks: which keys each query may attend to.

>>> from variants.masks import Causal, Padding, Window
>>> mask = Causal() & Window(radius=1) & Padding(lengths=[3])
>>> print(mask.draw(4))
#...
##..
.##.
..#.

**Convention.** A mask is a boolean rule over (batch, head, query, key). True = may attend.
`dense(batch, heads, queries, keys)` gives the smallest boolean tensor that broadcasts to these
sizes; `rows` and `chunk` give some of its rows without building the others. Indices are positions
in the tensor; where a mask pads on the left, `positions`, Prefix, GlobalTokens, Blocks and
RandomBlocks count from the first real token (Window and Dilated know distances alone). Padding
masks keys, never query rows. Where there are not as many queries as keys, Causal wants to know
which ends meet: `Causal("first")` or `Causal("last")`. `CONVENTION` is the version of all this.

**Laws.** Masks are values under `&` (both allow), `|` (either allows) and `~` (does not allow);
Full allows everything. They form a boolean algebra: `&` and `|` are commutative, associative,
idempotent, absorbing, and distribute over one another; Full is the identity of `&` and absorbs
under `|`, `~Full()` the other way round; `a & ~a == ~Full()`, `a | ~a == Full()`, `~~a == a`, and
De Morgan's laws hold. `==` and `hash` follow these laws, and so does all that a mask answers:
`dense`; `keep`, which tokens are real: those of every Padding that the mask implies, as do `p & a`
and `p & a | p & b`, but not `p | a` or `~p`; `positions`. So equal masks are one and the same to an
encoder. Different ones may still allow the same cells, as `Causal()` and `Window(right=0)` do:
`testing.assert_same_mask` tells.

**Empty rows.** A query that may attend to nothing gets output 0, weights 0 and gradient 0, in every
backend and dtype, in training and evaluation, also where only a combination leaves it nothing.

**Patterns.** What papers give a name is a combination here. In a config it is an expression, such
as "window(radius=256) | global_tokens(count=1)".

=====================================  ==========================================================
causal sliding window                  Causal() & Window(left=255)
with attention sinks                   Causal() & (Window(left=255) | Prefix(4))
prefix language model                  Causal() | Prefix(n)
Sparse Transformer, strided            Causal() & (Window(left=n) | Dilated(n))
Longformer                             Window(radius=256) | GlobalTokens(1)
Longformer, dilated                    Window(radius=512) & Dilated(2) | GlobalTokens(1)
BigBird                                Blocks(64, radius=1) | GlobalTokens(128) | RandomBlocks(64)
packed documents                       Causal() & Documents(ids)
=====================================  ==========================================================

>>> from variants.masks import Blocks, GlobalTokens, RandomBlocks
>>> print((Blocks(2, radius=1) | GlobalTokens(1) | RandomBlocks(2, count=1, seed=2)).draw(12))
############
####..##....
######..##..
######..##..
#.######....
#.######....
#...########
#...########
#.....######
#.....######
#...##..####
#...##..####

**Who agrees.** Shapes are of batch, heads, queries and keys. What an empty row gets is tested with
torch 2.13 and transformers 5.24; inference is evaluation without gradients.

============================  ===============  =====================  =====================
library                       True or 1 means  to; from a mask        an empty row gets
============================  ===============  =====================  =====================
SDPA, broadcast to (b,h,q,k)  may attend       dense; Dense           0
FlexAttention, a function     may attend       mask_mod; from_rule    0
nn.MultiheadAttention and     **ignored**      to_ignore;             NaN with weights or in
nn.TransformerEncoder,                         from_ignore            inference, else 0
(q,k) or (b·h,q,k)
their key_padding_mask,       **ignored**      to_ignore_padding;     the same
(b,k)                                          from_ignore_padding
Hugging Face, (b,k) or        may attend       to_keep; from_keep     0 with "sdpa"
(b,1 or h,q,k)
floats added to the scores    0 may attend,    to_additive;           0 in SDPA, NaN in a
                              -inf may not     from_additive          bare softmax
============================  ===============  =====================  =====================

A tensor does not tell which of these it is, so each conversion is named by meaning and refuses a
dtype, rank or value that does not fit. A float that is neither 0 nor -inf (nor the least number of
its dtype) is a bias, not a mask.

**One file each.** `mask` holds the contract; a mask of your own extends Mask and overrides
`allows`, or is `Mask.from_rule(f)`. `testing` has asserts for your tests of masks and attention.
"""

from typing import TYPE_CHECKING

from variants.faces import face

if TYPE_CHECKING:
    from variants.masks.blocks import Blocks as Blocks
    from variants.masks.causal import Causal as Causal
    from variants.masks.dense import Dense as Dense
    from variants.masks.dilated import Dilated as Dilated
    from variants.masks.documents import Documents as Documents
    from variants.masks.full import Full as Full
    from variants.masks.global_tokens import GlobalTokens as GlobalTokens
    from variants.masks.mask import CONVENTION as CONVENTION
    from variants.masks.mask import Mask as Mask
    from variants.masks.mask import Sizes as Sizes
    from variants.masks.padding import Padding as Padding
    from variants.masks.prefix import Prefix as Prefix
    from variants.masks.random_blocks import RandomBlocks as RandomBlocks
    from variants.masks.window import Window as Window

__getattr__, __dir__ = face(__name__, {"mask": ["Mask", "Sizes", "CONVENTION"]})
