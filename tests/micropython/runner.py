"""Runs a file of tests under MicroPython and prints the results as one line of JSON."""

import builtins
import io
import json
import sys

import hypothesis
from hypothesis import arguments_of
from pytest import Skipped, as_test

from workbench import attributes, draws
from workbench.attributes import keys
from workbench.protocols.diffusion import filters

REGISTRIES = (keys._keys_by_number, keys._keys_by_name, attributes.blob_keys, filters._registered)

_zip = builtins.zip


def zip_strict(*iterables, strict=False):
    """Zip iterables, with the parameter ``strict`` of Python 3.10."""
    if not strict:
        return _zip(*iterables)
    lists = [list(iterable) for iterable in iterables]
    assert len({len(items) for items in lists}) <= 1, "zip() of different lengths"
    return _zip(*lists)


builtins.zip = zip_strict


def run(name, examples, left_out):
    """Run the tests of a module except ``left_out``, each with at most ``examples`` examples; print the results."""
    hypothesis.MOST[0] = examples
    module = __import__(name, None, None, ["__name__"])
    ran = []
    passed = 0
    skipped = {}
    failed = {}
    for test_name in sorted(dir(module)):
        if not test_name.startswith("test_") or test_name in left_out:
            continue
        ran.append(test_name)
        test = as_test(getattr(module, test_name))
        for case in test.cases():
            before = [registry.copy() for registry in REGISTRIES]
            try:
                _call(test, case)
                passed += 1
            except Skipped as reason:
                skipped[test_name] = str(reason)
            except Exception as error:
                failed["%s(%r)" % (test_name, case)] = _traceback(error)
            for registry, entries in zip(REGISTRIES, before):
                registry.clear()
                registry.update(entries)
    print(json.dumps({"ran": ran, "passed": passed, "skipped": skipped, "failed": failed}))


def _call(test, case):
    if test.why_skipped is not None:
        raise Skipped(test.why_skipped)
    if test.strategies is None:
        test.function(**case)
        return
    stream = draws.Stream(draws.make_key(1))
    for arguments in arguments_of(test, stream):
        try:
            test.function(*arguments, **case)
        except Skipped:
            raise
        except Exception:
            print("with %r" % (arguments,))
            raise


def _traceback(error):
    text = io.StringIO()
    sys.print_exception(error, text)
    return text.getvalue()
