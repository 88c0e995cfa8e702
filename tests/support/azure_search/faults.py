"""Refusals of the double, in the service's form: a status, a code, and a message."""

from __future__ import annotations


class ServiceFaultError(Exception):
    """An answer with an error document."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    @property
    def document(self) -> dict[str, object]:
        return {"error": {"code": self.code, "message": str(self)}}


def invalid(message: str, parameter: str = "") -> ServiceFaultError:
    """What the service says of a request that can never succeed."""
    place = f"\r\nParameter name: {parameter}" if parameter else ""
    return ServiceFaultError(400, "InvalidRequestParameter", f"{message}{place}")


def unknown_here(what: str) -> ServiceFaultError:
    """What the service may well do, and the double does not."""
    return ServiceFaultError(501, "NotInTheDouble", f"The double does not know {what}.")
