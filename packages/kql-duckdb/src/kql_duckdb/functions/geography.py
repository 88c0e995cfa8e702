"""Places on the earth: distances and directions, points in circles and polygons, lengths, and geohashes.

Source: the Kusto pages named like the functions; the earth is their sphere. Edges are arcs of great circles. What needs
more of the geometry of the sphere (buffers, intersections, S2 and H3 cells) is refused by name.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from kql_duckdb.expressions import Typed
from kql_duckdb.functions.definitions import BoundCall, NoAnswer, fill, python, pythons, refusal, scalar
from kql_duckdb.types import REAL

EARTH_RADIUS = 6_371_010.0

Vector = tuple[float, float, float]


def _vector(longitude: Any, latitude: Any) -> Vector:
    """The point on the unit sphere; no answer outside of the valid degrees."""
    if not (isinstance(longitude, (int, float)) and isinstance(latitude, (int, float))):
        raise NoAnswer
    if not (-180 <= longitude <= 180 and -90 <= latitude <= 90):
        raise NoAnswer
    across, up = math.radians(longitude), math.radians(latitude)
    return math.cos(up) * math.cos(across), math.cos(up) * math.sin(across), math.sin(up)


def _cross(a: Vector, b: Vector) -> Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _angle(a: Vector, b: Vector) -> float:
    across = _cross(a, b)
    return math.atan2(math.sqrt(_dot(across, across)), _dot(a, b))


def _vectors(points: Any) -> list[Vector]:
    if not isinstance(points, list) or not all(isinstance(point, list) and len(point) >= 2 for point in points):
        raise NoAnswer
    return [_vector(*point[:2]) for point in points]


def _coordinates(shape: Any, kind: str) -> list[Any]:
    """Those of a GeoJSON shape of a kind, as those of a shape of several; no answer for anything else."""
    if not isinstance(shape, dict) or shape.get("type") not in (kind, f"Multi{kind}"):
        raise NoAnswer
    found = shape.get("coordinates")
    found = [found] if shape["type"] == kind else found
    if not found or not isinstance(found, list) or not all(isinstance(one, list) for one in found):
        raise NoAnswer
    return found


def _rings(polygon: Any) -> list[list[list[Vector]]]:
    """The polygons of a shape, each as its rings."""
    polygons = [[_vectors(ring) for ring in one] for one in _coordinates(polygon, "Polygon")]
    if not all(_is_ring(ring) for one in polygons for ring in one):
        raise NoAnswer
    return polygons


def _is_ring(ring: list[Vector]) -> bool:
    """Closed, with three different corners at least and none twice in a row."""
    return len(ring) >= 4 and ring[0] == ring[-1] and all(a != b for a, b in itertools.pairwise(ring))


def _inside(point: Vector, ring: list[Vector]) -> bool:
    """Whether the ring goes around the point: the directions to its corners, seen from the point, add up to a turn."""
    middle = tuple(math.fsum(corner[axis] for corner in ring) for axis in range(3))
    if _dot(point, (middle[0], middle[1], middle[2])) < 0:
        # From the other side of the earth the corners go around as well.
        return False
    turn = 0.0
    for start, end in zip(ring, [*ring[1:], ring[0]], strict=True):
        a, b = _cross(point, start), _cross(point, end)
        turn += math.atan2(_dot(point, _cross(a, b)), _dot(a, b))
    return abs(turn) > math.pi


@python("kql_geo_in_polygon(longitude: real, latitude: real, polygon: JSON): bool")
def _in_polygon(longitude: float, latitude: float, text: str) -> bool:
    point = _vector(longitude, latitude)
    return any(
        _inside(point, rings[0]) and not any(_inside(point, hole) for hole in rings[1:])
        for rings in _decoded_rings(text)
        if rings
    )


@lru_cache(256)
def _decoded_rings(text: str) -> list[list[list[Vector]]]:
    """Kept by their text: a query asks about each row with the same few polygons."""
    return _rings(json.loads(text))


def _length(points: Iterable[Vector]) -> float:
    return sum(_angle(a, b) for a, b in itertools.pairwise(points)) * EARTH_RADIUS


def _lines(line: Any) -> list[list[Vector]]:
    made = [_vectors(one) for one in _coordinates(line, "LineString")]
    if any(len(one) < 2 for one in made):
        raise NoAnswer
    return made


@python("geo_polygon_perimeter(polygon: dynamic): real", note="several polygons end the query")
def _perimeter(polygon: Any) -> float:
    polygons = _rings(polygon)
    if len(polygons) > 1:
        raise refusal("geo_polygon_perimeter of several polygons is not supported here")
    return float(sum(_length(ring) for rings in polygons for ring in rings))


@python("geo_distance_point_to_line(longitude: real, latitude: real, line: dynamic): real")
def _distance_to_line(longitude: float, latitude: float, line: Any) -> float:
    point = _vector(longitude, latitude)
    arcs = (_to_arc(point, a, b) for line in _lines(line) for a, b in itertools.pairwise(line))
    return min(arcs) * EARTH_RADIUS


def _to_arc(point: Vector, start: Vector, end: Vector) -> float:
    """The angle from a point to the nearest one of an arc."""
    normal = _cross(start, end)
    size = math.sqrt(_dot(normal, normal))
    nearest = min(_angle(point, start), _angle(point, end))
    if size == 0:
        return nearest
    if _dot(_cross(normal, start), point) >= 0 and _dot(_cross(end, normal), point) >= 0:
        return abs(math.asin(max(-1.0, min(1.0, _dot(point, normal) / size))))
    return nearest


_LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"


@python("geo_point_to_geohash(longitude: real, latitude: real, accuracy: long = 5): string")
def _geohash(longitude: float, latitude: float, accuracy: int) -> str:
    if not (abs(longitude) <= 180 and abs(latitude) <= 90 and 1 <= accuracy <= 18):
        return ""
    ranges, values = [[-180.0, 180.0], [-90.0, 90.0]], (longitude, latitude)
    letters, bits = [], 0
    for place in range(accuracy * 5):
        low, high = ranges[place % 2]
        middle = (low + high) / 2
        above = values[place % 2] >= middle
        ranges[place % 2] = [middle, high] if above else [low, middle]
        bits = bits * 2 + above
        if place % 5 == 4:
            letters.append(_LETTERS[bits])
            bits = 0
    return "".join(letters)


def _box(geohash: str) -> tuple[float, float, float, float]:
    """West, south, east and north of the rectangle; no answer for what is no geohash."""
    ranges = [[-180.0, 180.0], [-90.0, 90.0]]
    places = [_LETTERS.find(letter) for letter in geohash.lower()]
    if not 1 <= len(places) <= 18 or min(places) < 0:
        raise NoAnswer
    for number, bits in enumerate(places):
        for place in range(5):
            side = ranges[(number * 5 + place) % 2]
            side[0 if bits >> (4 - place) & 1 else 1] = (side[0] + side[1]) / 2
    return ranges[0][0], ranges[1][0], ranges[0][1], ranges[1][1]


def _middle(west: float, south: float, east: float, north: float) -> dict[str, Any]:
    return {"type": "Point", "coordinates": [(west + east) / 2, (south + north) / 2]}


def _polygon(west: float, south: float, east: float, north: float) -> dict[str, Any]:
    corners = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [corners]}


pythons({
    "kql_geo_distance(longitude1: real, latitude1: real, longitude2: real, latitude2: real): real": (
        lambda longitude1, latitude1, longitude2, latitude2: (
            _angle(_vector(longitude1, latitude1), _vector(longitude2, latitude2)) * EARTH_RADIUS
        )
    ),
    "geo_line_length(line: dynamic): real": lambda line: float(sum(map(_length, _lines(line)))),
    "geo_geohash_to_central_point(geohash: string): dynamic": lambda geohash: _middle(*_box(geohash)),
    "geo_geohash_to_polygon(geohash: string): dynamic": lambda geohash: _polygon(*_box(geohash)),
})  # fmt: skip


_TWO_POINTS = "p1_longitude: real, p1_latitude: real, p2_longitude: real, p2_latitude: real"


@scalar(f"geo_distance_2points({_TWO_POINTS}, use_spheroid?: any)", note="on the sphere; use_spheroid is refused")
def _distance_of_two(call: BoundCall) -> Typed:
    if len(call.arguments) > 4 and not (call.arguments[4].is_constant and not call.arguments[4].constant):
        raise call.invalid("the earth is a sphere here: use_spheroid must be false.", "KDB0001")
    return fill("kql_geo_distance({0}, {1}, {2}, {3})", REAL, *call.arguments[:4])
