"""Fast twins call the rules of the nodes, so numba must compile them to functions with the same results."""

import itertools

import numba
import numpy as np
import pytest

from workbench.protocols.coded_diffusion import rules as coded_diffusion
from workbench.protocols.diffusion import rules as diffusion
from workbench.protocols.flooding import rules as flooding

# Rule -> values of each of its arguments.
ARGUMENTS = {
    flooding.hops_taken: ((1, 50), (1, 7)),
    coded_diffusion.collecting_us: ((50.0, 0.0019),),
    coded_diffusion.request_after_us: ((50000, 1),),
    coded_diffusion.keep_us: ((0, 1, 3), (50000, 1), (200000, 4)),
    coded_diffusion.forget_after_us: ((0.0, 10.0), (2, 16), (50000, 1), (0, 850000)),
    coded_diffusion.packets_to_send: ((0.1, 0.5, 1.0), (0, 1, 2, 30)),
    coded_diffusion.is_quiet: ((100, 150, 151), (100,), (50,)),
    coded_diffusion.is_full: ((9, 10), (10,), (5, 6), (5,)),
    diffusion.next_round: ((0, 255),),
    diffusion.is_older_round: ((0, 127, 128, 255), (0, 1, 255)),
    diffusion.known_for_us: ((0.0, 0.2, 30.0), (150.0, 1.9)),
    diffusion.is_path_of_round: ((-1, 0, 7), (0, 3), (0, 5), (0, 3)),
    diffusion.may_explore: ((False, True), (0, 50), (0, 1000000)),
    diffusion.lifetime_s: ((0.0, 30.0), (150.0, 1.9)),
    diffusion.expiration_s: ((0, 7), (0, 1 << 40, 1000008), (150,)),
    diffusion.has_circled: ((1, 46, 47, 48), (50,)),
    diffusion.may_retry: ((0, 2, 3, 4),),
    diffusion.is_better_hop: ((1, 2), (0, 1), (3, 5), (0, 1, 2), (0, 1), (-1, 4)),
    diffusion.hops_taken: ((50,), (1, 50)),
    diffusion.may_reinforce: ((1, 2), (0, 1, 2), (0, 10), (10,)),
    diffusion.is_black: ((False, True), (0.0, 0.5, 1.0), (0.5, 0.6), (0.75,), (0.25,)),
}


@pytest.mark.parametrize("rule", ARGUMENTS, ids=lambda rule: f"{rule.__module__.split('.')[2]}-{rule.__name__}")
def test_rule_gives_the_same_results_in_numba(rule):
    compiled = numba.njit(rule)
    for arguments in itertools.product(*ARGUMENTS[rule]):
        assert compiled(*arguments) == rule(*arguments)


def test_replaced_gradient_is_the_same_in_numba():
    compiled = numba.njit(diffusion.gradient_to_replace)
    for sinks in itertools.product(range(3), repeat=3):
        gradients = np.zeros(4, np.dtype([("neighbor", np.int32), ("sink", np.int32)])).view(np.recarray)
        gradients["sink"][:3] = sinks
        for arguments in itertools.product(range(4), (False, True)):
            assert compiled(np.asarray(gradients), 3, *arguments) == diffusion.gradient_to_replace(
                gradients, 3, *arguments
            )


def test_every_rule_is_tested_here():
    rules = {
        rule
        for module in (flooding, coded_diffusion, diffusion)
        for rule in vars(module).values()
        if getattr(rule, "__module__", None) == module.__name__
    }
    assert rules == {*ARGUMENTS, diffusion.gradient_to_replace}
