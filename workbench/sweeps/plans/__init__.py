"""Plans: which points a sweep has. ``wb.Sweep(scenario, over=plan)`` runs one; a mapping is short for its grid.

    grid(over)                            all combinations of the values
    points([...])                         a list of points, or the rows of a frame
    zipped(over)                          values in step: the first of each, then the second of each
    random(n, over)                       n points drawn at random
    latin_hypercube(n, over), sobol(n, over)   the same, spread more evenly
    between(0.0, 0.3), whole(3, 12)       what a parameter is drawn from; a list is drawn from as it is
    seeds(30)                             the seeds 1 to 30
    paired_seeds(30, topology=...)        the same, with a network and a workload of its own for each seed
    a * b, a | b, a - b                   each point of a with each of b; the points of both; those of a without b's

Three plans go by the results as they come. They are made with the scenario, and ``run(out=folder)`` of them goes on in
the same folder after a stop, as a sweep's does:

    adaptive(scenario, over, ...)         more seeds, until the 95 % band of a metric is narrow enough
    sensitivity(scenario, over, ...)      which parameters matter (Morris, Sobol), and the chart of it
    search(scenario, over, ...)           a parameter's best value under a constraint

``paired_differences(table, ...)`` compares protocols seed by seed, on the same networks.

Theory of operation
    What users call a plan is a `Design` here: it has paths, as `Scenario.replace` takes them, and for the number of a
    point their values. (`Plan` of workbench/sweeps/plan.py is what a worker needs to run one: a design with the base
    scenario, the engine and the measure.) It is lazy. A crossed plan keeps its two parts and not their combinations;
    what was drawn is kept as an array of numbers in the unit cube, so that workers have the points that the driver
    has, whatever their libraries.

        >>> import workbench as wb
        >>> ttl_and_loss = wb.plans.latin_hypercube(50, {"protocol.ttl": wb.plans.whole(3, 12),
        ...                                              "radio.loss": wb.plans.between(0.0, 0.3)})
        >>> len(ttl_and_loss * wb.plans.seeds(10))
        500

References
    M. McKay, R. Beckman, W. Conover: A comparison of three methods for selecting values of input variables in the
    analysis of output from a computer code, Technometrics 21(2), 1979 (Latin hypercubes); I. Sobol: On the distribution
    of points in a cube and the approximate evaluation of integrals, USSR Computational Mathematics 7(4), 1967;
    A. Law: Simulation modeling and analysis, 5th edition, 2015 (paired seeds, there common random numbers; sequences of
    runs until an interval is narrow enough).
"""

# ruff: noqa: F401
from workbench.keywords import answer_for, imported_names
from workbench.sweeps.design import grid
from workbench.sweeps.plans.adaptive import Adaptive, adaptive
from workbench.sweeps.plans.domains import between, whole
from workbench.sweeps.plans.listed import points, zipped
from workbench.sweeps.plans.paired import paired_differences, paired_seeds, seeds
from workbench.sweeps.plans.sampled import latin_hypercube, random, sobol
from workbench.sweeps.plans.search import Search, SearchResult, search
from workbench.sweeps.plans.sensitivity import Sensitivity, SensitivityResult, sensitivity

__all__ = imported_names(__name__)

answer_for(__name__)
