"""Entities of an alert as Sentinel stores them: a JSON array with `$id`, and `{"$ref": n}` where one is named again.

A host that a process runs on stands in full at its first mention and as a reference later, at any depth.
"""

from __future__ import annotations

import json
from typing import Any

from sentinel_rag.workspace.sample.company import DOMAIN, NETBIOS, Employee, device_id, host_address, host_name


class EntityList:
    """Builds the array of one alert. Each method returns the number that later entities refer to."""

    def __init__(self) -> None:
        self._entities: list[dict[str, Any]] = []
        self._next = 2
        self._hosts: dict[str, int] = {}

    def _add(self, entity: dict[str, Any]) -> int:
        number = self._next
        self._next += 1
        self._entities.append({"$id": str(number), **entity})
        return number

    def host(self, host: str) -> int:
        known = self._hosts.get(host)
        if known is not None:
            self._entities.append({"$ref": str(known)})
            return known
        self._hosts[host] = self._add(
            {
                "DnsDomain": DOMAIN,
                "HostName": host,
                "FQDN": host_name(host),
                "OSFamily": "Windows",
                "MdatpDeviceId": device_id(host),
                "LastIpAddress": {"Address": host_address(host), "Type": "ip"},
                "Type": "host",
            }
        )
        return self._hosts[host]

    def account(self, person: Employee) -> int:
        return self._add(
            {
                "Name": person.account,
                "UPNSuffix": DOMAIN,
                "NTDomain": NETBIOS,
                "Sid": person.sid,
                "AadUserId": person.object_id,
                "DisplayName": person.display_name,
                "IsDomainJoined": True,
                "Type": "account",
            }
        )

    def ip(self, address: str, country: str = "") -> int:
        location = {"Location": {"CountryCode": country}} if country else {}
        return self._add({"Address": address, **location, "Type": "ip"})

    def url(self, url: str) -> int:
        return self._add({"Url": url, "Type": "url"})

    def file(self, directory: str, name: str, sha256: str, host: int | None = None) -> int:
        where = {"Host": {"$ref": str(host)}} if host is not None else {}
        hash_number = self._next + 1
        number = self._add(
            {
                "Directory": directory,
                "Name": name,
                "FileHashes": [
                    {"$id": str(hash_number), "Algorithm": "SHA256", "Value": sha256, "Type": "filehash"},
                ],
                **where,
                "Type": "file",
            }
        )
        self._next = hash_number + 1
        self._entities.append({"$ref": str(hash_number)})
        return number

    def process(self, command_line: str, process_id: str, image: int, host: int) -> int:
        return self._add(
            {
                "ProcessId": process_id,
                "CommandLine": command_line,
                "ImageFile": {"$ref": str(image)},
                "Host": {"$ref": str(host)},
                "Type": "process",
            }
        )

    def mailbox(self, person: Employee) -> int:
        return self._add(
            {
                "MailboxPrimaryAddress": person.upn,
                "DisplayName": person.display_name,
                "Upn": person.upn,
                "AadId": person.object_id,
                "Type": "mailbox",
            }
        )

    def mail(self, *, sender: str, recipient: str, subject: str, network_message_id: str) -> int:
        return self._add(
            {
                "Recipient": recipient,
                "P1Sender": sender,
                "P2Sender": sender,
                "Subject": subject,
                "NetworkMessageId": network_message_id,
                "Type": "mailmessage",
            }
        )

    def cloud_application(self, name: str, app_id: int) -> int:
        return self._add({"AppId": app_id, "Name": name, "InstanceName": name, "Type": "cloud-application"})

    def json(self) -> str:
        return json.dumps(self._entities, ensure_ascii=False)
