"""Plans: the points of a sweep, each a combination of parameter values.

``wb.Sweep(scenario, over=plan)`` runs a plan; a mapping {path: values} means ``grid(mapping)``.

    grid(over)                            all combinations of the values
    points([...])                         a list of points, or the rows of a DataFrame
    zipped(over)                          parallel lists: the first value of each list, then the second of each
    random(n, over)                       n points drawn at random
    latin_hypercube(n, over), sobol(n, over)   n points, spread more evenly
    between(0.0, 0.3), whole(3, 12)       ranges from which a parameter is drawn; a list of values is also allowed
    seeds(30)                             the seeds 1 to 30
    paired_seeds(30, topology=...)        the seeds 1 to 30, each with its own network and workload
    a * b                                 each point of a combined with each point of b
    a | b                                 the points of a and the points of b
    a - b                                 the points of a that are not points of b

Three functions take the scenario and return an object whose method `run` runs the points and evaluates the results.
After an interruption ``run(out=folder)`` continues in the same folder, as for a sweep:

    adaptive(scenario, over, ...)         more seeds, until the 95 % band of a metric is narrow enough
    sensitivity(scenario, over, ...)      the effects of parameters (Morris, Sobol), and a chart of them
    search(scenario, over, ...)           the best values of parameters under constraints

``paired_differences(table, ...)`` compares protocols seed by seed, on the same networks; `wb.compare` runs such a
comparison. These functions compute necessary numbers of runs, and statistics without an assumed distribution:

    runs_needed(90)                       the fewest runs whose largest value bounds the 90th percentile: 29
    percentile_bounds(values, 50)         a confidence interval of the median
    pairs_needed(differences)             the seeds needed for a confidence interval of the difference without 0
    trend(times, values), converged(...)  Theil-Sen slope; the warm-up after which a series is steady

Theory of operation
    In the code a plan is a `Design`. It has paths, as for `Scenario.replace`, and maps the number of a point (its
    index, from 0) to the values of these paths. (`Plan` in workbench/sweeps/plan.py is a design with the base scenario,
    the engine and the measure.) A product of two plans stores the two plans, not their combinations. Drawn
    points are stored as an array of numbers, so that workers with other versions of libraries use the same points.

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
from workbench.sweeps.percentiles import converged, pairs_needed, percentile_bounds, runs_needed, trend
from workbench.sweeps.plans.adaptive import Adaptive, adaptive
from workbench.sweeps.plans.domains import between, whole
from workbench.sweeps.plans.listed import points, zipped
from workbench.sweeps.plans.paired import paired_differences, paired_seeds, seeds
from workbench.sweeps.plans.sampled import latin_hypercube, random, sobol
from workbench.sweeps.plans.search import Search, SearchResult, search
from workbench.sweeps.plans.sensitivity import Sensitivity, SensitivityResult, sensitivity

__all__ = imported_names(__name__)

answer_for(__name__)
