"""What alerts and telemetry of the attack agree on: its hosts, addresses, files and commands."""

from __future__ import annotations

from datetime import timedelta

from sentinel_rag.workspace.sample.company import ATTACKER_ADDRESSES, VICTIM

LENGTH = timedelta(hours=52)
PHISHING_URL = "https://sharepoint-docs.example.net/woodgrove/invoice-4471"
SENDER = "billing@supplier-invoices.example"
EXFILTRATION_DOMAIN = "files.transfer-cdn.example.net"
DUMP_COMMAND = r"rundll32.exe C:\Windows\System32\comsvcs.dll, MiniDump 668 C:\ProgramData\d.dmp full"
ENCRYPTER_SHA256 = "7d1a54127b222502f5b79b5fb0803061152a44f92b37e23c6527baf665d4da9a"
WORKSTATION, FILE_SERVER, DOMAIN_CONTROLLER = VICTIM.host, "srv-file-01", "srv-dc-01"
CLOUD_ADDRESS, EXFILTRATION_ADDRESS = ATTACKER_ADDRESSES
