#!/bin/sh
# Makes what the zones of a deployment prove themselves by: an authority, a certificate for each zone, and a token for each
# border. Writes FOLDER/tls/ZONE/{tls.crt,tls.key,ca.crt} and FOLDER/ZONE.env for deploy/compose.yaml, and
# FOLDER/kubernetes.yaml with the same as Secrets (kubectl apply -f). Nothing that is there already is changed.
#
#   deploy/new-secrets.sh FOLDER [RELEASE [NAMESPACE]]     (RELEASE and NAMESPACE of the Helm chart: sentinel, default)
set -eu
umask 077

if [ $# -lt 1 ]; then
  echo "Say where to: deploy/new-secrets.sh FOLDER [RELEASE [NAMESPACE]]" >&2
  exit 2
fi
command -v openssl >/dev/null || { echo "openssl is needed, and is not here. Install it, then run this again." >&2; exit 1; }
folder=$1 release=${2:-sentinel} namespace=${3:-default}
# By any of them: ca.key is to be kept elsewhere, and another pepper or signing key would end every key and the journal.
for made in ca.key ca.crt tls gateway kubernetes.yaml agent.env web.env interceptor.env tools-data.env; do
  if [ -e "$folder/$made" ]; then
    echo "$folder holds an authority already, or what it made ($made): name another folder, or remove it to begin anew." >&2
    exit 1
  fi
done
mkdir -p "$folder/tls"

days=825
openssl ecparam -name prime256v1 -genkey -noout -out "$folder/ca.key"
openssl req -x509 -new -key "$folder/ca.key" -sha256 -days 3650 -subj "/CN=sentinel-rag zones" \
  -addext "keyUsage=critical,keyCertSign,cRLSign" -out "$folder/ca.crt" 2>/dev/null

zones="web agent interceptor tools-data tools-files tools-web"
for zone in $zones; do
  place=$folder/tls/$zone
  mkdir -p "$place"
  names="DNS:$zone,DNS:$release-$zone,DNS:$release-$zone.$namespace,DNS:$release-$zone.$namespace.svc"
  names="$names,DNS:$release-$zone.$namespace.svc.cluster.local"
  if [ "$zone" = web ]; then names="$names,DNS:localhost"; fi
  openssl ecparam -name prime256v1 -genkey -noout -out "$place/tls.key"
  openssl req -new -key "$place/tls.key" -subj "/CN=$zone" -out "$place/request"  2>/dev/null
  printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\nbasicConstraints=critical,CA:FALSE\n' "$names" >"$place/extensions"
  openssl x509 -req -in "$place/request" -CA "$folder/ca.crt" -CAkey "$folder/ca.key" -CAcreateserial -sha256 \
    -days $days -extfile "$place/extensions" -out "$place/tls.crt" 2>/dev/null
  rm "$place/request" "$place/extensions"
  cp "$folder/ca.crt" "$place/ca.crt"
done

token() { openssl rand -hex 32; }
agent_key=sr_agent_$(token) agent_token=$(token)
data=$(token) files=$(token) web=$(token)

# What every gateway of one database has, and the database never holds (docs/postgresql.md).
mkdir -p "$folder/gateway"
openssl genpkey -algorithm ed25519 -out "$folder/gateway/audit-signing.key"
token >"$folder/gateway/keys.pepper"

printf 'SENTINEL_API_KEY=%s\nSENTINEL_ZONE_TOKEN=%s\n' "$agent_key" "$agent_token" >"$folder/agent.env"
printf 'SENTINEL_AGENT_TOKEN=%s\n' "$agent_token" >"$folder/web.env"
printf 'SENTINEL_ZONE_TOKEN=%s\n' "$data" >"$folder/tools-data.env"
printf 'SENTINEL_ZONE_TOKEN=%s\n' "$files" >"$folder/tools-files.env"
printf 'SENTINEL_ZONE_TOKEN=%s\n' "$web" >"$folder/tools-web.env"
{
  printf 'SENTINEL_API_KEY=%s\n' "$agent_key"
  printf 'SENTINEL_TOOLS_TOKENS=sentinel=%s,knowledge=%s,files=%s,web=%s\n' "$data" "$data" "$files" "$web"
} >"$folder/interceptor.env"

{
  printf 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: sentinel-rag\n  namespace: %s\nstringData:\n' "$namespace"
  printf '  agent-key: %s\n  agent-token: %s\n' "$agent_key" "$agent_token"
  printf '  tools-data-token: %s\n  tools-files-token: %s\n  tools-web-token: %s\n' "$data" "$files" "$web"
  printf -- '---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: sentinel-rag-gateway\n  namespace: %s\ndata:\n' "$namespace"
  for file in audit-signing.key keys.pepper; do
    printf '  %s: %s\n' "$file" "$(base64 <"$folder/gateway/$file" | tr -d '\n')"
  done
  for zone in $zones; do
    printf -- '---\napiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata:\n  name: %s-%s-tls\n' "$release" "$zone"
    printf '  namespace: %s\ndata:\n' "$namespace"
    for file in tls.crt tls.key ca.crt; do
      printf '  %s: %s\n' "$file" "$(base64 <"$folder/tls/$zone/$file" | tr -d '\n')"
    done
  done
} >"$folder/kubernetes.yaml"

# Containers run as the user 10001; as anybody else than root the files stay with whoever made them.
if [ "$(id -u)" = 0 ]; then chown -R 10001:10001 "$folder"/*.env "$folder/gateway" "$folder/tls"; fi
echo "Made in $folder. Keep ca.key elsewhere; the certificates end in $days days."
