"""The part of hypothesis that the tests of a mote's files use: random examples, the same in every run.

Failing examples are not shrunk; run the test with the real hypothesis on the host to examine a failure.
"""

from pytest import as_test

MOST = [100]  # the greatest number of examples per test; the runner sets it


def given(*wanted):
    """Call the test with examples of these strategies, for its arguments in order."""

    def decorate(function):
        test = as_test(function)
        test.strategies = wanted
        return test

    return decorate


def example(*arguments):
    """Call the test with these arguments too."""

    def decorate(function):
        test = as_test(function)
        test.examples.append(arguments)
        return test

    return decorate


def settings(max_examples=None):
    """Bound the number of examples that are drawn; it never exceeds MOST."""

    def decorate(function):
        test = as_test(function)
        test.max_examples = max_examples
        return test

    return decorate


def arguments_of(test, stream):
    """Yield the arguments of each call of a test: first its fixed examples, then examples drawn by its strategies."""
    for arguments in test.examples:
        yield arguments
    for _ in range(min(test.max_examples or MOST[0], MOST[0])):
        yield [strategy.draw(stream) for strategy in test.strategies]
