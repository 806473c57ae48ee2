"""Files with movements: BonnMotion, ns-2 and Cooja.

Each reader returns {node: `Waypoints`}. Times are rounded to 1 µs and positions to 0.1 mm. If the first waypoint of a
node is later than time 0, a waypoint with the same position is added at time 0. So the node's position in the topology
has no effect.

A file that does not follow its format raises a DataError with the file's name, the line and the form that the line must
have. A file may have at most 100 MB, decompressed, and a million waypoints.

Reference
    N. Aschenbruck et al.: BonnMotion: a mobility scenario generation and analysis tool, SIMUTools 2010;
    K. Fall, K. Varadhan (eds.): The ns manual, chapter "Mobile networking in ns" (``setdest``);
    the plug-in Mobility of Contiki's simulator Cooja, org.contikios.cooja.plugins.Mobility.
"""

import gzip
import math
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workbench.errors import DataError, ParameterError
from workbench.mobility.models import MOST_WAYPOINTS, Waypoints
from workbench.mobility.tracks import LONGEST_S, Track
from workbench.topology.graphs import LARGEST_COORDINATE_M, LARGEST_NODE, round_positions, whole

LARGEST_FILE_B = 100_000_000  # of text; a file of compressed zeros would otherwise fill the memory

_GZIP = b"\x1f\x8b"
_LONGEST_US = round(LONGEST_S * 1e6)
_NODE = re.compile(r"\\?\$node_?\(([0-9]{1,10})\)")
_OTHER_COMMANDS = {"$god_", "\\$god_", "set", "create-god"}  # of ns-2: distances in hops, variables of Tcl
_COORDINATES = {"X_": 0, "Y_": 1}


class _Line(NamedTuple):
    """A line of a file without its line end, and its location for messages."""

    location: str
    text: str


def read_bonnmotion(path: str | os.PathLike[str], nodes: Sequence[int] | None = None) -> dict[int, Waypoints]:
    """Return {node: path} from a file of BonnMotion, plain or compressed (``.movements.gz``).

    Each line has the waypoints of a node, "time x y time x y ...", in s and m. Blank lines and lines that begin with
    "#" are omitted. ``nodes`` lists the node of each line; by default the nodes are 0, 1, 2, ... A node is at its first
    waypoint from time 0 on, as in BonnMotion. Files with a third coordinate are not supported.

    Raises DataError for a file in another format, and ParameterError unless ``nodes`` has a different node for each
    line.
    """
    file_name, text = _read_text(path)
    lines = list(_split_lines(file_name, text))
    node_numbers = _check_nodes(nodes, len(lines), file_name)
    remaining_count = MOST_WAYPOINTS
    waypoints_of_node: dict[int, Waypoints] = {}
    for node, line in zip(node_numbers, lines, strict=True):
        numbers = line.text.split()
        if len(numbers) % 3:
            raise DataError(
                f"{line.location} has {len(numbers)} numbers; a line must have 3 numbers for each waypoint: "
                "time, x and y."
            )
        remaining_count = _subtract_waypoints(len(numbers) // 3, remaining_count, file_name)
        values = [_parse_number(line, number) for number in numbers]
        points = list(zip(values[::3], values[1::3], values[2::3], strict=True))
        waypoints_of_node[node] = _make_waypoints(line.location, _merge_equal(points))
    _check_not_empty(waypoints_of_node, file_name, "a line 'time x y time x y ...' for each node")
    return waypoints_of_node


def write_bonnmotion(path: str | os.PathLike[str], tracks: Mapping[int, Track | Waypoints]) -> None:
    """Write {node: track or waypoints} as a file of BonnMotion: a line for each node, in ascending order of nodes.

    The file is compressed if the name ends in ".gz"; the same tracks give the same bytes. The format does not store
    node numbers: `read_bonnmotion` restores the tracks exactly with ``nodes=sorted(tracks)``. Raises ParameterError for
    values that are not tracks, and DataError if the file cannot be written.
    """
    text_lines = []
    for node in sorted(tracks):
        track = tracks[node]
        if isinstance(track, Waypoints):
            track = track.track(node, track.points[0][1:], (0.0, 0.0), track.points[-1][0] or 1e-6, 0)
        if not isinstance(track, Track):
            raise ParameterError(f"The track of node {node!r:.60} is {track!r:.60}; it must be a Track or Waypoints.")
        text_lines.append(_format_track(track))
    content = "".join(f"{line}\n" for line in text_lines).encode("ascii")
    _check_path(path)
    try:
        with open(path, "wb") as file:
            file.write(gzip.compress(content, mtime=0) if os.fspath(path).endswith(".gz") else content)
    except (OSError, ValueError) as error:
        raise DataError(f"{str(path)!r:.200} cannot be written ({error}); give the path of a file.") from error


def read_ns2(path: str | os.PathLike[str]) -> dict[int, Waypoints]:
    """Return {node: path} from a movement file of ns-2, as the program ``setdest``, BonnMotion and SUMO write it.

        $node_(0) set X_ 1.0                          the position at the start; Y_ likewise; Z_ is ignored
        $ns_ at 2.0 "$node_(0) setdest 5.0 6.0 1.5"   go straight to (5, 6) with 1.5 m/s; with 0 m/s: stop
        $ns_ at 9.0 "$node_(0) set X_ 7.0"            jump to another x

    Commands take effect in the order of their times. A ``setdest`` for a node that has not yet reached its previous
    destination starts from the node's position at that time, rounded to 0.1 mm. A jump takes the last microsecond
    before its time.
    Comments (#), commands of ``$god_`` and assignments to variables of Tcl are ignored.

    Raises DataError for a line in another form, and for a node without ``X_`` or ``Y_`` at the start.
    """
    file_name, text = _read_text(path)
    starts: dict[int, list[float | None]] = {}
    commands: dict[int, list[_Command]] = {}
    count = MOST_WAYPOINTS
    for line in _split_lines(file_name, text):
        command = _parse_ns2(line)
        if command is None:
            continue
        count = _subtract_waypoints(1, count, file_name)
        start = starts.setdefault(command.node, [None, None])
        if command.time_us is None:
            start[command.axis] = command.values[0]
        else:
            commands.setdefault(command.node, []).append(command)
    waypoints_of_node = {}
    for node in sorted(starts):
        x_m, y_m = starts[node]
        if x_m is None or y_m is None:
            missing_axis = "X_" if x_m is None else "Y_"
            raise DataError(
                f"{file_name}: node {node} has no position at the start; add the line '$node_({node}) set "
                f"{missing_axis} 0.0'."
            )
        waypoints_of_node[node] = _follow_commands(x_m, y_m, commands.get(node, []), f"{file_name}, node {node}")
    _check_not_empty(waypoints_of_node, file_name, "lines such as '$node_(0) set X_ 1.0'")
    return waypoints_of_node


def read_cooja(path: str | os.PathLike[str]) -> dict[int, Waypoints]:
    """Return {node: path} from a file for Cooja's plug-in Mobility (``positions.dat``).

    Each line has "node time x y", in s and m. Nodes are numbered from 0 in the order of Cooja's motes. Lines that begin
    with "#" are ignored. A node's times must not descend; of several lines with the same time the last counts.

    In Cooja a node jumps at the time of each of its lines, and stands still in between. The path gives the same
    positions at all whole microseconds: a jump is a move during the microsecond before the time of the line. Before the
    time of its first line, a node is at the position in this line. After the last line of the file, Cooja begins again
    with the first; in the path, the node stays at its last position.

    Raises DataError for a file in another format.
    """
    file_name, text = _read_text(path)
    points_of_node: dict[int, list[_Point]] = {}
    count = MOST_WAYPOINTS
    for line in _split_lines(file_name, text):
        cells = line.text.split()
        if len(cells) != 4 or not re.fullmatch("[0-9]{1,10}", cells[0]) or int(cells[0]) > LARGEST_NODE:
            raise DataError(f"{line.location}: {line.text!r:.60}; a line must be 'node time_s x_m y_m'.")
        count = _subtract_waypoints(2, count, file_name)
        time_us, position_m = _parse_time_us(line, cells[1]), _parse_position(line, cells[2:])
        points = points_of_node.setdefault(int(cells[0]), [])
        if not points:
            points.append(_Point(0, *position_m))
        elif time_us < points[-1].time_us:
            raise DataError(
                f"{line.location}: the time {cells[1]:.60} s is before that of the node's previous line; sort the "
                "lines by time."
            )
        _append_jump(points, time_us, position_m)
    _check_not_empty(points_of_node, file_name, "lines 'node time_s x_m y_m'")
    return {
        node: _make_waypoints(f"{file_name}, node {node}", [(time_us / 1e6, x, y) for time_us, x, y in points])
        for node, points in sorted(points_of_node.items())
    }


# Text of files


def _read_text(path: Any) -> tuple[str, str]:
    """Return the name and the text of a file, which may be compressed with gzip."""
    _check_path(path)
    file_name = Path(path).name
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE_B + 1)
        if content.startswith(_GZIP):
            with gzip.open(path) as file:
                content = file.read(LARGEST_FILE_B + 1)
        if len(content) > LARGEST_FILE_B:
            raise DataError(
                f"{file_name} has more than {LARGEST_FILE_B / 1e6:g} MB of text; split it into files with fewer nodes."
            )
        return file_name, content.decode("utf-8-sig")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{file_name} is not a complete gzip file ({error}); copy it again.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); give the path of a movement file.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file_name} is not a text file in UTF-8 ({error}).") from error
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{str(path)!r:.60} is not the path of a file ({error}).") from error


def _check_path(path: Any) -> None:
    """Raise DataError unless ``path`` is a path, as text or as an object with ``__fspath__``."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise DataError(f"The file is of type {type(path).__name__}; give the path of a file.")


def _split_lines(file_name: str, text: str) -> Iterator[_Line]:
    """Yield the lines of a text, without blank lines and lines that begin with "#"."""
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if line and not line.startswith("#"):
            yield _Line(f"{file_name}, line {number}", line)


def _parse_number(line: _Line, text: str) -> float:
    """Return ``text``, a part of ``line``, as a number. Raises DataError for NaN, infinity and any other text."""
    try:
        number = math.nan if "_" in text else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{line.location}: {text!r:.60} is not a finite number.")
    return number


def _parse_time_us(line: _Line, text: str) -> int:
    """Return ``text``, a time in s in ``line``, in µs. Raises DataError unless it is from 0 to LONGEST_S."""
    time_s = _parse_number(line, text)
    if not 0 <= time_s <= LONGEST_S:
        raise DataError(f"{line.location}: the time is {text:.60} s; it must be from 0 to {LONGEST_S:g} s.")
    return round(time_s * 1e6)


def _parse_position(line: _Line, cells: Sequence[str]) -> tuple[float, float]:
    """Return the position (x, y) in m from two ``cells`` of a line, rounded to 0.1 mm.

    Raises DataError for a coordinate that is not a number, or out of range.
    """
    x_m, y_m = (_parse_number(line, cell) for cell in cells)
    if max(abs(x_m), abs(y_m)) > LARGEST_COORDINATE_M:
        raise DataError(
            f"{line.location}: the position is ({x_m:g}, {y_m:g}); its coordinates must be from "
            f"{-LARGEST_COORDINATE_M:g} to {LARGEST_COORDINATE_M:g} m."
        )
    return _round_m(x_m), _round_m(y_m)


def _round_m(coordinate_m: float) -> float:
    """Round a coordinate to 0.1 mm, as `round_positions` does."""
    return round(coordinate_m * 1e4) / 1e4


def _subtract_waypoints(count: int, remaining_count: int, file_name: str) -> int:
    """Return how many more waypoints a file may have after ``count`` waypoints have been read.

    ``remaining_count``: how many it could have before these. Raises DataError if ``count`` exceeds ``remaining_count``.
    """
    if count > remaining_count:
        raise DataError(
            f"{file_name} has more than {MOST_WAYPOINTS:,} waypoints; split it into files with fewer nodes."
        )
    return remaining_count - count


def _check_not_empty(waypoints_of_node: Mapping[int, object], file_name: str, form: str) -> None:
    if not waypoints_of_node:
        raise DataError(f"{file_name} has no movements; it must have {form}.")


def _make_waypoints(location: str, points: Sequence[tuple[float, float, float]]) -> Waypoints:
    """Return a path through ``points``, (time_s, x_m, y_m), that begins at time 0 at the first point.

    Raises DataError, which names the ``location``, for points that are not a path.
    """
    try:
        waypoints = Waypoints(tuple(points))
        first_s, x_m, y_m = waypoints.points[0]
        return waypoints if first_s == 0 else Waypoints(((0.0, x_m, y_m), *waypoints.points))
    except ParameterError as error:
        raise DataError(f"{location}: {str(error).removeprefix('Waypoints: ')}") from error


# BonnMotion


def _check_nodes(nodes: Sequence[int] | None, line_count: int, file_name: str) -> list[int]:
    """Return the node of each line: ``nodes``, checked, or 0, 1, ... if ``nodes`` is None.

    Raises ParameterError unless ``nodes`` has a different node for each of the ``line_count`` lines.
    """
    if nodes is None:
        return list(range(line_count))
    node_numbers = [whole("nodes: a node", node, 0, LARGEST_NODE) for node in nodes]
    if len(set(node_numbers)) != len(node_numbers) or len(node_numbers) != line_count:
        raise ParameterError(
            f"nodes has {len(node_numbers)} numbers, {len(set(node_numbers))} of them distinct, and {file_name} has "
            f"{line_count} lines; give a different node for each line."
        )
    return node_numbers


def _merge_equal(points: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Return ``points`` without each point that equals the point before it; BonnMotion allows such repetitions."""
    return [point for index, point in enumerate(points) if index == 0 or point != points[index - 1]]


def _format_track(track: Track) -> str:
    """Return the vertices of a track as "time x y ...": times in s with up to 6 decimals, x and y in m with up to 4."""
    positions_m = round_positions(track.positions_m).tolist()
    return " ".join(
        f"{_format_us(time_us)} {x_m!r} {y_m!r}"
        for time_us, (x_m, y_m) in zip(track.times_us.tolist(), positions_m, strict=True)
    )


def _format_us(time_us: int) -> str:
    seconds, microseconds = divmod(time_us, 1_000_000)
    return f"{seconds}.{microseconds:06d}".rstrip("0").rstrip(".")


# ns-2


class _Command(NamedTuple):
    """A command of an ns-2 file: a node's position at the start (``time_us`` is None), its destination, or a jump."""

    node: int
    time_us: int | None
    axis: int  # of a coordinate that is set: 0 for x, 1 for y; -1 for a destination
    values: tuple[float, ...]  # the coordinate; or the destination's x and y in m, and the speed in m/s


class _Point(NamedTuple):
    """A waypoint with its time in µs, and its position in m, rounded to 0.1 mm."""

    time_us: int
    x_m: float
    y_m: float


def _parse_ns2(line: _Line) -> _Command | None:
    """Return the command in a line of an ns-2 file, or None if the line does not move a node."""
    text = line.text.partition("#")[0].strip().rstrip(";").rstrip()
    schedule, quote, command_text = text.partition('"')
    time_us = None
    if quote:
        schedule_words = schedule.split()
        if len(schedule_words) != 3 or schedule_words[:2] not in (["$ns_", "at"], ["$ns", "at"]):
            raise _make_line_error(line)
        if not command_text.endswith('"'):
            raise _make_line_error(line)
        time_us = _parse_time_us(line, schedule_words[2])
        text = command_text[:-1]
    words = text.split()
    if not words or words[0] in _OTHER_COMMANDS:
        return None
    node_match = _NODE.fullmatch(words[0])
    if node_match is None or int(node_match[1]) > LARGEST_NODE:
        raise _make_line_error(line)
    node = int(node_match[1])
    if len(words) == 5 and words[1] == "setdest" and time_us is not None:
        speed_m_s = _parse_number(line, words[4])
        if speed_m_s < 0:
            raise DataError(f"{line.location}: the speed is {words[4]:.60} m/s; it must be 0 or more.")
        return _Command(node, time_us, -1, (*_parse_position(line, words[2:4]), speed_m_s))
    if len(words) == 4 and words[1] == "set" and words[2] in _COORDINATES:
        coordinate_m, _ = _parse_position(line, (words[3], "0"))
        return _Command(node, time_us, _COORDINATES[words[2]], (coordinate_m,))
    if len(words) == 4 and words[1:3] == ["set", "Z_"]:
        return None
    raise _make_line_error(line)


def _make_line_error(line: _Line) -> DataError:
    return DataError(
        f"{line.location}: {line.text!r:.60}; a line must be '$node_(0) set X_ 1.0' (or Y_) or "
        "'$ns_ at 2.0 \"$node_(0) setdest x y speed\"'."
    )


def _follow_commands(x_m: float, y_m: float, commands: list[_Command], location: str) -> Waypoints:
    """Return the path of a node that starts at (x_m, y_m) and follows its commands in the order of their times."""
    points = [_Point(0, x_m, y_m)]
    for command in sorted(commands, key=lambda command: command.time_us or 0):
        time_us = command.time_us or 0
        _end_path(points, time_us)
        if command.axis < 0:
            _append_trip(points, *command.values)
        else:
            position_m = list(points[-1][1:])
            position_m[command.axis] = command.values[0]
            _append_jump(points, time_us, (position_m[0], position_m[1]))
    return _make_waypoints(location, [(time_us / 1e6, x, y) for time_us, x, y in points])


def _end_path(points: list[_Point], time_us: int) -> None:
    """Make a path end at ``time_us``, at the position that the node has then.

    If the last waypoint is later, the node is still moving, and its present position replaces this waypoint. If the
    last waypoint is earlier, the node has arrived, and the path is continued to ``time_us`` at the same position.
    """
    last_point = points[-1]
    if last_point.time_us > time_us:
        points.pop()
        last_point = _interpolate(points[-1], last_point, time_us)
    if points[-1].time_us < time_us:
        points.append(last_point._replace(time_us=time_us))


def _interpolate(start: _Point, end: _Point, time_us: int) -> _Point:
    """Return the position at ``time_us`` on the line between two waypoints."""
    share = (time_us - start.time_us) / (end.time_us - start.time_us)
    x_m, y_m = (start[axis] + share * (end[axis] - start[axis]) for axis in (1, 2))
    return _Point(time_us, _round_m(x_m), _round_m(y_m))


def _append_trip(points: list[_Point], x_m: float, y_m: float, speed_m_s: float) -> None:
    """Append a waypoint to a path: the destination (x_m, y_m) of a straight trip from the last waypoint in ``points``.

    If the trip would end later than LONGEST_S, the position at that time is appended instead. Nothing is appended if
    the speed or the distance is 0.
    """
    start = points[-1]
    distance_m = math.sqrt((x_m - start.x_m) ** 2 + (y_m - start.y_m) ** 2)
    if speed_m_s == 0 or distance_m == 0:
        return
    duration_us = distance_m / speed_m_s * 1e6
    longest_us = _LONGEST_US - start.time_us
    if duration_us <= longest_us:
        points.append(_Point(start.time_us + max(1, round(duration_us)), x_m, y_m))
    elif longest_us > 0:
        share = longest_us / duration_us
        end_m = (_round_m(a + share * (b - a)) for a, b in ((start.x_m, x_m), (start.y_m, y_m)))
        points.append(_Point(_LONGEST_US, *end_m))


def _append_jump(points: list[_Point], time_us: int, position_m: tuple[float, float]) -> None:
    """Append a jump to a path: the node stands still until a microsecond before ``time_us``.

    At ``time_us`` it is at ``position_m``. ``points``: the path's waypoints so far.
    """
    last_point = points[-1]
    if last_point.time_us == time_us:
        points.pop()
        if points and points[-1].time_us < time_us - 1 and last_point[1:] != position_m:
            points.append(last_point._replace(time_us=time_us - 1))
    elif last_point.time_us < time_us - 1 and last_point[1:] != position_m:
        points.append(last_point._replace(time_us=time_us - 1))
    points.append(_Point(time_us, *position_m))
