"""Strategies: what draws a value from a stream (`workbench.draws.Stream`). Named as in hypothesis."""

# Ends of ranges, emptiness and repetition find most mistakes, so they come up this often: once in so many draws.
EDGE = 4
REPEAT = 3


class Strategy:
    """Draws values with a function of the stream."""

    def __init__(self, draw):
        self.draw = draw

    def map(self, function):
        """What the function makes of a value."""
        return Strategy(lambda stream: function(self.draw(stream)))

    def filter(self, is_wanted):
        """The values that are wanted alone."""

        def draw(stream):
            for _ in range(1000):
                value = self.draw(stream)
                if is_wanted(value):
                    return value
            raise AssertionError("the filter lets hardly anything pass")

        return Strategy(draw)

    def __or__(self, other):
        return Strategy(lambda stream: (self, other)[stream.below(2)].draw(stream))


def just(value):
    return Strategy(lambda stream: value)


def sampled_from(values):
    values = list(values)
    last = [0]

    def draw(stream):
        # The same again, now and then: values that are equal find mistakes that different ones do not.
        if stream.below(REPEAT):
            last[0] = stream.below(len(values))
        return values[last[0]]

    return Strategy(draw)


def booleans():
    return sampled_from((False, True))


def integers(minimum, maximum):
    def draw(stream):
        if stream.below(EDGE) == 0:
            return (minimum, maximum)[stream.below(2)]
        return minimum + stream.bits() % (maximum - minimum + 1)

    return Strategy(draw)


def floats(minimum, maximum):
    def draw(stream):
        if stream.below(EDGE) == 0:
            return float((minimum, maximum)[stream.below(2)])
        return minimum + (maximum - minimum) * stream.uniform()

    return Strategy(draw)


def binary(max_size=20):
    return lists(integers(0, 255), max_size=max_size).map(bytes)


def text(max_size=20):
    characters = "abcXYZ019 _-+.,;\"'\n\t=<>é²µ漢"
    return lists(sampled_from(characters), max_size=max_size).map("".join)


def lists(elements, min_size=0, max_size=10, unique=False):
    def draw(stream):
        size = 0 if min_size == 0 and stream.below(EDGE) == 0 else min_size + stream.below(max_size - min_size + 1)
        values = []
        for _ in range(1000):
            if len(values) == size:
                break
            value = elements.draw(stream)
            if not unique or value not in values:
                values.append(value)
        return values if len(values) >= min_size else draw(stream)

    return Strategy(draw)


def tuples(*elements):
    return Strategy(lambda stream: tuple([element.draw(stream) for element in elements]))


def permutations(values):
    def draw(stream):
        left = list(values)
        return [left.pop(stream.below(len(left))) for _ in range(len(left))]

    return Strategy(draw)


def builds(make, *arguments, **named):
    return Strategy(
        lambda stream: make(
            *[argument.draw(stream) for argument in arguments],
            **{name: argument.draw(stream) for name, argument in named.items()},
        )
    )


def composite(function):
    """A strategy made of a function that is given ``draw``."""

    def make(*arguments):
        return Strategy(lambda stream: function(lambda strategy: strategy.draw(stream), *arguments))

    return make


class Drawing:
    """Draws in the middle of a test."""

    def __init__(self, stream):
        self.stream = stream

    def draw(self, strategy):
        return strategy.draw(self.stream)


def data():
    return Strategy(Drawing)


class Random:
    """Python's random numbers, as far as tests use them."""

    def __init__(self, stream):
        self.randrange = stream.below


def randoms(use_true_random=False):
    return Strategy(Random)
