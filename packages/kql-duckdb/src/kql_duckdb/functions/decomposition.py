"""Series taken apart: periods, seasonal and trend components, outliers, anomalies and forecasts.

Source: the Kusto pages named like the functions. They give the order of the steps, the medians of the phases, the
trends and Tukey's ranges, and are kept; they leave open how periods are scored and outliers are scaled. Here a period's
score is the correlation of the series, without its line, with itself so many bins later, and an outlier's score is its
distance from the range of the percentiles in such ranges (in deviations, where the range is nothing).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Any

from kql_duckdb.functions.definitions import NoAnswer, python
from kql_duckdb.functions.series import line_through, numbers

_OUTLIERS_NOTE = "scores are distances in ranges of the percentiles; Azure's scale is not published"
_LEAST_PERIOD = 4
_AS_GOOD, _NEAR = 0.05, 0.2
"""By how much a shorter period may be worse than the best and still come first, and how far from a multiple of a
period, in such periods, another one is still a side of it."""


def _correlations(values: Sequence[float]) -> list[float]:
    """For each lag up to half of the length, the correlation of the series with itself so many places later."""
    import numpy as np  # here, since only queries over series need wait for it

    size = len(values)
    slope, start = line_through(values)
    rest = [value - start - slope * place for place, value in enumerate(values)]
    padded = 2 ** (2 * size - 1).bit_length()
    products = np.fft.irfft(np.abs(np.fft.rfft(rest, padded)) ** 2, padded).tolist()
    sums = [0.0, *itertools.accumulate(rest)]
    squares = [0.0, *itertools.accumulate(value * value for value in rest)]
    found = []
    for lag in range(size // 2 + 1):
        count = size - lag
        first, second = sums[count], sums[size] - sums[lag]
        spread = (squares[count] - first**2 / count) * (squares[size] - squares[lag] - second**2 / count)
        small = spread <= 1e-18 * squares[size] ** 2
        found.append(0.0 if small else (products[lag] - first * second / count) / math.sqrt(spread))
    return [min(max(one, 0.0), 1.0) for one in found]


def _periods(values: Sequence[float], least: float, most: float) -> list[tuple[float, int]]:
    """Scores and periods, best first; a multiple of a period counts only where it is clearly more like one."""
    if len(values) < 2 * _LEAST_PERIOD:
        return []
    scores = [*_correlations(values), 0.0]
    chance = 1.96 / math.sqrt(len(values))  # what values without a period reach once in twenty times
    left = {
        period: scores[period]
        for period in range(max(_LEAST_PERIOD, math.ceil(least)), math.floor(min(most, len(values) // 2)) + 1)
        if scores[period] > chance and scores[period] == max(scores[period - 1 : period + 2])
    }
    found: list[tuple[float, int]] = []
    while left:
        enough = max(left.values()) - _AS_GOOD
        best = min(period for period, score in left.items() if score >= enough)
        found.append((left[best], best))
        left = {
            period: score
            for period, score in left.items()
            if period < best * (1 - _NEAR) or min(period % best, -period % best) > best * _NEAR
        }
    return found


@python("kql_series_periods(series: numbers, least: real, most: real, count: long): dynamic")
def _periods_detected(values: list[float], least: float, most: float, count: int) -> dict[str, Any] | None:
    if count < 1:
        return None
    found = _periods(values, least, most)[:count]
    found += [(0.0, 0)] * (min(count, len(values)) - len(found))
    return {"periods": [float(period) for _, period in found], "periods_scores": [score for score, _ in found]}


@python("kql_series_validated(series: numbers, periods: real...): dynamic")
def _periods_validated(values: list[float], periods: list[float | None]) -> dict[str, Any]:
    scores = _correlations(values) if len(values) >= 2 * _LEAST_PERIOD else []
    inside = [one is not None and _LEAST_PERIOD <= one <= len(values) / 2 for one in periods]
    return {
        "periods": periods,
        "scores": [scores[round(one or 0)] if held else 0.0 for one, held in zip(periods, inside, strict=True)],
    }


def _components(
    series: list[Any], seasonality: int, trend: str, test_points: int, threshold: float
) -> dict[str, list[float | None]]:
    """Seasonal component, trend, baseline and residual; what is no number is left out of what is learnt."""
    values = numbers(series)
    if trend not in ("avg", "linefit", "none") or test_points < 0:
        raise NoAnswer
    size = len(values)
    learnt = values[: max(size - test_points, 0)]
    present = [(place, value) for place, value in enumerate(learnt) if value is not None and math.isfinite(value)]
    if not present:
        raise NoAnswer
    mean = statistics.fmean(value for _, value in present)
    known = dict(present)
    period = seasonality
    if seasonality < 0:
        periods = _periods([known.get(place, mean) for place in range(len(learnt))], 0, math.inf)
        period = periods[0][1] if periods and periods[0][0] >= threshold else 0
    phases: dict[int, list[float]] = {}
    for place, value in present if period else ():
        phases.setdefault(place % period, []).append(value)
    middles = {phase: statistics.median(held) for phase, held in phases.items()}
    seasonal = [middles.get(place % period, 0.0) if period else 0.0 for place in range(size)]
    slope, start = 0.0, 0.0
    if trend == "avg":
        start = statistics.fmean(value - seasonal[place] for place, value in present)
    elif trend == "linefit":
        slope, start = line_through([known.get(place, mean) - seasonal[place] for place in range(len(learnt))])
    line = [start + slope * place for place in range(size)]
    baseline = [season + level for season, level in zip(seasonal, line, strict=True)]
    residual = [None if one is None else one - expected for one, expected in zip(values, baseline, strict=True)]
    return {"baseline": [*baseline], "seasonal": [*seasonal], "trend": [*line], "residual": residual}


def _outlier_scores(values: Sequence[float | None], kind: str, least: float, most: float) -> list[float]:
    import numpy as np

    if kind not in ("tukey", "ctukey") or not (2 <= least < most <= 98):
        raise NoAnswer
    present = [value for value in values if value is not None and math.isfinite(value)]
    if not present:
        return [0.0] * len(values)
    low, high = np.percentile(present, (25, 75) if kind == "tukey" else (least, most)).tolist()
    scale = high - low
    if scale <= 1e-12 * max(abs(low), abs(high), 1e-300):
        scale = statistics.pstdev(present)
    if not scale:
        return [0.0] * len(values)
    return [
        0.0 if value is None or not math.isfinite(value) else (max(value - high, 0) + min(value - low, 0)) / scale
        for value in values
    ]


@python(
    'series_outliers(series: array, kind: string = "ctukey", ignore_val: real = null, min_percentile: real = 10, '
    "max_percentile: real = 90): dynamic",
    note=_OUTLIERS_NOTE,
)
def _outliers(series: list[Any], kind: str, ignored: float | None, least: float, most: float) -> list[float]:
    return _outlier_scores([None if one == ignored else one for one in numbers(series)], kind.lower(), least, most)


python("kql_series_decompose(series: array, season: long, trend: string, test: long, threshold: real): dynamic")(
    _components
)


@python(
    "kql_series_anomalies(series: array, fence: real, season: long, trend: string, test: long, method: string, "
    "threshold: real): dynamic"
)
def _anomalies(
    series: list[Any], fence: float, season: int, trend: str, test: int, method: str, threshold: float
) -> dict[str, Any]:
    found = _components(series, season, trend, test, threshold)
    scores = _outlier_scores(found["residual"], method.lower(), 10, 90)
    flags = [(score > fence) - (score < -fence) for score in scores]
    return {"ad_flag": flags, "ad_score": scores, "baseline": found["baseline"]}
