{{/*
The exporter's container. Takes `root` and the names of what differs beside another workload: `port`, `volume`
(a prefix of volume names), `sidecar`.
*/}}
{{- define "pds-exporter.container" -}}
{{- $root := .root -}}
{{- $web := $root.Values.webConfig -}}
name: pds-exporter
image: {{ include "pds-exporter.image" $root }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
args:
  - --config.file=/etc/pds-exporter/pds-exporter.toml
  - --config.auto-reload-interval={{ $root.Values.configReloadInterval }}
  - --web.listen-address=:{{ $root.Values.web.port }}
  {{- with $root.Values.web.routePrefix }}
  - --web.route-prefix={{ . }}
  {{- end }}
  {{- if ne $root.Values.web.telemetryPath "/metrics" }}
  - --web.telemetry-path={{ $root.Values.web.telemetryPath }}
  {{- end }}
  {{- with $root.Values.web.externalUrl }}
  - --web.external-url={{ . }}
  {{- end }}
  {{- if eq $root.Values.mode "sharded" }}
  - --shard.index=$(PDS_SHARD_INDEX)
  - --shard.count=$(PDS_SHARD_COUNT)
  {{- end }}
  {{- if $web.existingSecret }}
  - --web.config.file=/etc/pds-exporter-web/web-config.yml
  - --web.probes-without-auth
  {{- end }}
  {{- with $root.Values.extraArgs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with include "pds-exporter.env" $root | trim }}
env:
  {{- . | nindent 2 }}
{{- end }}
ports:
  - name: {{ .port }}
    containerPort: {{ $root.Values.web.port }}
livenessProbe:
  {{- include "pds-exporter.probe" (dict "web" $web "port" .port "path" (printf "%s/-/healthy" (include "pds-exporter.prefix" $root))) | nindent 2 }}
  {{- toYaml $root.Values.livenessProbe | nindent 2 }}
{{- if not .sidecar }}
readinessProbe:
  {{- include "pds-exporter.probe" (dict "web" $web "port" .port "path" (printf "%s/-/ready" (include "pds-exporter.prefix" $root))) | nindent 2 }}
  {{- toYaml $root.Values.readinessProbe | nindent 2 }}
{{- end }}
resources:
  {{- include "pds-exporter.resources" $root | nindent 2 }}
{{- $security := $root.Values.securityContext }}
{{- if and .sidecar $security }}
{{- /* The pod's own context is not ours to set. */}}
{{- $group := get ($root.Values.podSecurityContext | default dict) "runAsGroup" }}
{{- if $group }}
{{- $security = merge (dict "runAsGroup" $group) $security }}
{{- end }}
{{- end }}
{{- with $security }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - name: {{ .volume }}config
    mountPath: /etc/pds-exporter
    readOnly: true
  - name: {{ .volume }}token
    mountPath: /run/secrets/pds
    readOnly: true
  {{- if ne (include "pds-exporter.disk" $root) "none" }}
  - name: {{ .volume }}state
    mountPath: /var/lib/pds-exporter
  {{- end }}
  {{- if $root.Values.state.prometheus.existingSecret }}
  - name: {{ .volume }}prometheus
    mountPath: /run/secrets/prometheus
    readOnly: true
  {{- end }}
  {{- if $web.existingSecret }}
  - name: {{ .volume }}web
    mountPath: /etc/pds-exporter-web
    readOnly: true
  {{- end }}
  {{- with $root.Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "pds-exporter.env" -}}
{{- if eq .Values.mode "sharded" }}
# The pod's ordinal, from 0. Set by Kubernetes 1.28 and later.
- name: PDS_SHARD_INDEX
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['apps.kubernetes.io/pod-index']
- name: PDS_SHARD_COUNT
  value: {{ .Values.shards | quote }}
{{- end }}
{{- if ne (include "pds-exporter.disk" .) "none" }}
- name: PDS_EXPORTER__STATE__PATH
  value: /var/lib/pds-exporter/state.log
{{- end }}
{{- $prometheus := .Values.state.prometheus }}
{{- if $prometheus.url }}
- name: PDS_EXPORTER__STATE__PROMETHEUS_URL
  value: {{ $prometheus.url | quote }}
- name: PDS_EXPORTER__STATE__LOOKBACK
  value: {{ $prometheus.lookback | quote }}
{{- with $prometheus.selector }}
- name: PDS_EXPORTER__STATE__PROMETHEUS_SELECTOR
  value: {{ . | quote }}
{{- end }}
{{- with $prometheus.username }}
- name: PDS_EXPORTER__STATE__PROMETHEUS_USERNAME
  value: {{ . | quote }}
{{- end }}
{{- range $variable, $key := dict "TOKEN" $prometheus.tokenKey "PASSWORD" $prometheus.passwordKey "CA" $prometheus.caKey }}
{{- if $key }}
- name: PDS_EXPORTER__STATE__PROMETHEUS_{{ $variable }}_FILE
  value: /run/secrets/prometheus/{{ $key }}
{{- end }}
{{- end }}
{{- with $prometheus.headersKey }}
- name: PDS_EXPORTER__STATE__PROMETHEUS_HEADERS
  valueFrom:
    secretKeyRef:
      name: {{ $prometheus.existingSecret }}
      key: {{ . }}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "pds-exporter.probe" -}}
{{- if .web.clientCertificates -}}
tcpSocket:
  port: {{ .port }}
{{- else -}}
httpGet:
  path: {{ .path }}
  port: {{ .port }}
  {{- if .web.tls }}
  scheme: HTTPS
  {{- end }}
{{- end -}}
{{- end -}}

{{/* What a claim for the state asks for. */}}
{{- define "pds-exporter.claim" -}}
accessModes:
  {{- toYaml .Values.state.accessModes | nindent 2 }}
{{- with .Values.state.storageClassName }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ .Values.state.size }}
{{- end -}}

{{/* The files of the configuration: one ConfigMap, or several sources in one folder. */}}
{{- define "pds-exporter.configVolume" -}}
{{- $name := printf "%s-config" (include "pds-exporter.name" .) -}}
{{- $existing := .Values.existingConfig -}}
{{- if $existing.volume -}}
{{ toYaml $existing.volume }}
{{- else if or .Values.configFiles $existing.configMaps $existing.secrets -}}
projected:
  sources:
    {{- if .Values.config }}
    - configMap:
        name: {{ $name }}
    {{- end }}
    {{- range $file, $text := .Values.configFiles }}
    - configMap:
        name: {{ $name }}-{{ trimSuffix ".toml" $file }}
    {{- end }}
    {{- range $existing.configMaps }}
    - configMap:
        name: {{ . }}
    {{- end }}
    {{- range $existing.secrets }}
    - secret:
        name: {{ . }}
    {{- end }}
{{- else -}}
configMap:
  name: {{ $name }}
{{- end }}
{{- end -}}

{{/* The tokens: all keys of the Secrets, and the default token under its usual name. Takes `token` and `mode`. */}}
{{- define "pds-exporter.tokenVolume" -}}
{{- $renamed := ne .token.key "token" -}}
{{- if or $renamed .token.moreSecrets -}}
projected:
  defaultMode: {{ .mode }}
  sources:
    - secret:
        name: {{ .token.existingSecret }}
    {{- if $renamed }}
    - secret:
        name: {{ .token.existingSecret }}
        items:
          - key: {{ .token.key }}
            path: token
    {{- end }}
    {{- range .token.moreSecrets }}
    - secret:
        name: {{ . }}
    {{- end }}
{{- else -}}
secret:
  secretName: {{ .token.existingSecret }}
  defaultMode: {{ .mode }}
{{- end }}
{{- end -}}

{{/* Takes `root`, `volume`, `mode` (of the files of Secrets). */}}
{{- define "pds-exporter.volumes" -}}
{{- $root := .root -}}
{{- $disk := include "pds-exporter.disk" $root -}}
- name: {{ .volume }}config
  {{- include "pds-exporter.configVolume" $root | nindent 2 }}
- name: {{ .volume }}token
  {{- include "pds-exporter.tokenVolume" (dict "token" $root.Values.token "mode" .mode) | nindent 2 }}
{{- if eq $disk "claim" }}
- name: {{ .volume }}state
  persistentVolumeClaim:
    claimName: {{ include "pds-exporter.name" $root }}
{{- else if eq $disk "pod" }}
- name: {{ .volume }}state
  emptyDir:
    sizeLimit: {{ $root.Values.state.size }}
{{- end }}
{{- with $root.Values.state.prometheus.existingSecret }}
- name: {{ $.volume }}prometheus
  secret:
    secretName: {{ . }}
    defaultMode: {{ $.mode }}
{{- end }}
{{- with $root.Values.webConfig.existingSecret }}
- name: {{ $.volume }}web
  secret:
    secretName: {{ . }}
    defaultMode: {{ $.mode }}
{{- end }}
{{- with $root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
