"""As much of pytest as the tests of a mote's files use, to run those files as they are under MicroPython.

Functions have no attributes there, so a decorator returns a `Test` with the function in it.
"""

import re


class Skipped(Exception):
    """This test cannot run here; its message says why."""


class Test:
    """A test function, the tables it is to be called with, and the strategies it draws its arguments from."""

    def __init__(self, function):
        self.function = function
        self.why_skipped = None
        self.tables = []
        self.strategies = None
        self.examples = []
        self.max_examples = None

    def cases(self):
        """The keyword arguments of each call, all combinations of the tables' rows."""
        cases = [{}]
        for names, rows in self.tables:
            cases = [dict(list(case.items()) + list(zip(names, row))) for case in cases for row in rows]
        return cases


def as_test(function):
    """The Test of a function, be it decorated already or not."""
    return function if isinstance(function, Test) else Test(function)


class mark:
    """Marks of tests."""

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
    """The block raises one of these errors, and a part of its message matches the pattern."""

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
    """The module of this name; the test is skipped where it does not exist."""
    try:
        return __import__(name)
    except ImportError:
        raise Skipped("a mote has no %s" % name)


def skip(reason):
    """Skip this test."""
    raise Skipped(reason)
