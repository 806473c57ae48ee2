"""The field that sensors measure, a value at each place and time: daily cycle, variation in space, noise, hot spot.

Theory of operation
    value = base + diurnal wave + spatial variation + hot spot + noise, rounded to the resolution

    diurnal wave        a cosine of the time of day, greatest at ``diurnal_peak_s``
    spatial variation   a Gaussian random field with the covariance sigma^2 exp(-d^2 / (2 length^2)), as a sum of 32
                        waves with random direction and phase (random Fourier features); it is constant in time
    hot spot            amplitude exp(-d^2 / (2 radius^2)) around a point that goes back and forth on a path
    noise               normal, drawn independently for each (node, time)

    Every draw is a hash of (seed, node, time), so ``value`` is a pure function: two engines, or two machines, get
    the same values.

Reference
    A. Rahimi, B. Recht: Random features for large-scale kernel machines, NIPS 2007.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import pairwise
from numbers import Real
from typing import Any

from workbench import draws, purposes
from workbench.errors import ParameterError, ScenarioError
from workbench.keywords import checked
from workbench.protocols.parameter import Parameter
from workbench.suggestion import meant

_COMPONENTS = 32
_SPATIAL, _NOISE = 1, 2  # streams of the purpose SENSOR_FIELD
_LARGEST = 1e9

# Parameter -> (minimum, maximum, unit, meaning); key, seed and hot_spot_path have checks of their own.
_RANGES = {
    "base": (-_LARGEST, _LARGEST, "", "mean of the field"),
    "diurnal_amplitude": (0.0, _LARGEST, "", "half the difference between day and night"),
    "diurnal_period_s": (1.0, _LARGEST, "s", "length of a day"),
    "diurnal_peak_s": (-_LARGEST, _LARGEST, "s", "time of the daily maximum"),
    "spatial_sigma": (0.0, _LARGEST, "", "standard deviation over space"),
    "correlation_length_m": (0.01, _LARGEST, "m", "distance at which the correlation is 0.61"),
    "noise_sigma": (0.0, _LARGEST, "", "standard deviation of a sensor's noise"),
    "hot_spot_amplitude": (-_LARGEST, _LARGEST, "", "excess value at the center of the hot spot; 0: no hot spot"),
    "hot_spot_radius_m": (0.01, _LARGEST, "m", "distance from the center at which 61 % of the excess remains"),
    "hot_spot_speed_m_s": (0.0, _LARGEST, "m/s", "speed of the hot spot along its path"),
    "hot_spot_start_s": (-_LARGEST, _LARGEST, "s", "time when the hot spot appears"),
    "resolution": (1e-6, _LARGEST, "", "resolution of the sensor: values are rounded to it"),
}


@checked
@dataclass(frozen=True)
class SensorField:
    """A field of sensor readings. Raises ParameterError for a value outside its range.

    ===================== ================ ====== ==============================================================
    parameter             default          unit   meaning
    ===================== ================ ====== ==============================================================
    key                   "TEMP"                  the attribute that readings are published under
    base                  21               °C *   mean of the field
    diurnal_amplitude     2                °C     half the difference between day and night
    diurnal_period_s      86400            s      length of a day
    diurnal_peak_s        54000            s      time of the daily maximum (15:00); a run begins at midnight
    spatial_sigma         0.8              °C     standard deviation over space
    correlation_length_m  15               m      distance at which the correlation is 0.61
    noise_sigma           0.1              °C     standard deviation of a sensor's noise
    hot_spot_amplitude    14               °C     excess value at its center; 0: no hot spot
    hot_spot_radius_m     6                m      distance from its center at which 61 % of the excess remains
    hot_spot_speed_m_s    0.25             m/s    speed along its path, back and forth
    hot_spot_path         (.15, .5),       width, corners of its path as fractions of the extent: (0, 0) is lower left,
                          (.85, .5)        height (1, 1) upper right; with a single corner it does not move
    hot_spot_start_s      0                s      time when it appears, at the first corner
    resolution            0.01             °C     resolution of the sensor: values are rounded to it
    seed                  1                       seed of the spatial variation and the noise
    ===================== ================ ====== ==============================================================

    * or the unit of the chosen key. With the defaults the field stays below 30 except near the hot spot, so that
    only readings within about one radius of the hot spot match the interest "TEMP GE 30".

    >>> SensorField().attributes(node=3, x_m=10.0, y_m=5.0, time_s=60.0, extent=(48.0, 14.4))
    'TEMP IS 20.59'
    """

    key: str = "TEMP"
    base: float = 21.0
    diurnal_amplitude: float = 2.0
    diurnal_period_s: float = 86400.0
    diurnal_peak_s: float = 54000.0
    spatial_sigma: float = 0.8
    correlation_length_m: float = 15.0
    noise_sigma: float = 0.1
    hot_spot_amplitude: float = 14.0
    hot_spot_radius_m: float = 6.0
    hot_spot_speed_m_s: float = 0.25
    hot_spot_path: tuple[tuple[float, float], ...] = ((0.15, 0.5), (0.85, 0.5))
    hot_spot_start_s: float = 0.0
    resolution: float = 0.01
    seed: int = 1

    def __post_init__(self) -> None:
        for parameter_name, (minimum, maximum, unit, _) in _RANGES.items():
            parameter_value = getattr(self, parameter_name)
            if not _is_number(parameter_value) or not minimum <= parameter_value <= maximum:
                allowed = f"{minimum:g} to {maximum:g} {unit}".rstrip()
                raise ParameterError(
                    f"SensorField: {parameter_name} is {parameter_value!r:.60}; it must be a number from {allowed}."
                )
            object.__setattr__(self, parameter_name, float(parameter_value))
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or not 0 <= self.seed < 2**63:
            raise ParameterError(f"SensorField: seed is {self.seed!r:.60}; it must be a whole number, 0 to 2**63 - 1.")
        if not isinstance(self.key, str) or not self.key.isidentifier() or not self.key.isascii():
            raise ParameterError(f"SensorField: key is {self.key!r:.60}; it must be an attribute's key like TEMP.")
        object.__setattr__(self, "hot_spot_path", _check_path(self.hot_spot_path))

    def value(
        self, node: int, x_m: float, y_m: float, time_s: float, extent: tuple[float, float] = (100.0, 100.0)
    ) -> float:
        """Return the reading of ``node`` at (x_m, y_m), ``time_s`` after midnight, in the unit of the field's key.

        ``extent`` is the width and height of the network's area in meters.
        """
        reading = self.base + self._diurnal_component(time_s) + self._spatial_component(x_m, y_m)
        reading += self._hot_spot_component(x_m, y_m, time_s, extent) + self._noise_component(node, time_s)
        return round(round(reading / self.resolution) * self.resolution, 6)

    def attributes(
        self, node: int, x_m: float, y_m: float, time_s: float, extent: tuple[float, float] = (100.0, 100.0)
    ) -> str:
        """Return a node's reading as the attributes of a publication, such as "TEMP IS 26.53".

        The parameters are those of `value`: the node, its position, the time, and the ``extent`` of the area in m.
        """
        return f"{self.key} IS {self.value(node, x_m, y_m, time_s, extent):.{self._decimals}f}"

    @property
    def _decimals(self) -> int:
        """The number of decimals in which readings are written: those of the sensor's resolution, at least two."""
        resolution_text = f"{self.resolution:.6f}".rstrip("0")
        return max(2, len(resolution_text.partition(".")[2]))

    def hot_spot_at(self, time_s: float, extent: tuple[float, float] = (100.0, 100.0)) -> tuple[float, float] | None:
        """Return the hot spot's center (x_m, y_m) ``time_s`` seconds after midnight; None before the hot spot appears.

        ``extent`` is the width and height of the network's area in meters.
        """
        if time_s < self.hot_spot_start_s:
            return None
        corners = [(x * extent[0], y * extent[1]) for x, y in self.hot_spot_path]
        legs = [math.dist(start, end) for start, end in pairwise(corners)]
        length_m = sum(legs)
        if length_m == 0:
            return corners[0]
        travelled_m = math.fmod((time_s - self.hot_spot_start_s) * self.hot_spot_speed_m_s, 2 * length_m)
        return _find_point_along(corners, legs, min(travelled_m, 2 * length_m - travelled_m))

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain values, ready for JSON."""
        return {**asdict(self), "hot_spot_path": [list(corner) for corner in self.hot_spot_path]}

    @classmethod
    def from_dict(cls, form: object) -> "SensorField":
        """Return the field with the parameters in ``form``, a mapping that `to_dict` returned.

        A missing parameter gets its default. Raises ScenarioError for an unknown parameter or an invalid value.
        """
        parameter_names = [field.name for field in fields(cls)]
        if not isinstance(form, Mapping):
            raise ScenarioError(
                f"The sensor field is {form!r:.60}; it must be a mapping with some of the keys "
                f"{', '.join(parameter_names)}."
            )
        unknown_names = [str(name) for name in form if name not in parameter_names]
        if unknown_names:
            hint = meant(unknown_names[0], parameter_names)
            raise ScenarioError(
                f"The sensor field has no parameter {unknown_names[0]!r:.60}{hint}; "
                f"it has {', '.join(parameter_names)}."
            )
        try:
            return cls(**form)
        except ParameterError as error:
            raise ScenarioError(str(error)) from error

    def _diurnal_component(self, time_s: float) -> float:
        return self.diurnal_amplitude * math.cos(2 * math.pi * (time_s - self.diurnal_peak_s) / self.diurnal_period_s)

    def _spatial_component(self, x_m: float, y_m: float) -> float:
        components = _draw_components(self.seed, self.correlation_length_m)
        sum_of_cosines = math.fsum(math.cos(k_x * x_m + k_y * y_m + phase) for k_x, k_y, phase in components)
        return self.spatial_sigma * math.sqrt(2 / _COMPONENTS) * sum_of_cosines

    def _hot_spot_component(self, x_m: float, y_m: float, time_s: float, extent: tuple[float, float]) -> float:
        center = self.hot_spot_at(time_s, extent)
        if center is None:
            return 0.0
        distance_in_radii = math.dist(center, (x_m, y_m)) / self.hot_spot_radius_m
        return self.hot_spot_amplitude * math.exp(-0.5 * distance_in_radii * distance_in_radii)

    def _noise_component(self, node: int, time_s: float) -> float:
        key = draws.make_key(self.seed, purposes.SENSOR_FIELD, _NOISE, node, round(time_s * 1e6))
        return self.noise_sigma * draws.Stream(key).normal()


def parameters() -> tuple[Parameter, ...]:
    """Return the parameters of a `SensorField` for input forms, except ``hot_spot_path``, which is a list of points."""
    ranged_parameters = (
        Parameter(name, getattr(SensorField, name), *limits_and_meaning) for name, limits_and_meaning in _RANGES.items()
    )
    key = Parameter("key", SensorField.key, None, None, "", "the attribute that readings are published under")
    seed = Parameter("seed", SensorField.seed, None, None, "", "of the spatial variation and the noise")
    return (key, *ranged_parameters, seed)


@lru_cache(maxsize=64)
def _draw_components(seed: int, correlation_length_m: float) -> list[tuple[float, float, float]]:
    """Return random waves of the spatial variation: [(wave number along x, wave number along y, phase), ...].

    The wave numbers are in 1/m, and normally distributed, because a Gaussian covariance has a Gaussian spectrum.
    """
    stream = draws.Stream(draws.make_key(seed, purposes.SENSOR_FIELD, _SPATIAL))
    return [
        (stream.normal() / correlation_length_m, stream.normal() / correlation_length_m, 2 * math.pi * stream.uniform())
        for _ in range(_COMPONENTS)
    ]


def _check_path(corners: Any) -> tuple[tuple[float, float], ...]:
    """Return the corners of the hot spot's path as a tuple of (x, y) floats.

    Raises ParameterError unless each coordinate is a number from 0 to 1.
    """
    try:
        checked_corners = tuple((x, y) for x, y in corners)
    except (TypeError, ValueError):
        checked_corners = ()
    coordinates = [coordinate for corner in checked_corners for coordinate in corner]
    if not checked_corners or not all(_is_number(coordinate) and 0 <= coordinate <= 1 for coordinate in coordinates):
        raise ParameterError(
            f"SensorField: hot_spot_path is {corners!r:.60}; it must be a list of corners (x, y), each from 0 to 1."
        )
    return tuple((float(x), float(y)) for x, y in checked_corners)


def _find_point_along(corners: list[tuple[float, float]], legs: list[float], travelled_m: float) -> tuple[float, float]:
    """Return the point (x, y) of a path in m at the distance ``travelled_m`` from its first corner.

    ``legs`` are the distances between successive ``corners`` in m. Beyond the path's end, the last corner is returned.
    """
    for (start, end), leg_m in zip(pairwise(corners), legs, strict=True):
        if travelled_m <= leg_m and leg_m > 0:
            leg_share = travelled_m / leg_m
            return (start[0] + leg_share * (end[0] - start[0]), start[1] + leg_share * (end[1] - start[1]))
        travelled_m -= leg_m
    return corners[-1]


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
