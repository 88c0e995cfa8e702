"""`geo_info_from_ip_address`: null for an address that is on no map; this workspace knows the place of no other.

Azure looks addresses up in a geographic database that is not shipped here. An address of a private, local or reserved
network is in no such database, so null is right for it; a public one stops the query with a sentence that says why,
because a null for it would silently pass or fail every condition on a country.
"""

from __future__ import annotations

from sentinel_rag.workspace.kql.sql_forms import WrittenFunction, bound, scalar

_OCTETS = r"^\d{1,3}(\.\d{1,3}){3}$"
_LOCAL_IPV4 = (
    r"^(0|10|127|2[2-5]\d|192\.168|169\.254|172\.(1[6-9]|2\d|3[01])|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])|198\.1[89])\."
)
_LOCAL_IPV6 = r"(?i)^(::1?$|f[cd]|fe[89ab]|ff|2001:db8:)"
_REASON = "geo_info_from_ip_address has no data here about the place of public addresses"


def _location(address: str) -> str:
    known_to_nobody = (
        f"_a IS NULL OR (NOT regexp_matches(_a, '{_OCTETS}') AND NOT contains(_a, ':')) "
        f"OR regexp_matches(_a, '{_LOCAL_IPV4}') OR regexp_matches(_a, '{_LOCAL_IPV6}')"
    )
    return bound("_a", address, f"CASE WHEN {known_to_nobody} THEN CAST(NULL AS JSON) ELSE error('{_REASON}') END")


FUNCTIONS: tuple[WrittenFunction, ...] = (scalar("geo_info_from_ip_address", _location, 1),)
