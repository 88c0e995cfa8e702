"""Who reaches whom under a set of Kubernetes NetworkPolicies, as a network plugin reads them.

For manifests of one release: pods are told apart by their component, and peers beyond the release by what selects them.
A connection between two zones needs both, the one's egress and the other's ingress.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Manifest = Mapping[str, Any]
Way = tuple[str, str, int]
"""From, to, TCP port. What is no zone is named by its selector or address range."""

COMPONENT = "app.kubernetes.io/component"
_WORKLOADS = ("Deployment", "StatefulSet")


def workloads(manifests: Iterable[Manifest]) -> dict[str, Manifest]:
    """The pod template of each zone, by its component."""
    return {
        each["spec"]["template"]["metadata"]["labels"][COMPONENT]: each["spec"]["template"]
        for each in manifests
        if each["kind"] in _WORKLOADS
    }


def ways(manifests: Sequence[Manifest]) -> set[Way]:
    """Every connection that the policies let pass. Raises ValueError for a zone that no policy isolates: it would
    reach, and be reached by, everything."""
    pods = {zone: template["metadata"]["labels"] for zone, template in workloads(manifests).items()}
    policies = [each["spec"] for each in manifests if each["kind"] == "NetworkPolicy"]
    for zone, labels in pods.items():
        for direction in ("Ingress", "Egress"):
            if not any(_selects(each, labels) and direction in each["policyTypes"] for each in policies):
                raise ValueError(f"no policy isolates {zone} for {direction}")
    outgoing = set(_rules(policies, pods, "egress", "to"))
    incoming = {(far, zone, port) for zone, far, port in _rules(policies, pods, "ingress", "from")}
    found = {way for way in outgoing if way[1] not in pods or way in incoming}
    return found | {way for way in incoming if way[0] not in pods}


def _rules(
    policies: Sequence[Manifest], pods: Mapping[str, Manifest], part: str, word: str
) -> Iterator[tuple[str, str, int]]:
    for policy in policies:
        for zone, labels in pods.items():
            if not _selects(policy, labels):
                continue
            for rule in policy.get(part) or ():
                ports = [each["port"] for each in rule.get("ports", ()) if each.get("protocol", "TCP") == "TCP"]
                if not rule.get(word) or not ports:  # Kubernetes reads it as everybody, or every port
                    yield from ((zone, "everybody", port) for port in ports or [0])
                    continue
                for peer in rule[word]:
                    for far in _named(peer, pods):
                        yield from ((zone, far, port) for port in ports)


def _named(peer: Manifest, pods: Mapping[str, Manifest]) -> list[str]:
    if "ipBlock" in peer:
        excepted = " without private ranges" if peer["ipBlock"].get("except") else ""
        return [peer["ipBlock"]["cidr"] + excepted]
    if "namespaceSelector" in peer:
        labels = {**peer["namespaceSelector"].get("matchLabels", {}), **_wanted(peer)}
        return [",".join(f"{name.rpartition('/')[2]}={value}" for name, value in sorted(labels.items())) or "everybody"]
    return [zone for zone, labels in pods.items() if _wanted(peer).items() <= labels.items()]


def _wanted(peer: Manifest) -> Mapping[str, str]:
    found: Mapping[str, str] = peer.get("podSelector", {}).get("matchLabels", {})
    return found


def _selects(policy: Manifest, labels: Mapping[str, str]) -> bool:
    return bool(policy["podSelector"].get("matchLabels", {}).items() <= labels.items())
