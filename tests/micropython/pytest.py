"""The part of pytest that the tests of a mote's files use, so that these tests run unchanged under MicroPython.

Functions have no attributes in MicroPython, so a decorator returns a `Test` that holds the function.
"""

import re


class Skipped(Exception):
    """The reason why a test cannot run here, as an exception."""


class Test:
    """A test function with its tables of arguments and the strategies that draw its other arguments."""

    def __init__(self, function):
        self.function = function
        self.why_skipped = None
        self.tables = []
        self.strategies = None
        self.examples = []
        self.max_examples = None

    def cases(self):
        """Return the keyword arguments of each call: all combinations of the tables' rows."""
        cases = [{}]
        for names, rows in self.tables:
            cases = [dict(list(case.items()) + list(zip(names, row))) for case in cases for row in rows]
        return cases


def as_test(function):
    """Return a function as a `Test`, or an existing `Test` unchanged."""
    return function if isinstance(function, Test) else Test(function)


class mark:
    """The marks of tests, as in pytest."""

    @staticmethod
    def parametrize(names, rows, ids=None):
        """Call the test with each of these rows."""
        single = isinstance(names, str)
        table = [(row,) if single else row for row in rows]

        def decorate(function):
            test = as_test(function)
            test.tables.append(((names,) if single else names, table))
            return test

        return decorate

    @staticmethod
    def skipif(condition, reason):
        """Skip the test if the condition holds."""

        def decorate(function):
            test = as_test(function)
            if condition:
                test.why_skipped = reason
            return test

        return decorate


class raises:
    """A context whose block must raise one of these errors, with a message that matches the pattern."""

    def __init__(self, expected, match=None):
        self.expected = expected
        self.match = match
        self.value = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None:
            raise AssertionError("nothing was raised; %r was expected" % (self.expected,))
        if not isinstance(error, self.expected):
            return False
        self.value = error
        if self.match is not None and not re.search(self.match, str(error)):
            raise AssertionError("%r does not match %r" % (str(error), self.match))
        return True


def importorskip(name):
    """Return the module of this name, or skip the test if the module does not exist."""
    try:
        return __import__(name)
    except ImportError:
        raise Skipped("a mote has no %s" % name)


def skip(reason):
    """Skip this test."""
    raise Skipped(reason)
