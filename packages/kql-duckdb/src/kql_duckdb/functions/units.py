"""Units of measure: `convert_length`, `convert_mass` and their kind.

Source: the Kusto pages named like the functions, whose names of units these are. The values are the definitions of the
units; each is a multiple of the first of its row.
"""

from __future__ import annotations

import math

from kql_duckdb.errors import not_supported
from kql_duckdb.expressions import Typed, literal
from kql_duckdb.functions.conversion import REAL, convert
from kql_duckdb.functions.definitions import BoundCall, ScalarFunction, fill, function

_INCH, _FOOT, _YARD, _MILE, _SURVEY_FOOT = 0.0254, 0.3048, 0.9144, 1609.344, 1200 / 3937
_LIGHT_YEAR, _PARSEC, _ELECTRON_VOLT = 9_460_730_472_580_800.0, 3.08567758128e16, 1.602176565e-19
_POUND, _GALLON, _IMPERIAL_GALLON, _CUBIC_FOOT = 453.59237, 0.003785411784, 0.00454609, 0.028316846592
_BRITISH_UNIT, _THERM = 1055.05585262, {"Ec": 1.05505585262e8, "Imperial": 1.05505585257348e8, "Us": 1.054804e8}
_RADIAN = 180 / math.pi

_SPEED_LENGTHS = {
    "Nanometer": 1e-9, "Micrometer": 1e-6, "Millimeter": 1e-3, "Centimeter": 1e-2, "Decimeter": 0.1, "Meter": 1.0,
    "Kilometer": 1e3, "Inch": _INCH, "Foot": _FOOT, "Yard": _YARD, "Mile": _MILE, "UsSurveyFoot": _SURVEY_FOOT,
}  # fmt: skip
_SPEED_TIMES = {"Second": 1.0, "Minute": 60.0, "Hour": 3600.0}

UNITS: dict[str, dict[str, float]] = {
    "length": {
        "Meter": 1.0, "Angstrom": 1e-10, "AstronomicalUnit": 149597870700.0, "Centimeter": 1e-2, "Chain": 20.1168,
        "DataMile": 1828.8, "Decameter": 10.0, "Decimeter": 0.1, "DtpPica": _INCH / 6, "DtpPoint": _INCH / 72,
        "Fathom": 1.8288, "Foot": _FOOT, "Hand": 0.1016, "Hectometer": 100.0, "Inch": _INCH,
        "KilolightYear": 1e3 * _LIGHT_YEAR, "Kilometer": 1e3, "Kiloparsec": 1e3 * _PARSEC, "LightYear": _LIGHT_YEAR,
        "MegalightYear": 1e6 * _LIGHT_YEAR, "Megaparsec": 1e6 * _PARSEC, "Microinch": 1e-6 * _INCH, "Micrometer": 1e-6,
        "Mil": 1e-3 * _INCH, "Mile": _MILE, "Millimeter": 1e-3, "Nanometer": 1e-9, "NauticalMile": 1852.0,
        "Parsec": _PARSEC, "PrinterPica": 12 * _INCH / 72.27, "PrinterPoint": _INCH / 72.27, "Shackle": 27.432,
        "SolarRadius": 6.9551e8, "Twip": _INCH / 1440, "UsSurveyFoot": _SURVEY_FOOT, "Yard": _YARD,
    },
    "mass": {
        "Gram": 1.0, "Centigram": 1e-2, "Decagram": 10.0, "Decigram": 0.1, "EarthMass": 5.9722e27, "Grain": 0.06479891,
        "Hectogram": 100.0, "Kilogram": 1e3, "Kilopound": 1e3 * _POUND, "Kilotonne": 1e9,
        "LongHundredweight": 112 * _POUND, "LongTon": 2240 * _POUND, "Megapound": 1e6 * _POUND, "Megatonne": 1e12,
        "Microgram": 1e-6, "Milligram": 1e-3, "Nanogram": 1e-9, "Ounce": _POUND / 16, "Pound": _POUND,
        "ShortHundredweight": 100 * _POUND, "ShortTon": 2000 * _POUND, "Slug": 14593.90293720636,
        "SolarMass": 1.98947e33, "Stone": 14 * _POUND, "Tonne": 1e6,
    },
    "speed": {
        f"{length}Per{time}": meters / seconds
        for length, meters in _SPEED_LENGTHS.items()
        for time, seconds in _SPEED_TIMES.items()
    } | {"Knot": 1852 / 3600},
    "angle": {
        "Degree": 1.0, "Arcminute": 1 / 60, "Arcsecond": 1 / 3600, "Centiradian": 1e-2 * _RADIAN,
        "Deciradian": 0.1 * _RADIAN, "Gradian": 0.9, "Microdegree": 1e-6, "Microradian": 1e-6 * _RADIAN,
        "Millidegree": 1e-3, "Milliradian": 1e-3 * _RADIAN, "Nanodegree": 1e-9, "Nanoradian": 1e-9 * _RADIAN,
        "NatoMil": 0.05625, "Radian": _RADIAN, "Revolution": 360.0,
    },
    "energy": {
        "Joule": 1.0, "BritishThermalUnit": _BRITISH_UNIT, "Calorie": 4.184, "ElectronVolt": _ELECTRON_VOLT,
        "Erg": 1e-7, "FootPound": 1.355817948, "GigabritishThermalUnit": 1e9 * _BRITISH_UNIT,
        "GigaelectronVolt": 1e9 * _ELECTRON_VOLT, "Gigajoule": 1e9,
        "GigawattDay": 8.64e13, "GigawattHour": 3.6e12, "HorsepowerHour": 2.6845195377e6,
        "KilobritishThermalUnit": 1e3 * _BRITISH_UNIT, "Kilocalorie": 4184.0, "KiloelectronVolt": 1e3 * _ELECTRON_VOLT,
        "Kilojoule": 1e3, "KilowattDay": 8.64e7, "KilowattHour": 3.6e6, "MegabritishThermalUnit": 1e6 * _BRITISH_UNIT,
        "Megacalorie": 4.184e6, "MegaelectronVolt": 1e6 * _ELECTRON_VOLT, "Megajoule": 1e6, "MegawattDay": 8.64e10,
        "MegawattHour": 3.6e9, "Millijoule": 1e-3, "TeraelectronVolt": 1e12 * _ELECTRON_VOLT, "TerawattDay": 8.64e16,
        "TerawattHour": 3.6e15, "WattDay": 86400.0, "WattHour": 3600.0,
        **{f"Therm{kind}": joules for kind, joules in _THERM.items()},
        **{f"Decatherm{kind}": 10 * joules for kind, joules in _THERM.items()},
    },
    "force": {
        "Newton": 1.0, "Decanewton": 10.0, "Dyn": 1e-5, "KilogramForce": 9.80665, "Kilonewton": 1e3,
        "KiloPond": 9.80665, "KilopoundForce": 4448.2216152605, "Meganewton": 1e6, "Micronewton": 1e-6,
        "Millinewton": 1e-3,
        "OunceForce": 4.4482216152605 / 16, "Poundal": 0.138254954376, "PoundForce": 4.4482216152605,
        "ShortTonForce": 8896.443230521, "TonneForce": 9806.65,
    },
    "volume": {
        "CubicMeter": 1.0, "AcreFoot": 43560 * _CUBIC_FOOT, "AuTablespoon": 2e-5, "BoardFoot": _CUBIC_FOOT / 12,
        "Centiliter": 1e-5, "CubicCentimeter": 1e-6, "CubicDecimeter": 1e-3, "CubicFoot": _CUBIC_FOOT,
        "CubicHectometer": 1e6, "CubicInch": _INCH**3, "CubicKilometer": 1e9, "CubicMicrometer": 1e-18,
        "CubicMile": _MILE**3, "CubicMillimeter": 1e-9, "CubicYard": _YARD**3, "Decaliter": 1e-2,
        "DecausGallon": 10 * _GALLON, "Deciliter": 1e-4, "DeciusGallon": 0.1 * _GALLON,
        "HectocubicFoot": 100 * _CUBIC_FOOT, "HectocubicMeter": 100.0, "Hectoliter": 0.1,
        "HectousGallon": 100 * _GALLON, "ImperialBeerBarrel": 36 * _IMPERIAL_GALLON,
        "ImperialGallon": _IMPERIAL_GALLON, "ImperialOunce": _IMPERIAL_GALLON / 160,
        "ImperialPint": _IMPERIAL_GALLON / 8, "KilocubicFoot": 1e3 * _CUBIC_FOOT, "KilocubicMeter": 1e3,
        "KiloimperialGallon": 1e3 * _IMPERIAL_GALLON, "Kiloliter": 1.0,
        "KilousGallon": 1e3 * _GALLON, "Liter": 1e-3, "MegacubicFoot": 1e6 * _CUBIC_FOOT,
        "MegaimperialGallon": 1e6 * _IMPERIAL_GALLON, "Megaliter": 1e3, "MegausGallon": 1e6 * _GALLON,
        "MetricCup": 2.5e-4, "MetricTeaspoon": 5e-6, "Microliter": 1e-9, "Milliliter": 1e-6, "OilBarrel": 42 * _GALLON,
        "UkTablespoon": 1.5e-5, "UsBeerBarrel": 31 * _GALLON, "UsCustomaryCup": _GALLON / 16, "UsGallon": _GALLON,
        "UsLegalCup": 2.4e-4, "UsOunce": _GALLON / 128, "UsPint": _GALLON / 8, "UsQuart": _GALLON / 4,
        "UsTablespoon": _GALLON / 256, "UsTeaspoon": _GALLON / 768,
    },
}  # fmt: skip

# To kelvin: (value + offset) * factor.
_TEMPERATURES = {
    "Kelvin": (0.0, 1.0),
    "DegreeCelsius": (273.15, 1.0),
    "DegreeDelisle": (-559.725, -2 / 3),
    "DegreeFahrenheit": (459.67, 5 / 9),
    "DegreeNewton": (273.15 * 0.33, 100 / 33),
    "DegreeRankine": (0.0, 5 / 9),
    "DegreeReaumur": (273.15 * 0.8, 1.25),
    "DegreeRoemer": (273.15 * 21 / 40 - 7.5, 40 / 21),
    "MillidegreeCelsius": (273150.0, 1e-3),
    "SolarTemperature": (0.0, 5778.0),
}


def _converted(call: BoundCall) -> Typed:
    """Null for a unit that there is not."""
    measure = call.name.removeprefix("convert_")
    names = [call.constant_text(place) for place in (1, 2)]
    if None in names:
        raise call.invalid("the units must be string literals.", "SEM0207")
    if "Tilt" in names:
        raise not_supported("the unit 'Tilt'")
    units = {unit: (0.0, factor) for unit, factor in UNITS[measure].items()} if measure in UNITS else _TEMPERATURES
    source, target = units.get(str(names[0])), units.get(str(names[1]))
    if source is None or target is None:
        return literal(None, REAL)
    numbers = [literal(each, REAL) for each in (*source, *target)]
    return fill("({0} + {1}) * {2} / {4} - {3}", REAL, convert(call.arguments[0], REAL), *numbers)


FUNCTIONS: tuple[ScalarFunction, ...] = tuple(
    function(
        f"convert_{measure}(value: number, from: string, to: string)",
        _converted,
        status="partly" if measure == "angle" else "exact",
        note="the unit Tilt is refused" if measure == "angle" else "",
    )
    for measure in (*UNITS, "temperature")
)
