"""Places on the earth: distances and directions, points in circles and polygons, lengths, and geohashes.

Source: the Kusto pages named like the functions; the earth is their sphere. Edges are arcs of great circles. What needs
more of the geometry of the sphere (buffers, intersections, S2 and H3 cells) is refused by name.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from typing import Any

from kql_duckdb.expressions import Typed, literal
from kql_duckdb.functions.conversion import LONG, REAL, STRING, convert
from kql_duckdb.functions.definitions import BoundCall, ScalarFunction, fill, function
from kql_duckdb.functions.python_functions import dynamic_function, python_function, refusal

EARTH_RADIUS = 6_371_010.0

Vector = tuple[float, float, float]


def _vector(longitude: float | None, latitude: float | None) -> Vector | None:
    """The point on the unit sphere; null outside of the valid degrees."""
    if (
        not isinstance(longitude, (int, float))
        or not isinstance(latitude, (int, float))
        or not (-180 <= longitude <= 180 and -90 <= latitude <= 90)
    ):
        return None
    across, up = math.radians(longitude), math.radians(latitude)
    return math.cos(up) * math.cos(across), math.cos(up) * math.sin(across), math.sin(up)


def _cross(a: Vector, b: Vector) -> Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _angle(a: Vector, b: Vector) -> float:
    """The angle between two vectors, exact for small ones too."""
    across = _cross(a, b)
    return math.atan2(math.sqrt(_dot(across, across)), _dot(a, b))


@python_function("kql_geo_distance", ("DOUBLE",) * 4, "DOUBLE")
def _distance(
    longitude1: float | None, latitude1: float | None, longitude2: float | None, latitude2: float | None
) -> float | None:
    first, second = _vector(longitude1, latitude1), _vector(longitude2, latitude2)
    return None if first is None or second is None else _angle(first, second) * EARTH_RADIUS


@python_function("kql_geo_azimuth", ("DOUBLE",) * 4, "DOUBLE")
def _azimuth(
    longitude1: float | None, latitude1: float | None, longitude2: float | None, latitude2: float | None
) -> float | None:
    """The direction of the second point from north, in radians; null for points that are the same or opposite."""
    if longitude1 is None or latitude1 is None or longitude2 is None or latitude2 is None:
        return None
    if _vector(longitude1, latitude1) is None or _vector(longitude2, latitude2) is None:
        return None
    across, low, high = math.radians(longitude2 - longitude1), math.radians(latitude1), math.radians(latitude2)
    east = math.sin(across) * math.cos(high)
    north = math.cos(low) * math.sin(high) - math.sin(low) * math.cos(high) * math.cos(across)
    return None if math.hypot(east, north) < 1e-15 else math.atan2(east, north)


def _vectors(points: Any) -> list[Vector] | None:
    if not isinstance(points, list):
        return None
    made = [_vector(*point[:2]) if isinstance(point, list) and len(point) >= 2 else None for point in points]
    return None if None in made else [vector for vector in made if vector is not None]


def _rings(polygon: Any) -> list[list[list[Vector]]] | None:
    """The polygons of a GeoJSON polygon or multipolygon, each as its rings; null for anything else."""
    if not isinstance(polygon, dict):
        return None
    found = polygon.get("coordinates")
    if polygon.get("type") == "Polygon":
        found = [found]
    elif polygon.get("type") != "MultiPolygon":
        return None
    if not isinstance(found, list) or not all(isinstance(one, list) for one in found):
        return None
    polygons = [[_vectors(ring) for ring in one] for one in found]
    if any(ring is None or not _is_ring(ring) for one in polygons for ring in one):
        return None
    return [[ring for ring in one if ring is not None] for one in polygons]


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


@python_function("kql_geo_in_polygon", ("DOUBLE", "DOUBLE", "JSON"), "BOOLEAN")
def _in_polygon(longitude: float | None, latitude: float | None, text: str | None) -> bool | None:
    point, polygons = _vector(longitude, latitude), _decoded_rings(text)
    if point is None or polygons is None:
        return None
    return any(
        _inside(point, rings[0]) and not any(_inside(point, hole) for hole in rings[1:]) for rings in polygons if rings
    )


_known: dict[str, list[list[list[Vector]]] | None] = {}


def _decoded_rings(text: str | None) -> list[list[list[Vector]]] | None:
    """Kept by their text: a query asks about each row with the same few polygons."""
    if text is None:
        return None
    if text not in _known:
        if len(_known) > 256:
            _known.clear()
        _known[text] = _rings(json.loads(text))
    return _known[text]


def _length(points: Iterable[Vector]) -> float:
    return sum(_angle(a, b) for a, b in itertools.pairwise(points)) * EARTH_RADIUS


@dynamic_function("kql_geo_line_length", ("JSON",), "DOUBLE")
def _line_length(line: Any) -> float | None:
    lines = _lines(line)
    return None if lines is None else float(sum(map(_length, lines)))


def _lines(line: Any) -> list[list[Vector]] | None:
    if not isinstance(line, dict):
        return None
    found = line.get("coordinates")
    if line.get("type") == "LineString":
        found = [found]
    elif line.get("type") != "MultiLineString":
        return None
    made = [_vectors(one) for one in found] if isinstance(found, list) else [None]
    return None if any(one is None or len(one) < 2 for one in made) else [one for one in made if one is not None]


@dynamic_function("kql_geo_perimeter", ("JSON",), "DOUBLE")
def _perimeter(polygon: Any) -> float | None:
    polygons = _rings(polygon)
    if polygons is not None and len(polygons) > 1:
        raise refusal("geo_polygon_perimeter of several polygons is not supported here")
    return None if polygons is None else float(sum(_length(ring) for rings in polygons for ring in rings))


@python_function("kql_geo_distance_to_line", ("DOUBLE", "DOUBLE", "JSON"), "DOUBLE")
def _distance_to_line(longitude: float | None, latitude: float | None, text: str | None) -> float | None:
    point, lines = _vector(longitude, latitude), _lines(json.loads(text)) if text is not None else None
    if point is None or not lines:
        return None
    arcs = (_to_arc(point, a, b) for line in lines for a, b in itertools.pairwise(line))
    return min(arcs, default=math.inf) * EARTH_RADIUS


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


@python_function("kql_geohash", ("DOUBLE", "DOUBLE", "BIGINT"), "VARCHAR")
def _geohash(longitude: float | None, latitude: float | None, accuracy: int | None) -> str:
    if longitude is None or latitude is None or _vector(longitude, latitude) is None:
        return ""
    if accuracy is None or not 1 <= accuracy <= 18:
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


def _box(geohash: str) -> tuple[float, float, float, float] | None:
    """West, south, east and north of the rectangle; null for what is no geohash."""
    ranges = [[-180.0, 180.0], [-90.0, 90.0]]
    if not 1 <= len(geohash) <= 18:
        return None
    for number, letter in enumerate(geohash.lower()):
        bits = _LETTERS.find(letter)
        if bits < 0:
            return None
        for place in range(5):
            side = ranges[(number * 5 + place) % 2]
            middle = (side[0] + side[1]) / 2
            side[0 if bits >> (4 - place) & 1 else 1] = middle
    return ranges[0][0], ranges[1][0], ranges[0][1], ranges[1][1]


@dynamic_function("kql_geohash_center", ("VARCHAR",))
def _geohash_center(geohash: str) -> dict[str, Any] | None:
    box = _box(geohash)
    if box is None:
        return None
    return {"type": "Point", "coordinates": [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2]}


@dynamic_function("kql_geohash_polygon", ("VARCHAR",))
def _geohash_polygon(geohash: str) -> dict[str, Any] | None:
    box = _box(geohash)
    if box is None:
        return None
    west, south, east, north = box
    corners = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [corners]}


def _distance_of_two(call: BoundCall) -> Typed:
    if len(call.arguments) > 4 and not (call.arguments[4].is_constant and not call.arguments[4].constant):
        raise call.invalid("the earth is a sphere here: use_spheroid must be false.", "KDB0001")
    return fill("kql_geo_distance({0}, {1}, {2}, {3})", REAL, *(convert(each, REAL) for each in call.arguments[:4]))


def _geohash_of(call: BoundCall) -> Typed:
    accuracy = call.arguments[2] if len(call.arguments) > 2 else literal(5, LONG)
    return fill("kql_geohash({0}, {1}, {2})", STRING, *call.arguments[:2], accuracy)


_POINT = "longitude: real, latitude: real"
_TWO_POINTS = "p1_longitude: real, p1_latitude: real, p2_longitude: real, p2_latitude: real"

FUNCTIONS: tuple[ScalarFunction, ...] = (
    function(
        f"geo_distance_2points({_TWO_POINTS}, use_spheroid?: any)",
        _distance_of_two,
        status="partly",
        note="on the sphere; use_spheroid is refused",
    ),
    function(f"geo_azimuth({_TWO_POINTS}): real", "kql_geo_azimuth({0}, {1}, {2}, {3})"),
    function(
        f"geo_point_in_circle({_TWO_POINTS}, c_radius: real): bool",
        "CASE WHEN {4} >= 0 THEN kql_geo_distance({0}, {1}, {2}, {3}) <= {4} END",
    ),
    function(f"geo_point_in_polygon({_POINT}, polygon: dynamic): bool", "kql_geo_in_polygon({0}, {1}, {2})"),
    function(f"geo_distance_point_to_line({_POINT}, line: dynamic): real", "kql_geo_distance_to_line({0}, {1}, {2})"),
    function("geo_line_length(line: dynamic): real", "kql_geo_line_length({0})"),
    function(
        "geo_polygon_perimeter(polygon: dynamic): real",
        "kql_geo_perimeter({0})",
        status="partly",
        note="several polygons end the query",
    ),
    function(f"geo_point_to_geohash({_POINT}, accuracy?: long)", _geohash_of),
    function("geo_geohash_to_central_point(geohash: string): dynamic", "kql_geohash_center({0})"),
    function("geo_geohash_to_polygon(geohash: string): dynamic", "kql_geohash_polygon({0})"),
)
