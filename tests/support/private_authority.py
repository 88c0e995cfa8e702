"""A certificate authority for a test: what `cert-manager` or a company's own does for zones that run apart."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True)
class Authority:
    """An authority whose certificate is `ca.crt` in `folder`; `issue` puts `NAME.crt` and `NAME.key` there. Its clock
    is `ahead` of this machine's."""

    folder: Path
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    ahead: datetime.timedelta = datetime.timedelta(0)

    @property
    def file(self) -> Path:
        path = self.folder / "ca.crt"
        if not path.exists():
            path.write_bytes(self._signed("ca", self.key, is_authority=True).public_bytes(serialization.Encoding.PEM))
        return path

    def issue(self, name: str, *hosts: str, key: PrivateKey | None = None) -> dict[str, str]:
        """The settings of a certificate for `hosts` (default: 127.0.0.1 and the name), with a new key or `key`."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(name, key, hosts=hosts or ("127.0.0.1", name))
        (self.folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        (self.folder / f"{name}.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return {
            "SENTINEL_TLS_CERTIFICATE": str(self.folder / f"{name}.crt"),
            "SENTINEL_TLS_KEY": str(self.folder / f"{name}.key"),
            "SENTINEL_TLS_CA": str(self.file),
        }

    def _signed(
        self, name: str, key: PrivateKey, hosts: tuple[str, ...] = (), *, is_authority: bool = False
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC) + self.ahead
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if hosts:
            made = made.add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), False)
        return made.sign(self.key, hashes.SHA256())


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
