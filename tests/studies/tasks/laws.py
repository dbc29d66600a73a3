"""What the sources say: every sequence of a task with its answers and its weight, in plain Python.

Written from the definitions, token by token, and from nothing else; weights need no normalizing.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations, product

Example = tuple[tuple[int, ...], tuple[int, ...], float]
"""Tokens, targets (one a position, or the one answer), weight."""

NONE = -100


def even_pairs(length: int) -> Iterator[Example]:
    for row in product((1, 2), repeat=length):
        changes = [pair for pair in pairwise(row) if pair in ((1, 2), (2, 1))]
        yield (*row, 3), (len(changes) % 2,), 1


def parity(length: int) -> Iterator[Example]:
    for row in product((1, 2), repeat=length):
        yield (*row, 3), (row.count(2) % 2,), 1


def reverse(length: int) -> Iterator[Example]:
    for row in product((1, 2), repeat=length):
        yield appended(row, [row[length - i] - 1 for i in range(1, length + 1)], empty=3)


def bucket_sort(length: int) -> Iterator[Example]:
    for row in product(range(1, 6), repeat=length):
        answers = [symbol - 1 for symbol in range(1, 6) for _ in range(row.count(symbol))]
        yield appended(row, answers, empty=6)


def duplicate(length: int, alphabet: int = 2, times: int = 2) -> Iterator[Example]:
    for row in product(range(1, alphabet + 1), repeat=length):
        answers = [symbol - 1 for _ in range(times) for symbol in row]
        yield appended(row, answers, empty=alphabet + 1)


def odds_first(length: int) -> Iterator[Example]:
    for row in product((1, 2), repeat=length):
        odd = [row[i] - 1 for i in range(length) if i % 2 == 1]
        even = [row[i] - 1 for i in range(length) if i % 2 == 0]
        yield appended(row, odd + even, empty=3)


def missing_duplicate(length: int, alphabet: int = 2) -> Iterator[Example]:
    hidden, filler, empty = alphabet + 1, alphabet + 2, alphabet + 3
    half = length // 2
    for string in product(range(1, alphabet + 1), repeat=half):
        for place in range(2 * half):
            row = [*string, *string]
            answer, row[place] = row[place] - 1, hidden
            yield (*row, *[filler] * (length % 2), empty), (answer,), 1


def appended(row: tuple[int, ...], answers: list[int], empty: int) -> Example:
    return (*row, *[empty] * len(answers)), (*[NONE] * len(row), *answers), 1


def stack_manipulation(length: int) -> Iterator[Example]:
    for height in range(1, max(length, 2)):
        for stack in product((0, 1), repeat=height):
            for actions in product(("pop", 0, 1), repeat=length - height):
                left = list(stack)
                for action in actions:
                    if action != "pop":
                        left.append(action)
                    elif left:
                        left.pop()
                names = {"pop": 3, 0: 4, 1: 5}
                row = (*(one + 1 for one in stack), *(names[action] for action in actions))
                yield stopped(row, left[::-1], 6, 2.0**-height * 3.0 ** (height - length))


def binary_addition(length: int) -> Iterator[Example]:
    for bits in range(1, length - 1):
        others = length - 1 - bits
        for one in range(1, 2**bits):
            for other in range(1, 2**others):
                row = [int(bit) + 1 for bit in f"{one:b}".zfill(bits)[::-1]]
                row += [3, *(int(bit) + 1 for bit in f"{other:b}".zfill(others)[::-1])]
                answer = [int(bit) for bit in f"{one + other:b}"[::-1]]
                yield stopped(tuple(row), answer, 4, 1 / (2**bits - 1) / (2**others - 1))


def stopped(row: tuple[int, ...], answer: Sequence[int], empty: int, weight: float) -> Example:
    rest = len(row) - len(answer)
    targets = (*[NONE] * len(row), *answer, 2, *[NONE] * rest)
    return (*row, *[empty] * (len(row) + 1)), targets, weight


def multi_shift(length: int, offsets: int, alphabet: int) -> Iterator[Example]:
    for row in product(range(1, alphabet + 1), repeat=length):
        answers = [
            row[i - k] - 1 if i >= k else NONE for i in range(length) for k in range(1, offsets + 1)
        ]
        yield row, tuple(answers), 1


def induction_heads(length: int, alphabet: int) -> Iterator[Example]:
    trigger = alphabet + 1
    for place in range(length - 3):
        for symbols in product(range(1, alphabet + 1), repeat=length - 2):
            row = (*symbols[:place], trigger, *symbols[place:], trigger)
            yield row, (symbols[place] - 1,), 1


def copy(length: int, alphabet: int, most: int) -> Iterator[Example]:
    marker, blank = alphabet + 1, alphabet + 2
    for number in range(1, most + 1):
        for symbols in product(range(1, alphabet + 1), repeat=number):
            row = [*symbols, marker] + [blank] * (length - number - 1)
            filled = ([*symbols, marker, *symbols] + [blank] * length)[:length]
            yield tuple(row), tuple(token - 1 for token in filled), alphabet**-number


def unique_copy(length: int, alphabet: int) -> Iterator[Example]:
    start, separator = alphabet + 1, alphabet + 2
    for string in permutations(range(1, alphabet + 1), length):
        yield written([start, *string, separator], [*string], end=alphabet)


def causal_copy(length: int, alphabet: int, form: str, times: int) -> Iterator[Example]:
    everything = range(1, alphabet + 1)
    if form == "replace":
        word = [alphabet + 1 + i for i in range(4)]
        for old, new in permutations(everything, 2):
            prompt = [word[0], old, word[1], new, word[2], *[old] * length, word[3]]
            yield written(prompt, [new] * length * times, end=alphabet)
        return
    several = form == "random" and times == 2
    divider = [alphabet + 1] * several
    word = [alphabet + several + 1, alphabet + several + 2]
    strings = product(everything, repeat=length)
    for string in strings if form == "random" else [(one,) * length for one in everything]:
        reply = [*string, *divider, *string] if times == 2 else [*string]
        yield written([word[0], *string, word[1]], reply, end=alphabet + several)


def causal_reverse(length: int, alphabet: int, then: str) -> Iterator[Example]:
    several = then != "end"
    for string in product(range(1, alphabet + 1), repeat=length):
        turned = [string[length - 1 - i] for i in range(length)]
        second = {"end": [], "again": turned, "back": [*string]}[then]
        reply = [*turned, *[alphabet + 1] * several, *second]
        prompt = [alphabet + several + 1, *string, alphabet + several + 2]
        yield written(prompt, reply, end=alphabet + several)


def written(prompt: list[int], reply: list[int], end: int) -> Example:
    targets = [*[NONE] * (len(prompt) - 1), *(token - 1 for token in reply), end]
    return (*prompt, *reply), tuple(targets), 1


def mqar(
    length: int, pairs: int, keys: int, values: int, power: float | None, filler: str
) -> Iterator[Example]:
    blank, rest = keys + values + 1, length - 2 * pairs
    slots = range(pairs) if power is None else range(0, rest - rest % 2, 2)
    for asked in permutations(range(1, keys + 1), pairs):
        free = (
            [blank] if filler == "blank" else [id for id in range(1, blank + 1) if id not in asked]
        )
        for shown in permutations(range(values), pairs):
            for places in permutations(slots, pairs):
                weight = 1.0 if power is None else drawn_in_turn(places, slots, power)
                for fillers in product(free, repeat=rest - pairs):
                    left = iter(fillers)
                    behind = dict(zip(places, asked, strict=True))
                    row = [
                        one
                        for key, value in zip(asked, shown, strict=True)
                        for one in (key, keys + 1 + value)
                    ]
                    row += [behind[i] if i in behind else next(left) for i in range(rest)]
                    answers = dict(zip(places, shown, strict=True))
                    targets = [NONE] * 2 * pairs + [answers.get(i, NONE) for i in range(rest)]
                    yield tuple(row), tuple(targets), weight


def drawn_in_turn(places: tuple[int, ...], slots: range, power: float) -> float:
    """The chance of these places in this order, each drawn by its weight among those left."""
    weights = {slot: (slot // 2 + 1) ** (power - 1) for slot in slots}
    chance = 1.0
    for place in places:
        chance *= weights[place] / sum(weights.values())
        del weights[place]
    return chance


def cycle_navigation(length: int, states: int = 5) -> Iterator[Example]:
    for row in product((1, 2, 3), repeat=length):
        state = 0
        for token in row:
            state = (state + {1: states - 1, 2: 0, 3: 1}[token]) % states
        yield (*row, 4), (state,), 1


def modular_arithmetic(length: int, modulus: int = 5) -> Iterator[Example]:
    signs = {modulus + 1: "+", modulus + 2: "-", modulus + 3: "*"}
    numbers = range(1, modulus + 1)
    odd = length if length % 2 else length - 1
    places = [numbers if i % 2 == 0 else signs for i in range(odd)]
    for row in product(*places):
        written = "".join(signs.get(token) or str(token - 1) for token in row)
        yield (*row, modulus + 4), (eval(written) % modulus,), 1


def compute_sqrt(length: int) -> Iterator[Example]:
    for number in range(1, 2**length):
        root = int(number**0.5 + 1e-9)
        row = tuple(int(bit) + 1 for bit in f"{number:b}".zfill(length))
        answers = [int(bit) for bit in f"{root:b}".zfill(-(-length // 2))]
        yield appended(row, answers, empty=3)


def binary_multiplication(length: int) -> Iterator[Example]:
    for tokens, targets, weight in binary_addition(length):
        row = tokens[:length]
        first, second = (
            int("".join(str(token - 1) for token in part[::-1]), 2)
            for part in (row[: row.index(3)], row[row.index(3) + 1 :])
        )
        answer = [int(bit) for bit in f"{first * second:b}"[::-1]] + [2]
        assert len(targets) == 2 * length + 1
        rest = [NONE] * (length - len(answer))
        yield (*row, *[4] * length), (*[NONE] * length, *answer, *rest), weight
