"""One policy for all tests of the gate: a source that hides, plain sources, and sinks of both kinds."""

from __future__ import annotations

from sentinel_rag.gateway.policy import Policy, parse_policy

TEXT = """
tools:
  - name: read_alert
    server: world
    effect: read
    parameters: [{name: alert, type: string}]
    output_labels:
      - {path: /rows/*/CommandLine, sensitivity: HIGH, integrity: UNTRUSTED}
      - {path: /total, sensitivity: LOW, integrity: TRUSTED}
    exposure:
      - {path: /rows/*/CommandLine, mode: hide}
      - {path: /rows/*/Title, mode: quote}
    taint_rules: [{rule_id: read_alert_any, condition: "true", taint_level: LOW}]
  - name: read_incident
    server: world
    aliases: [incident]
    effect: read
    timeout_s: 7
    reads: ["incident/{incident}"]
    parameters: [{name: incident, type: string, attest: incident}]
    taint_rules: [{rule_id: read_incident_any, condition: "true", taint_level: LOW}]
  - name: read_shown
    server: world
    effect: read
    parameters: [{name: incident, type: string, attest: incident}]
    exposure: [{path: /note, mode: quote}]
    taint_rules: [{rule_id: read_shown_any, condition: "true", taint_level: LOW}]
  - name: read_secret
    server: world
    effect: read
    parameters: []
    taint_rules: [{rule_id: read_secret_any, condition: "true", taint_level: HIGH}]
  - name: search
    server: world
    effect: external
    rate: {calls: 3, seconds: 10}
    parameters: [{name: query, type: string, required: true}]
    taint_rules: [{rule_id: search_any, condition: "true", taint_level: LOW}]
  - name: comment
    server: world
    effect: write
    writes: ["incident/{incident}"]
    parameters:
      - {name: incident, type: string, required: true, attest: incident}
      - {name: message, type: string, required: true, accepts: {sensitivity: HIGH, integrity: UNTRUSTED}}
    taint_rules: [{rule_id: comment_any, condition: "true", taint_level: LOW}]
  - name: isolate
    server: world
    effect: write
    parameters: [{name: host, type: string, required: true, attest: host}]
    taint_rules: [{rule_id: isolate_any, condition: "true", taint_level: LOW, offers_approval: true}]
  - name: close
    server: world
    effect: write
    parameters: [{name: incident, type: string, required: true, attest: incident}]
    taint_rules: [{rule_id: close_asks, condition: "true", taint_level: MEDIUM, requires_approval: true}]
  - name: check_text
    server: world
    effect: read
    parameters: [{name: text, type: string, required: true}, {name: count, type: integer}]
    taint_rules:
      - {rule_id: check_text_deny, condition: "text.contains('admin')", taint_level: MEDIUM, deny: true}
      - {rule_id: check_text_any, condition: "text.contains('a')", taint_level: LOW}
  - name: elsewhere
    server: nowhere
    effect: read
    parameters: [{name: text, type: string}]
    taint_rules: [{rule_id: elsewhere_any, condition: "true", taint_level: LOW}]
endorsement:
  - {name: participants, tool: read_incident, parameter: incident, path: /entities/*/host, kind: host}
  - {name: shown, tool: read_shown, parameter: incident, path: /hosts/*, kind: host}
"""


def gate_policy() -> Policy:
    return parse_policy(TEXT, source="gate")
