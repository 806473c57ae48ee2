"""Random networks of motes of all kinds: the scenario with a number, and the kind of each node."""

import random

import workbench as wb
from workbench.motes import CORTEX_M3, MICROPYTHON, SIMULATED, C

# A program in C is compiled for its sizes, so there are few of them; all other settings come with the run.
SIZES = (
    {},
    {"profile": "strict", "max_interests": 5, "max_gradients": 4, "max_reinforcements": 4},
    {"max_interests": 2, "max_gradients": 2, "max_reinforcements": 2, "max_data": 4, "max_sinks": 1},
)
SUBSCRIPTIONS = ("TEMP GE 25", "TEMP LT 25", "HUMIDITY GE 10", "TEMP GE 20, HUMIDITY LT 50")
FILTERS = (
    ("suppress_unchanged", {"tolerance": 1.1, "heartbeat_s": 1.2}),
    ("rate_limit", {"interval_s": 0.7}),
    ("threshold_alarm", {"high": 22.5, "low": -3.25}),
    ("neighborhood_average", {"period_s": 0.9}),
    ("neighborhood_average", {"period_s": 0.9, "flush": True}),
    ("running_mean", {"window": 5}),
    ("running_minimum", {"window": 4}),
    ("running_maximum", {"of": "HUMIDITY", "window": 3}),
)
READINGS = ("TEMP IS 26", "TEMP IS 20", "TEMP IS 24.5, HUMIDITY IS 40", "HUMIDITY IS 12")


def random_filters(number, nodes):
    """Return two filters, each on some nodes or on all, if the number is odd; otherwise an empty tuple."""
    dice = random.Random(f"filters {number}")
    return tuple(
        wb.Filter(
            name,
            200 + index,
            dice.choice(["", "TEMP EQ_ANY", "TEMP GE 21"]),
            at=dice.choice(["all", "all", dice.sample(nodes, 3)]),
            messages=dice.choice(["data", "data", "data", "interest"]),
            **settings,
        )
        for index, (name, settings) in enumerate(dice.sample(FILTERS, 2 * (number % 2)))
    )


def random_flood(number):
    """Return the scenario of flooding with this number: some nodes publish, most subscribe."""
    dice = random.Random(f"flood {number}")
    graph = wb.topology.disc(dice.randint(5, 9), 40, 40, radius_m=25, seed=number)
    nodes = sorted(graph)
    workload = [wb.publish(dice.choice(nodes), reading, start_s=dice.random(), every_s=0.4) for reading in READINGS[:3]]
    for node in nodes[1:]:
        expires_s = dice.choice([None, 1.25])
        workload.append(wb.subscribe(node, dice.choice(SUBSCRIPTIONS), start_s=dice.random(), expires_s=expires_s))
    workload.append(wb.outage(dice.choice(nodes), start_s=1, stop_s=1.9))
    protocol = wb.Flooding(ttl=dice.choice([2, 255]), max_events=dice.choice([3, 20]))
    return wb.Scenario(graph, protocol, workload, radio=random_radio(dice), duration_s=4, seed=number)


def random_radio(dice):
    """Return a radio that may lose frames, let them collide, and sense the carrier first."""
    return wb.Radio(
        loss=dice.choice(["none", 0.1, 0.3]),
        collisions=dice.random() < 0.5,
        csma=dice.random() < 0.3,
        retries=dice.choice([0, 3]),
    )


def random_scenario(number):
    """Return the scenario of diffusion with this number.

    It has four to nine nodes, of which some may fail, and links that may lose frames and let them collide.
    Scenarios of odd numbers have filters.
    """
    dice = random.Random(number)
    graph = dice.choice(
        [
            lambda: wb.topology.line(dice.randint(4, 6)),
            lambda: wb.topology.grid(dice.randint(2, 3), 3),
            lambda: wb.topology.disc(dice.randint(5, 9), 40, 40, radius_m=25, seed=number),
        ]
    )()
    nodes = sorted(graph)
    ttl = 4 if "max_data" in (sizes := dice.choice(SIZES)) else dice.choice([4, 50])
    protocol = wb.Diffusion(
        **sizes,
        ttl=ttl,
        refresh_s=dice.choice([0, 0.7, 2]),
        gradient_lifetime_s=dice.choice([1.5, 3, 150]),
        tick_s=dice.choice([0.1, 1]),
        sample_lifetime_s=dice.choice([0.5, 60]),
        reinforce_after=dice.choice([0, 1, 2]),
        exploratory_gradients=dice.choice([1, 2]),
        max_repeats=dice.choice([0, 3]),
        matching={2: "two-way", 4: "strict"}.get(number % 5, "any"),
        merge_interests=number % 3 == 1,
        blacklist_loss=dice.choice([0.5, 0.75, 1]),
        filters=random_filters(number, nodes),
    )
    workload = [wb.subscribe(dice.choice(nodes), dice.choice(SUBSCRIPTIONS), start_s=dice.random())]
    workload.append(wb.publish(dice.choice(nodes), dice.choice(READINGS), start_s=1, every_s=dice.choice([0.3, 1])))
    if protocol.filters:  # which need readings
        workload.append(wb.subscribe(nodes[0], "TEMP EQ_ANY"))
        for reading in READINGS[1:3]:
            workload.append(wb.publish(nodes[-1], reading, start_s=0.6, every_s=0.3, stagger=True))
    for _ in range(dice.randrange(6)):
        start_s, node = 3 * dice.random(), dice.choice(nodes)
        workload.append(
            dice.choice(
                [
                    wb.subscribe(node, dice.choice(SUBSCRIPTIONS), start_s=start_s),
                    wb.subscribe(node, dice.choice(SUBSCRIPTIONS), start_s=start_s, expires_s=1.25),
                    wb.publish(node, dice.choice(READINGS), start_s=start_s, every_s=0.4),
                    wb.outage(node, start_s=start_s, stop_s=start_s + 0.9),
                ]
            )
        )
    if protocol.matching == "two-way":
        workload += [
            wb.subscribe(nodes[1], "TEMP GE 20, X IS 4", start_s=0.4),
            wb.publish(nodes[-1], "TEMP IS 26, X EQ 4", start_s=0.8, every_s=0.3),
            wb.publish(nodes[-2], "TEMP IS 26, X GE 5", start_s=0.9, every_s=0.5),
        ]
    return wb.Scenario(graph, protocol, workload, radio=random_radio(dice), duration_s=4, seed=number)


def random_kinds(number, nodes, kinds=(C, CORTEX_M3, MICROPYTHON, SIMULATED)):
    """Return a kind for each node; each of ``kinds`` occurs if there are enough nodes."""
    dice = random.Random(number)
    chosen = [*kinds, *dice.choices(kinds, k=len(nodes))][: len(nodes)]
    dice.shuffle(chosen)
    return dict(zip(sorted(nodes), chosen, strict=True))
