"""The demo: directed diffusion on an office floor, its picture, and a small sweep. ``make demo`` runs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import workbench as wb
from workbench import java
from workbench.cli.lab import FIRST_NOTEBOOK, notebooks

SINK = 0
SAMPLING_S = 5.0
HEADLINES = (
    ("delivery_ratio", "of the readings with a subscription arrived", "{:.1%}"),
    ("latency_ms_p50", "ms from publish to delivery (median)", "{:.1f}"),
    ("stretch", "times the hops of the shortest path", "{:.2f}"),
    ("interest_coverage", "of the nodes heard the interest", "{:.0%}"),
    ("transmissions", "frames sent", "{:.0f}"),
    ("sent_data", "  of them data", "{:.0f}"),
    ("sent_interest", "  interests", "{:.0f}"),
    ("sent_reinforcement", "  reinforcements", "{:.0f}"),
    ("lost", "receptions lost to collisions, weak links and busy radios", "{:.0f}"),
    ("bytes_sent", "bytes sent", "{:.0f}"),
    ("energy_mJ", "mJ spent on sending and hearing them", "{:.0f}"),
)


def scenario(seed: int = 7) -> Any:
    """Return the demo's scenario: 64 motes on an office floor, and a warm spot that moves through it.

    A sink at the west end subscribes to "TEMP GE 30". The radio has collisions, carrier sense and retries of
    unacknowledged frames, as in IEEE 802.15.4. Until the sink has chosen a path by a reinforcement, each node sends
    data to two neighbors. Neighbors with a two-way loss above a half are ignored.
    """
    return wb.Scenario(
        topology=wb.topology.office(),
        protocol=wb.Diffusion(exploratory_gradients=2, blacklist_loss=0.5),
        workload=[
            wb.subscribe(at=SINK, what="TEMP GE 30", expires_s=120, start_s=1),
            wb.publish(at="all", what=wb.SensorField(), every_s=SAMPLING_S, start_s=3, stagger=True),
        ],
        radio=wb.Radio(collisions=True, csma=True, retries=3),
        duration_s=120,
        seed=seed,
    )


def sweep() -> Any:
    """Return the demo's sweep, which varies the loss above which a neighbor is ignored, and the number of retries.

    Each combination runs with six seeds.
    """
    return wb.Sweep(
        scenario(),
        over={
            "protocol.blacklist_loss": [0.3, 0.5, 0.7, 0.9, 1.0],
            "radio.retries": [0, 1, 3],
            "seed": range(6),
        },
    )


def main(out: Path, sweep: bool = True) -> None:
    """Run the demo: print its metrics, and write demo.html, demo.png, demo.svg and demo.json into the folder ``out``.

    ``sweep``: whether to run the sweep too, and show its chart on the page.
    """
    out.mkdir(parents=True, exist_ok=True)
    demo_scenario = scenario()
    name = type(demo_scenario.protocol).__name__
    print(f"{name} on an office floor: {len(demo_scenario.topology)} motes, one sink, {demo_scenario.duration_s:g} s.")
    run = demo_scenario.run()
    print_metrics(run.metrics)
    figure = run.figure()
    (out / "demo.png").write_bytes(figure.to_png())
    (out / "demo.svg").write_text(figure.to_svg(), encoding="utf-8")
    (out / "demo.json").write_text(run.scenario.to_json() + "\n", encoding="utf-8")
    sections = [sweep_chart(out)] if sweep else []
    page = run.save_html(out / "demo.html", sections)
    print()
    print(f"Open {page} in a browser: play, scrub, tap a node. {out / 'demo.png'} is the picture for a paper.")
    print("Next steps:")
    for command, description in next_steps(out):
        print(f"  {command:<32}  {description}")


def next_steps(out: Path) -> list[tuple[str, str]]:
    """Return [(command, description)] of suggested next steps. The user must call the commands in the current folder.

    ``out``: the folder with the demo's results.
    """
    command = _command_name()
    lab_description = (
        f"open the notebook {FIRST_NOTEBOOK}, the introduction"
        if notebooks()
        else "open JupyterLab, to compose and watch runs"
    )
    run_description = "run the same scenario from its file, which you can edit"
    return [(f"{command} lab", lab_description), (f"{command} run {out / 'demo.json'}", run_description)]


def _command_name() -> str:
    """Return the command by which the user can start the program `workbench`, for texts that suggest a next step.

    If the program `workbench` runs this demo, return the program's path, because its folder may not be in PATH.
    Otherwise return "workbench".
    """
    program = Path(sys.argv[0])
    if program.name != "workbench":
        return "workbench"
    try:
        return str(program.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(program)


def print_metrics(metrics: Any) -> None:
    """Print the main metrics, each with a phrase that explains it."""
    for name, meaning, number_format in HEADLINES:
        if name in metrics:
            print(f"  {number_format.format(metrics[name]):>9}  {meaning}")


def sweep_chart(out: Path) -> tuple[str, str, Any]:
    """Run the sweep, on Spark if Java is installed, and return its chart as (title, text, figure) for the page.

    ``out``: the folder in which the results are stored.
    """
    plan = sweep()
    is_on_spark = java.find_java().is_ok
    location = "on Spark" if is_on_spark else f"on this machine's cores (for Spark: {java.REMEDY})"
    print(f"\nA sweep {location}: {len(plan)} runs. What does a black list of bad neighbors gain?", flush=True)
    results = plan.run(out=out / "results", runner=wb.SparkRunner() if is_on_spark else None)
    x_column, curve_column = "protocol.blacklist_loss", "radio.retries"
    means = results.to_pandas().pivot_table(index=x_column, columns=curve_column, values="delivery_ratio")
    print(means.to_string(float_format=lambda value: f"{value:.3f}"))
    explanation = (
        "The protocol assumes symmetric links. On a floor with walls they are not: an interest may arrive over a "
        "link that cannot carry data back. Each point is the mean of six seeds with its 95 % confidence band; "
        "blacklist_loss is the two-way loss above which a neighbor is ignored; 1 ignores no neighbor."
    )
    return "What a black list gains", explanation, results.plot(x=x_column, y="delivery_ratio", by=curve_column)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("out"))
