"""The alerts that products raise on the attack, step by step, each with its entities as Defender writes them."""

from __future__ import annotations

from datetime import datetime, timedelta

from sentinel_rag.workspace.estate.attack_facts import (
    CLOUD_ADDRESS,
    DOMAIN_CONTROLLER,
    DUMP_COMMAND,
    ENCRYPTER_SHA256,
    EXFILTRATION_ADDRESS,
    FILE_SERVER,
    PHISHING_URL,
    SENDER,
    WORKSTATION,
)
from sentinel_rag.workspace.estate.company import ADMINISTRATOR, VICTIM, host_address, host_name
from sentinel_rag.workspace.estate.entities import EntityList
from sentinel_rag.workspace.estate.hostile_texts import MAIL_SUBJECT
from sentinel_rag.workspace.estate.records import AlertCase, stable_guid


def attack_alerts(start: datetime, seed: int) -> tuple[AlertCase, ...]:
    """All of them, oldest first, for an attack that begins at `start`."""
    mail = EntityList()
    mail.mailbox(VICTIM)
    mail.mail(
        sender=SENDER, recipient=VICTIM.upn, subject=MAIL_SUBJECT, network_message_id=stable_guid(seed, "phishing mail")
    )
    mail.url(PHISHING_URL)
    mail.account(VICTIM)

    sign_in = EntityList()
    sign_in.account(VICTIM)
    sign_in.ip(CLOUD_ADDRESS, "RO")
    sign_in.cloud_application("Microsoft Exchange Online", 20893)

    rule = EntityList()
    rule.account(VICTIM)
    rule.mailbox(VICTIM)
    rule.ip(CLOUD_ADDRESS, "RO")

    movement = EntityList()
    workstation = movement.host(WORKSTATION)
    movement.account(VICTIM)
    image = movement.file(r"C:\Users\Public", "psexesvc.exe", ENCRYPTER_SHA256[::-1], workstation)
    movement.process(r"psexesvc.exe \\srv-file-01 -s cmd.exe", "5120", image, workstation)
    movement.host(FILE_SERVER)
    movement.host(WORKSTATION)

    dump = EntityList()
    server = dump.host(FILE_SERVER)
    dump.account(VICTIM)
    image = dump.file(r"C:\Windows\System32", "rundll32.exe", "a" * 8 + ENCRYPTER_SHA256[8:], server)
    dump.process(DUMP_COMMAND, "7344", image, server)
    dump.host(FILE_SERVER)

    takeover = EntityList()
    takeover.account(ADMINISTRATOR)
    takeover.host(DOMAIN_CONTROLLER)
    takeover.ip(host_address(FILE_SERVER))

    leak = EntityList()
    leak.host(FILE_SERVER)
    leak.ip(EXFILTRATION_ADDRESS, "RO")
    leak.account(ADMINISTRATOR)

    encryption = EntityList()
    server = encryption.host(FILE_SERVER)
    image = encryption.file(r"C:\ProgramData\svc", "winupd64.exe", ENCRYPTER_SHA256, server)
    encryption.process(r"C:\ProgramData\svc\winupd64.exe --path D:\Shares --ext .wdgrv", "9012", image, server)
    encryption.account(ADMINISTRATOR)
    encryption.host(FILE_SERVER)

    def at(hours: float) -> datetime:
        return start + timedelta(hours=hours)

    return (
        AlertCase(
            key="attack-phishing",
            name="A potentially malicious URL click was detected",
            severity="Medium",
            at=at(0.4),
            product="MDO",
            description="A user clicked a link that was classified as phishing after delivery.",
            entities=mail.json(),
            tactics=("InitialAccess",),
            techniques=("T1566",),
            compromised=VICTIM.upn,
        ),
        AlertCase(
            key="attack-sign-in",
            name="Unfamiliar sign-in properties",
            severity="High",
            at=at(0.9),
            product="AADIP",
            description="Sign-in from a country not seen for this user, after fourteen refused MFA prompts.",
            entities=sign_in.json(),
            tactics=("InitialAccess", "CredentialAccess"),
            techniques=("T1078", "T1621"),
            compromised=VICTIM.upn,
            extended={"Client IP Address": CLOUD_ADDRESS, "Client Location": "Bucharest, RO"},
        ),
        AlertCase(
            key="attack-inbox-rule",
            name="Suspicious inbox manipulation rule",
            severity="Medium",
            at=at(1.5),
            product="MCAS",
            description="A rule that hides messages about invoices and security was set on the mailbox.",
            entities=rule.json(),
            tactics=("DefenseEvasion", "Collection"),
            techniques=("T1564", "T1114"),
            compromised=VICTIM.upn,
        ),
        AlertCase(
            key="attack-lateral",
            name="Suspicious remote activity",
            severity="Medium",
            at=at(26.2),
            product="MDE",
            description="A service was installed and started on another device from this one.",
            entities=movement.json(),
            tactics=("LateralMovement", "Execution"),
            techniques=("T1021", "T1569"),
            compromised=host_name(WORKSTATION),
        ),
        AlertCase(
            key="attack-lsass",
            name="Sensitive credential memory read",
            severity="High",
            at=at(28.1),
            product="MDE",
            description="The memory of LSASS was written to a file by comsvcs.dll.",
            entities=dump.json(),
            tactics=("CredentialAccess",),
            techniques=("T1003",),
            compromised=host_name(FILE_SERVER),
        ),
        AlertCase(
            key="attack-domain-admin",
            name="Domain administrator logon from an unusual device",
            severity="High",
            at=at(29.3),
            product="SENTINEL",
            description="A domain administrator signed in to a domain controller from a file server.",
            entities=takeover.json(),
            tactics=("PrivilegeEscalation", "LateralMovement"),
            techniques=("T1078", "T1550"),
            compromised=host_name(DOMAIN_CONTROLLER),
            extended={
                "Query": (
                    "SecurityEvent\n| where EventID == 4624 and TargetUserName == 'asa.oberg'\r\n"
                    "| where AuthenticationPackageName == 'NTLM'\r\n| take 10"
                ),
                "Query Start Time UTC": (start + timedelta(hours=28)).isoformat() + "Z",
                "Query End Time UTC": (start + timedelta(hours=30)).isoformat() + "Z",
            },
        ),
        AlertCase(
            key="attack-exfiltration",
            name="Unusual volume of data sent to a rare destination",
            severity="High",
            at=at(40.2),
            product="SENTINEL",
            description="4.6 GB were sent from a file server to an address that no other device contacts.",
            entities=leak.json(),
            tactics=("Exfiltration",),
            techniques=("T1048",),
            compromised=host_name(FILE_SERVER),
            extended={
                "Query": (
                    "CommonSecurityLog\n| where DeviceAction == 'allow'\n"
                    "| summarize SentBytes = sum(SentBytes), Sessions = count() by SourceIP, DestinationIP\n"
                    "| where SentBytes > 4000000000"
                ),
                "Query Start Time UTC": (start + timedelta(hours=39)).isoformat() + "Z",
                "Query End Time UTC": (start + timedelta(hours=41)).isoformat() + "Z",
            },
        ),
        AlertCase(
            key="attack-encryption",
            name="Ransomware behavior was blocked",
            severity="High",
            at=at(47.1),
            product="MDE",
            description="Shadow copies were deleted and files renamed in bulk; the process was stopped.",
            entities=encryption.json(),
            tactics=("Impact",),
            techniques=("T1486", "T1490"),
            compromised=host_name(FILE_SERVER),
            remediation=(
                "Keep the device isolated.",
                "Restore from the backup taken before the user’s “Invoice 4471”.",
            ),
        ),
    )
