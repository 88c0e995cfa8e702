{{- define "sentinel-rag.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels that select one zone: (dict "root" $ "zone" "agent") */}}
{{- define "sentinel-rag.selector" -}}
app.kubernetes.io/part-of: sentinel-rag
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .zone }}
{{- end -}}

{{- define "sentinel-rag.labels" -}}
{{ include "sentinel-rag.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{- define "sentinel-rag.image" -}}
{{- $digest := index .root.Values.image.digests .role -}}
{{ .root.Values.image.repository }}/{{ .role }}{{ if $digest }}@{{ $digest }}{{ else }}:{{ .root.Values.image.tag }}{{ end }}
{{- end -}}

{{/* One variable out of the Secret: (dict "root" $ "variable" "X" "key" "x") */}}
{{- define "sentinel-rag.secretEnv" -}}
- name: {{ .variable }}
  valueFrom:
    secretKeyRef:
      name: {{ .root.Values.secrets.name }}
      key: {{ .key }}
{{- end -}}

{{/* Plain settings, then those out of the Secret: (dict "root" $ "settings" {} "secretSettings" {}) */}}
{{- define "sentinel-rag.settings" -}}
{{- range $name, $value := mergeOverwrite (deepCopy .root.Values.settings) .settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- with .root.Values.secrets.metricsKey }}
{{ include "sentinel-rag.secretEnv" (dict "root" $.root "variable" "SENTINEL_METRICS_TOKEN" "key" .) }}
{{- end }}
{{- range $name, $key := .secretSettings }}
{{ include "sentinel-rag.secretEnv" (dict "root" $.root "variable" $name "key" $key) }}
{{- end }}
{{- end -}}

{{/* The pod of a zone. root, zone, role (image), args (list), ports (name -> number), probe (path of readiness), env (text),
     resources; optional: state (text of a volume source), stateSubPaths, mounts, volumes, initArgs, podLabels, dns,
     hostAliases, affinity */}}
{{- define "sentinel-rag.pod" -}}
metadata:
  labels:
    {{- include "sentinel-rag.labels" . | nindent 4 }}
    {{- with .podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "sentinel-rag.name" .root }}-{{ .zone }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: 30
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  {{- with .root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if hasKey . "dns" }}{{ if not .dns }}
  dnsPolicy: None
  dnsConfig:
    nameservers: [127.0.0.1]
  {{- end }}{{ end }}
  {{- with .hostAliases }}
  hostAliases:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .affinity }}
  affinity:
    {{- . | nindent 4 }}
  {{- end }}
  {{- if or .initArgs .gatewaySecret }}
  initContainers:
  {{- end }}
  {{- if .gatewaySecret }}
    # Files of a mounted Secret are readable by a group, and those of the gateway may be by their owner alone.
    - name: gateway-secrets
      image: {{ include "sentinel-rag.image" . }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      command: ["/opt/sentinel/bin/python", "-I", "-c"]
      args:
        - |
          import os, pathlib
          os.umask(0o077)
          folder = pathlib.Path("/state/gateway")
          folder.mkdir(mode=0o700, exist_ok=True)
          for name in ("audit-signing.key", "keys.pepper"):
              fresh = folder / (name + ".new")
              fresh.write_bytes(pathlib.Path("/gateway-secrets", name).read_bytes())
              fresh.replace(folder / name)
      securityContext:
        {{- include "sentinel-rag.container" . | nindent 8 }}
      resources:
        {{- toYaml .resources | nindent 8 }}
      volumeMounts:
        {{- include "sentinel-rag.mounts" . | nindent 8 }}
        - name: gateway-secrets
          mountPath: /gateway-secrets
          readOnly: true
  {{- end }}
  {{- if .initArgs }}
    - name: prepare
      image: {{ include "sentinel-rag.image" . }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      command: ["/opt/sentinel/bin/sentinel"]
      args: {{ toJson .initArgs }}
      env:
        {{- .env | nindent 8 }}
      securityContext:
        {{- include "sentinel-rag.container" . | nindent 8 }}
      resources:
        {{- toYaml .resources | nindent 8 }}
      volumeMounts:
        {{- include "sentinel-rag.mounts" . | nindent 8 }}
  {{- end }}
  containers:
    - name: {{ .zone }}
      image: {{ include "sentinel-rag.image" . }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args: {{ toJson .args }}
      env:
        - name: SENTINEL_TLS_CERTIFICATE
          value: /etc/sentinel/tls/tls.crt
        - name: SENTINEL_TLS_KEY
          value: /etc/sentinel/tls/tls.key
        - name: SENTINEL_TLS_CA
          value: /etc/sentinel/tls/ca.crt
        {{- .env | nindent 8 }}
      ports:
        {{- range $name, $number := .ports }}
        - name: {{ $name }}
          containerPort: {{ $number }}
        {{- end }}
      {{- $first := values .ports | sortAlpha | first | int }}
      startupProbe:
        {{- include "sentinel-rag.probe" (dict "path" "/healthz" "port" $first) | nindent 8 }}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        {{- include "sentinel-rag.probe" (dict "path" "/healthz" "port" $first) | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: 5
      readinessProbe:
        {{- include "sentinel-rag.probe" (dict "path" .probe "port" $first) | nindent 8 }}
        periodSeconds: 5
        timeoutSeconds: 5
      securityContext:
        {{- include "sentinel-rag.container" . | nindent 8 }}
      resources:
        {{- toYaml .resources | nindent 8 }}
      volumeMounts:
        {{- include "sentinel-rag.mounts" . | nindent 8 }}
        - name: tls
          mountPath: /etc/sentinel/tls
          readOnly: true
        {{- with .mounts }}
        {{- . | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir:
        sizeLimit: 256Mi
    - name: tls
      secret:
        secretName: {{ include "sentinel-rag.name" .root }}-{{ .zone }}-tls
        defaultMode: 0440
    {{- with .gatewaySecret }}
    - name: gateway-secrets
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- with .state }}
    - name: state
      {{- . | nindent 6 }}
    {{- end }}
    {{- with .volumes }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- define "sentinel-rag.mounts" -}}
- name: tmp
  mountPath: /tmp
- name: state
  mountPath: /state
{{- end -}}

{{- define "sentinel-rag.container" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* The kubelet would name the pod's address as host, which no certificate has. */}}
{{- define "sentinel-rag.probe" -}}
httpGet:
  path: {{ .path }}
  port: {{ .port }}
  scheme: HTTPS
  httpHeaders:
    - name: Host
      value: localhost
{{- end -}}

{{/* What does not differ between zones: account, Service, certificate, disruption budget.
     root, zone, ports, replicas; optional: scaled (by load, from the autoscaler's terms), annotations, clusterIP,
     affinitySeconds */}}
{{- define "sentinel-rag.around" -}}
{{- $name := printf "%s-%s" (include "sentinel-rag.name" .root) .zone -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  labels:
    {{- include "sentinel-rag.labels" . | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  labels:
    {{- include "sentinel-rag.labels" . | nindent 4 }}
spec:
  selector:
    {{- include "sentinel-rag.selector" . | nindent 4 }}
  {{- with .clusterIP }}
  clusterIP: {{ . }}
  {{- end }}
  {{- with .affinitySeconds }}
  sessionAffinity: ClientIP
  sessionAffinityConfig:
    clientIP:
      timeoutSeconds: {{ . }}
  {{- end }}
  ports:
    {{- range $port, $number := .ports }}
    - name: {{ $port }}
      port: {{ $number }}
      targetPort: {{ $port }}
    {{- end }}
{{- if .root.Values.tls.issuer }}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ $name }}
  labels:
    {{- include "sentinel-rag.labels" . | nindent 4 }}
spec:
  secretName: {{ $name }}-tls
  issuerRef:
    {{- toYaml .root.Values.tls.issuer | nindent 4 }}
  privateKey:
    algorithm: ECDSA
    rotationPolicy: Always
  usages: [server auth]
  dnsNames:
    - {{ $name }}
    - {{ $name }}.{{ .root.Release.Namespace }}
    - {{ $name }}.{{ .root.Release.Namespace }}.svc
    - {{ $name }}.{{ .root.Release.Namespace }}.svc.cluster.local
{{- end }}
{{- if or (gt (int .replicas) 1) .scaled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  labels:
    {{- include "sentinel-rag.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "sentinel-rag.selector" . | nindent 6 }}
{{- end }}
{{- end -}}

{{/* Replicas by load: (dict "root" $ "zone" "interceptor" "kind" "StatefulSet" "terms" {...}) */}}
{{- define "sentinel-rag.autoscaler" -}}
{{- if .terms.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ include "sentinel-rag.name" .root }}-{{ .zone }}
  labels:
    {{- include "sentinel-rag.labels" . | nindent 4 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: {{ .kind }}
    name: {{ include "sentinel-rag.name" .root }}-{{ .zone }}
  minReplicas: {{ .terms.min }}
  maxReplicas: {{ .terms.max }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: {{ .terms.cpuPercent }}
{{- end }}
{{- end -}}

{{/* A claim for a zone's own volume: (dict "root" $ "zone" "agent" "size" "2Gi") */}}
{{- define "sentinel-rag.claim" -}}
metadata:
  name: state
  labels:
    {{- include "sentinel-rag.selector" . | nindent 4 }}
spec:
  accessModes: [ReadWriteOnce]
  {{- with .root.Values.state.storageClass }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests:
      storage: {{ .size }}
{{- end -}}
