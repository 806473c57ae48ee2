"""Strategies, which draw values from a stream (`workbench.draws.Stream`); they are named as in hypothesis."""

# Ends of ranges, empty values and repetitions find most mistakes: each occurs once in this many draws.
EDGE = 4
REPEAT = 3


class Strategy:
    """A strategy: a function that draws a value from a stream."""

    def __init__(self, draw):
        self.draw = draw

    def map(self, function):
        """Return a strategy that applies the function to each drawn value."""
        return Strategy(lambda stream: function(self.draw(stream)))

    def filter(self, is_wanted):
        """Return a strategy that draws only values for which ``is_wanted`` holds."""

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
        # Repeat a value now and then: equal values find mistakes that different values do not.
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
    """Return a function that makes a strategy, which calls ``function`` with ``draw`` as its first argument."""

    def make(*arguments):
        return Strategy(lambda stream: function(lambda strategy: strategy.draw(stream), *arguments))

    return make


class Drawing:
    """A source of values within a test."""

    def __init__(self, stream):
        self.stream = stream

    def draw(self, strategy):
        return strategy.draw(self.stream)


def data():
    return Strategy(Drawing)


class Random:
    """The methods of `random.Random` that tests use."""

    def __init__(self, stream):
        self.randrange = stream.below


def randoms(use_true_random=False):
    return Strategy(Random)
