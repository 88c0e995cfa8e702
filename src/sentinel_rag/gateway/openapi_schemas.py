"""The JSON schemas of the gateway's bodies, by name, as the OpenAPI document refers to them. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentinel_rag.contracts.labels import Integrity, Sensitivity
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.policy.model import Effect
from sentinel_rag.gateway.request_body import MAX_TOOL_NAME

Schema = Mapping[str, Any]


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def exactly(properties: Mapping[str, Schema], *, optional: tuple[str, ...] = ()) -> Schema:
    """An object with these properties and no others, all but `optional` required."""
    required = [name for name in properties if name not in optional]
    return {
        "type": "object",
        "properties": dict(properties),
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def listed(items: Schema) -> Schema:
    return {"type": "array", "items": items}


TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
WHOLE: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
TIME: Schema = {"type": "string", "format": "date-time"}
ANY: Schema = {}

POLICY_STATE: Mapping[str, Schema] = {
    "policy": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "source": TEXT,
    "loaded_at": {"type": ["string", "null"], "format": "date-time"},
    "refused": {
        "oneOf": [{"type": "null"}, exactly({"sha256": MAYBE_TEXT, "problems": listed(TEXT), "at": TIME})],
        "description": "The newest version of the file, if it did not load.",
    },
}
DEFINITION = exactly({"sha256": TEXT, "definition": OBJECT})

NAMED = listed(exactly({"kind": TEXT, "text": TEXT}))

NAMES: Schema = {"type": "object", "description": "Names of keys in these records, by their ids."}

SCHEMAS: Mapping[str, Schema] = {
    "Label": exactly(
        {
            "sensitivity": {"enum": [level.name for level in Sensitivity]},
            "integrity": {"enum": [integrity.name for integrity in Integrity]},
        }
    ),
    "Execute": exactly(
        {
            "session_id": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"},
            "tool_name": {"type": "string", "minLength": 1, "maxLength": MAX_TOOL_NAME},
            "args": {"type": "object", "description": "What the tool takes; a hidden value is passed by its handle."},
            "if_effect": {
                "enum": [None, *(effect.value for effect in Effect)],
                "description": "Run only if this is the tool's effect; else 409, and nothing ran.",
            },
        },
        optional=("if_effect",),
    ),
    "Policy": exactly({**POLICY_STATE, "text": MAYBE_TEXT}),
    "PolicyReloaded": exactly({"status": {"enum": ["loaded", "unchanged"]}, **POLICY_STATE}),
    "PolicyNotLoaded": exactly(
        {"detail": TEXT, "status": {"const": "error"}, "reason": {"const": "invalid_argument"}, **POLICY_STATE}
    ),
    "Executed": exactly({"result": ANY, "status": {"const": "success"}, "audit_id": TEXT}),
    "Problem": {
        **exactly(
            {
                "detail": {"type": "string", "description": "One sentence for people; it may change."},
                "status": {"enum": ["denied", "error"]},
                "reason": {"enum": [reason.value for reason in Reason], "description": "Stable, for programs."},
                "rule_id": MAYBE_TEXT,
                "audit_id": {"type": "string", "description": "Where the journal holds it; missing if nothing does."},
                "approval_id": {"type": "string", "description": "The approval that waits for a person."},
                "decided_by": {
                    "const": "asker",
                    "description": "The person who asked confirms it with their own key.",
                },
                "at_yes": {"const": "run", "description": "The call runs as soon as it is approved."},
                "note": TEXT,
                "error": ref("ToolError"),
            },
            optional=("rule_id", "audit_id", "approval_id", "decided_by", "at_yes", "note", "error"),
        ),
    },
    "ToolError": exactly(
        {
            "kind": {"const": "error"},
            "code": TEXT,
            "message": TEXT,
            "next_step": TEXT,
            "field": TEXT,
            "allowed": listed(TEXT),
            "retry_possible": FLAG,
            "retry_after_s": {"type": ["number", "null"]},
            "line": {"type": ["integer", "null"]},
            "position": {"type": ["integer", "null"]},
            "problems": listed(
                exactly(
                    {
                        "code": TEXT,
                        "message": TEXT,
                        "line": {"type": ["integer", "null"]},
                        "column": {"type": ["integer", "null"]},
                        "length": {"type": ["integer", "null"]},
                        "nearest": listed(TEXT),
                    }
                )
            ),
        }
    ),
    "Tools": exactly(
        {
            "tools": listed(
                exactly(
                    {
                        "name": TEXT,
                        "description": TEXT,
                        "parameters": {"type": "object", "description": "A JSON schema."},
                        "aliases": listed(TEXT),
                        "effect": {"enum": ["read", "write", "external"]},
                        "refused_now": {
                            "type": "boolean",
                            "description": "With session_id: whether every call of it would be refused there now.",
                        },
                        "reason": {"enum": [Reason.SINK_LABEL.value]},
                        "why": TEXT,
                    },
                    optional=("refused_now", "reason", "why"),
                )
            ),
            "policy": {"type": "string", "description": "SHA-256 of the policy file in force."},
        }
    ),
    "SessionOpened": exactly({"session_id": TEXT, "context": ref("Label")}),
    "Session": exactly(
        {
            "session_id": TEXT,
            "context": ref("Label"),
            "closed": FLAG,
            "raised_by": listed(exactly({"audit_id": TEXT, "tool": TEXT, "label": ref("Label"), "at": TIME})),
            "named": listed(exactly({"kind": TEXT, "text": TEXT, "by": TEXT})),
        },
        optional=("named",),
    ),
    "Words": exactly(
        {
            "text": {"type": "string", "description": "What the person wrote, as it was written."},
            "chosen": {"type": "string", "description": "The option shown that the words pick; it names nothing."},
        },
        optional=("chosen",),
    ),
    "WordsNamed": exactly({"named": NAMED}),
    "Plan": exactly(
        {
            "steps": {
                "type": "array",
                "minItems": 1,
                "maxItems": 50,
                "items": exactly({"tool": TEXT, "args": OBJECT}),
                "description": "Calls; an argument may be a slot, see docs/policy.md.",
            }
        }
    ),
    "PlanTaken": exactly({"steps": {"type": "integer", "minimum": 1}}),
    "Handles": exactly({"handles": {**listed(TEXT), "maxItems": 500}}),
    "HandleValues": exactly({"values": OBJECT, "refused": listed(TEXT)}),
    "AuditEntry": exactly(
        {
            "record": {"type": "object", "description": "As it was hashed; docs/audit.md lists the kinds."},
            "hash": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "outcome": {"enum": ["success", "error", "unknown", None]},
        }
    ),
    "AuditPage": exactly(
        {
            "records": listed(ref("AuditEntry")),
            "names": NAMES,
            "next_after": WHOLE,
            "next_before": {"type": ["integer", "null"], "description": "With `before`; null: there are no more."},
        },
        optional=("next_after", "next_before"),
    ),
    "SessionRecords": exactly(
        {
            "records": listed(exactly({"record": {"type": "object"}, "outcome": {"type": ["string", "null"]}})),
            "whole": {"type": "boolean", "description": "False: the session has more than was looked at."},
            "head": exactly({"seq": WHOLE, "hash": {"type": "string"}}),
        }
    ),
    "AuditRecords": exactly({"records": listed(ref("AuditEntry")), "names": NAMES}),
    "Approval": {
        "type": "object",
        "description": "The exact call, its labels and what raised them; docs/approvals.md explains each field.",
        "required": ["approval_id", "state", "may_decide"],
    },
    "ApprovalPage": exactly(
        {
            "approvals": listed(ref("Approval")),
            "left_off": WHOLE,
            "pending_by_tool": {"type": "object", "additionalProperties": WHOLE},
            "mark": {"type": "string", "description": "For the next request, to wait for a change."},
        }
    ),
    "Comment": exactly({"comment": {"type": "string", "maxLength": 2_000}}, optional=("comment",)),
    "Decision": exactly(
        {
            "approval_id": TEXT,
            "decision": {"enum": ["approve", "deny"]},
            "token": {"type": "string", "description": "The one of the notice."},
            "actor": {"type": "string", "maxLength": 200},
            "comment": {"type": "string", "maxLength": 2_000},
        },
        optional=("actor", "comment"),
    ),
    "Decided": exactly({"approval_id": TEXT, "state": TEXT}),
    "Pin": exactly(
        {
            "server": TEXT,
            "tool": TEXT,
            "state": {"enum": ["pinned", "quarantined"]},
            "vouched": FLAG,
            "accepted": DEFINITION,
            "waiting": {"oneOf": [{"type": "null"}, DEFINITION]},
        }
    ),
    "Pins": exactly({"pins": listed(ref("Pin"))}),
    "Accept": exactly({"sha256": {"type": "string", "description": "The hash of the definition that waits."}}),
    "KeyTerms": exactly(
        {
            "name": TEXT,
            "scopes": listed({"enum": ["user", "approve", "audit", "admin"]}),
            "clearance": {"enum": [level.name for level in Sensitivity]},
            "readers": listed(TEXT),
            "replaces": {**MAYBE_TEXT, "description": "The key that ends with this one's beginning."},
        }
    ),
    "NewKey": exactly({"key": {**TEXT, "description": "Its text, shown this once."}, "key_id": TEXT}),
    "StoreChange": exactly(
        {
            "store": TEXT,
            "change": {"enum": ["put", "removed", "imported", "read"]},
            "name": TEXT,
            "state": {"enum": ["asked", "done", "refused"]},
            "bytes": {"type": ["integer", "null"], "minimum": 0},
            "sha256": {**MAYBE_TEXT, "description": "64 hexadecimal digits, of a file."},
            "audit_id": {**MAYBE_TEXT, "description": "That of the record before; null for the first."},
        }
    ),
    "StoreChangeRecord": exactly({"audit_id": TEXT}),
    "McpRequest": {
        "type": "object",
        "description": "A JSON-RPC 2.0 message of MCP, revision 2025-03-26 to 2025-11-25 or 2026-07-28.",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"oneOf": [{"type": "integer"}, {"type": "string", "maxLength": 256}]},
            "method": {"enum": ["initialize", "notifications/initialized", "ping", "tools/list", "tools/call"]},
            "params": OBJECT,
        },
        "required": ["jsonrpc", "method"],
        "additionalProperties": False,
    },
    "McpMessage": {
        "type": "object",
        "properties": {"jsonrpc": {"const": "2.0"}, "id": ANY, "result": OBJECT, "error": OBJECT},
        "required": ["jsonrpc", "id"],
        "additionalProperties": False,
    },
    "McpProblem": {"oneOf": [ref("Problem"), ref("McpMessage")]},
    "Health": exactly({"status": {"const": "ok"}}),
    "Ready": {
        "type": "object",
        "properties": {
            "status": {"enum": ["ready", "not_ready"]},
            "checks": {"type": "object", "additionalProperties": TEXT},
        },
        "required": ["status", "checks"],
    },
}
