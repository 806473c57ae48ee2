"""As much of hypothesis as the tests of a mote's files use: examples drawn at random, the same in every run.

Nothing is shrunk: what an example fails with here is to be looked into with the real hypothesis on the host.
"""

from pytest import as_test

EXAMPLES = 40


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


def settings(max_examples=EXAMPLES):
    """Bound how many examples are drawn; there are never more than EXAMPLES."""

    def decorate(function):
        test = as_test(function)
        test.max_examples = max_examples
        return test

    return decorate


def arguments_of(test, stream):
    """The arguments of each call of a test: its own examples, then those that its strategies draw."""
    for arguments in test.examples:
        yield arguments
    for _ in range(min(test.max_examples or EXAMPLES, EXAMPLES)):
        yield [strategy.draw(stream) for strategy in test.strategies]
