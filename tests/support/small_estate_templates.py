"""The KQL templates that the small estate lists, as `list_kql_templates` tells them."""

from __future__ import annotations

from sentinel_rag.contracts.json_values import JsonObject

TEMPLATES: tuple[JsonObject, ...] = (
    {
        "name": "failed_sign_ins",
        "description": "Failed sign-ins of one account, by application, address and reason.",
        "tables": ["SigninLogs"],
        "parameters": [
            {
                "name": "account",
                "type": "string",
                "required": True,
                "default": None,
                "description": "UPN of the account.",
                "allowed": None,
            }
        ],
        "questions": ["Failed sign-ins of a.user@example.org", "Which sign-ins of user a.user failed"],
        "tactics": ["CredentialAccess"],
        "techniques": ["T1110"],
    },
    {
        "name": "processes_on_host",
        "description": "Processes that ran on one host, newest first.",
        "tables": ["DeviceProcessEvents"],
        "parameters": [
            {
                "name": "host",
                "type": "string",
                "required": True,
                "default": None,
                "description": "Name of the host.",
                "allowed": None,
            }
        ],
        "questions": ["Which processes ran on host srv-9", "Process creation on machine srv-9"],
        "tactics": ["Execution"],
        "techniques": ["T1059"],
    },
    {
        "name": "rare_processes",
        "description": "Processes that ran on few hosts only.",
        "tables": ["DeviceProcessEvents"],
        "parameters": [
            {
                "name": "max_hosts",
                "type": "int",
                "required": False,
                "default": 2,
                "description": "Most hosts.",
                "allowed": None,
            }
        ],
        "questions": ["Which rare processes ran", "Uncommon executables"],
        "tactics": ["Execution"],
        "techniques": [],
    },
    {
        "name": "sign_ins_from_ip",
        "description": "Sign-ins from one address, successful or not.",
        "tables": ["SigninLogs"],
        "parameters": [
            {
                "name": "ip",
                "type": "string",
                "required": True,
                "default": None,
                "description": "IP address.",
                "allowed": None,
            }
        ],
        "questions": ["Sign-ins from ip 192.0.2.1", "Who signed in from 192.0.2.1"],
        "tactics": ["InitialAccess"],
        "techniques": ["T1078"],
    },
    {
        "name": "azure_changes",
        "description": "Changes of Azure resources with caller and address.",
        "tables": ["AzureActivity"],
        "parameters": [],
        "questions": ["Who changed Azure resources", "Azure operations by caller"],
        "tactics": ["Impact"],
        "techniques": [],
    },
    *(
        {
            "name": name,
            "description": description,
            "tables": ["SecurityAlert"],
            "parameters": [],
            "questions": questions,
            "tactics": [],
            "techniques": [],
        }
        for name, description, questions in (
            (
                "alert_count_by_name",
                "How often each alert name fired, with the severity and the time of its newest alert.",
                ["Which alert names are most frequent", "Most common alerts"],
            ),
            (
                "alerts_by_technique",
                "Distinct alerts for each MITRE ATT&CK technique.",
                ["Which techniques do the alerts show most often", "Alerts per technique"],
            ),
            (
                "alerts_by_tactic",
                "Distinct alerts for each MITRE ATT&CK tactic.",
                ["Which tactics do the alerts show most often", "Alerts per tactic"],
            ),
        )
    ),
)
