{{/*
The exporter's container. Takes `root` and what differs in a sidecar: `port` (its name), `volume` (a prefix of volume
names) and `sidecar` (whether it is one).
*/}}
{{- define "pds-exporter.container" -}}
{{- $root := .root -}}
{{- $web := $root.Values.webConfig -}}
{{- $args := list
  "--config.file=/etc/pds-exporter/pds-exporter.toml"
  (printf "--config.auto-reload-interval=%s" $root.Values.configReloadInterval)
  (printf "--web.listen-address=:%d" (int $root.Values.web.port)) -}}
{{- with $root.Values.web.routePrefix }}
{{- $args = append $args (printf "--web.route-prefix=%s" .) }}
{{- end }}
{{- if ne $root.Values.web.telemetryPath "/metrics" }}
{{- $args = append $args (printf "--web.telemetry-path=%s" $root.Values.web.telemetryPath) }}
{{- end }}
{{- with $root.Values.web.externalUrl }}
{{- $args = append $args (printf "--web.external-url=%s" .) }}
{{- end }}
{{- if eq $root.Values.mode "sharded" }}
{{- $args = concat $args (list "--shard.index=$(PDS_SHARD_INDEX)" "--shard.count=$(PDS_SHARD_COUNT)") }}
{{- end }}
{{- if $web.existingSecret }}
{{- $args = concat $args (list "--web.config.file=/etc/pds-exporter-web/web-config.yml" "--web.probes-without-auth") }}
{{- end -}}
name: pds-exporter
{{ include "pds-exporter.program" $root }}
args:
  {{- concat $args $root.Values.extraArgs | toYaml | nindent 2 }}
{{- with include "pds-exporter.env" $root | trim }}
env:
  {{- . | nindent 2 }}
{{- end }}
{{- with $root.Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - name: {{ .port }}
    containerPort: {{ $root.Values.web.port }}
{{- $probe := dict "root" $root "port" .port }}
livenessProbe:
  {{- include "pds-exporter.probe" (merge (dict "path" "/-/healthy" "timing" $root.Values.livenessProbe) $probe) | nindent 2 }}
{{- if not .sidecar }}
readinessProbe:
  {{- include "pds-exporter.probe" (merge (dict "path" "/-/ready" "timing" $root.Values.readinessProbe) $probe) | nindent 2 }}
{{- end }}
{{- with $root.Values.startupProbe }}
startupProbe:
  {{- include "pds-exporter.probe" (merge (dict "path" "/-/healthy" "timing" .) $probe) | nindent 2 }}
{{- end }}
{{- with $root.Values.lifecycle }}
lifecycle:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $security := $root.Values.securityContext }}
{{- if and .sidecar $security }}
{{- /* The patch does not set the security context of the pod. */}}
{{- $pod := pick ($root.Values.podSecurityContext | default dict) "runAsGroup" }}
{{- $security = include "pds-exporter.merge" (list $security $pod) | fromYaml }}
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

{{/* The field of the pod with the Secrets of a private registry. */}}
{{- define "pds-exporter.pullSecrets" -}}
{{- with concat .Values.image.pullSecrets .Values.global.imagePullSecrets | uniq }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Fields that all pods of the chart share. */}}
{{- define "pds-exporter.podSpec" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- include "pds-exporter.pullSecrets" . }}
{{- if kindIs "bool" .Values.hostUsers }}
hostUsers: {{ .Values.hostUsers }}
{{- end }}
{{- range $field := list "priorityClassName" "dnsPolicy" "dnsConfig" "hostAliases" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with get $.Values $field }}
{{- toYaml (dict $field .) | nindent 0 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Fields that all containers of the chart share: image and resources. */}}
{{- define "pds-exporter.program" -}}
image: {{ include "pds-exporter.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
resources:
  {{- include "pds-exporter.resources" . | nindent 2 }}
{{- end -}}

{{/* The environment. A variable in extraEnv replaces the chart's variable of that name. */}}
{{- define "pds-exporter.env" -}}
{{- $ours := list -}}
{{- if eq .Values.mode "sharded" }}
{{- /* The pod's ordinal, from 0. Kubernetes 1.28 and later set this label. */}}
{{- $index := dict "fieldRef" (dict "fieldPath" "metadata.labels['apps.kubernetes.io/pod-index']") }}
{{- $ours = append $ours (dict "name" "PDS_SHARD_INDEX" "valueFrom" $index) }}
{{- $ours = append $ours (dict "name" "PDS_SHARD_COUNT" "value" (toString .Values.shards)) }}
{{- end }}
{{- $prometheus := .Values.state.prometheus }}
{{- $texts := list }}
{{- if ne (include "pds-exporter.disk" .) "none" }}
{{- $texts = append $texts (list "PATH" "/var/lib/pds-exporter/state.log") }}
{{- end }}
{{- if $prometheus.url }}
{{- $texts = append $texts (list "PROMETHEUS_URL" $prometheus.url) }}
{{- $texts = append $texts (list "LOOKBACK" $prometheus.lookback) }}
{{- $texts = append $texts (list "PROMETHEUS_SELECTOR" $prometheus.selector) }}
{{- $texts = append $texts (list "PROMETHEUS_USERNAME" $prometheus.username) }}
{{- range $variable, $key := dict "TOKEN" $prometheus.tokenKey "PASSWORD" $prometheus.passwordKey "CA" $prometheus.caKey }}
{{- $texts = append $texts (list (printf "PROMETHEUS_%s_FILE" $variable) (ternary (printf "/run/secrets/prometheus/%s" $key) "" (ne $key ""))) }}
{{- end }}
{{- end }}
{{- range $texts }}
{{- if last . }}
{{- $ours = append $ours (dict "name" (printf "PDS_EXPORTER__STATE__%s" (first .)) "value" (last .)) }}
{{- end }}
{{- end }}
{{- if and $prometheus.url $prometheus.headersKey }}
{{- $headers := dict "secretKeyRef" (dict "name" $prometheus.existingSecret "key" $prometheus.headersKey) }}
{{- $ours = append $ours (dict "name" "PDS_EXPORTER__STATE__PROMETHEUS_HEADERS" "valueFrom" $headers) }}
{{- end }}
{{- $given := list }}
{{- range .Values.extraEnv }}
{{- $given = append $given .name }}
{{- end }}
{{- $left := list }}
{{- range $ours }}
{{- if not (has .name $given) }}
{{- $left = append $left . }}
{{- end }}
{{- end }}
{{- with concat $left .Values.extraEnv }}
{{- toYaml . }}
{{- end }}
{{- end -}}

{{/* A probe. Takes `root`, `port`, `path` and `timing`. */}}
{{- define "pds-exporter.probe" -}}
{{- $web := .root.Values.webConfig -}}
{{- if $web.clientCertificates -}}
tcpSocket:
  port: {{ .port }}
{{- else -}}
httpGet:
  path: {{ printf "%s%s" (include "pds-exporter.prefix" .root) .path | quote }}
  port: {{ .port }}
  {{- if $web.tls }}
  scheme: HTTPS
  {{- end }}
{{- end }}
{{ toYaml .timing }}
{{- end -}}

{{/* The spec of a claim for the state. "-" stands for the empty class, which disables dynamic provisioning. */}}
{{- define "pds-exporter.claim" -}}
accessModes:
  {{- toYaml .Values.state.accessModes | nindent 2 }}
{{- with .Values.state.storageClassName }}
storageClassName: {{ ternary "" . (eq . "-") | quote }}
{{- end }}
resources:
  requests:
    storage: {{ .Values.state.size | quote }}
{{- end -}}

{{/*
The volume of the configuration: one object, or several projected into one folder. Takes `root` and `mode` (of files from
Secrets).
*/}}
{{- define "pds-exporter.configVolume" -}}
{{- $values := .root.Values -}}
{{- $name := printf "%s-config" (include "pds-exporter.name" .root) -}}
{{- $existing := $values.existingConfig -}}
{{- $own := list -}}
{{- if $values.config -}}
{{- $own = append $own $name -}}
{{- end -}}
{{- range $file, $text := $values.configFiles -}}
{{- $own = append $own (printf "%s-%s" $name (trimSuffix ".toml" $file)) -}}
{{- end -}}
{{- $maps := concat (ternary list $own $values.configInSecrets) $existing.configMaps -}}
{{- $secrets := concat (ternary $own list $values.configInSecrets) $existing.secrets -}}
{{- if $existing.volume -}}
{{ toYaml $existing.volume }}
{{- else if and $maps (eq (len (concat $maps $secrets)) 1) -}}
configMap:
  name: {{ first $maps | quote }}
{{- else if eq (len (concat $maps $secrets)) 1 -}}
secret:
  secretName: {{ first $secrets | quote }}
  defaultMode: {{ .mode }}
{{- else -}}
projected:
  {{- if $secrets }}
  defaultMode: {{ .mode }}
  {{- end }}
  sources:
    {{- range $maps }}
    - configMap:
        name: {{ . | quote }}
    {{- end }}
    {{- range $secrets }}
    - secret:
        name: {{ . | quote }}
    {{- end }}
{{- end }}
{{- end -}}

{{/* The volume of the tokens: all keys of the Secrets, and the default token as `token`. Takes `token` and `mode`. */}}
{{- define "pds-exporter.tokenVolume" -}}
{{- $renamed := ne .token.key "token" -}}
{{- if or $renamed .token.moreSecrets -}}
projected:
  defaultMode: {{ .mode }}
  sources:
    {{- /* For keys of one name, the last source applies. */}}
    {{- range append .token.moreSecrets .token.existingSecret }}
    - secret:
        name: {{ . | quote }}
    {{- end }}
    {{- if $renamed }}
    - secret:
        name: {{ .token.existingSecret | quote }}
        items:
          - key: {{ .token.key | quote }}
            path: token
    {{- end }}
{{- else -}}
secret:
  secretName: {{ .token.existingSecret | quote }}
  defaultMode: {{ .mode }}
{{- end }}
{{- end -}}

{{/* The volumes. Takes `root`, `volume` (a prefix of volume names) and `mode` (of files from Secrets). */}}
{{- define "pds-exporter.volumes" -}}
{{- $root := .root -}}
{{- $disk := include "pds-exporter.disk" $root -}}
- name: {{ .volume }}config
  {{- include "pds-exporter.configVolume" (dict "root" $root "mode" .mode) | nindent 2 }}
- name: {{ .volume }}token
  {{- include "pds-exporter.tokenVolume" (dict "token" $root.Values.token "mode" .mode) | nindent 2 }}
{{- if eq $disk "claim" }}
- name: {{ .volume }}state
  persistentVolumeClaim:
    claimName: {{ include "pds-exporter.name" $root | quote }}
{{- else if eq $disk "pod" }}
- name: {{ .volume }}state
  emptyDir:
    sizeLimit: {{ $root.Values.state.size | quote }}
{{- end }}
{{- with $root.Values.state.prometheus.existingSecret }}
- name: {{ $.volume }}prometheus
  secret:
    secretName: {{ . | quote }}
    defaultMode: {{ $.mode }}
{{- end }}
{{- with $root.Values.webConfig.existingSecret }}
- name: {{ $.volume }}web
  secret:
    secretName: {{ . | quote }}
    defaultMode: {{ $.mode }}
{{- end }}
{{- with $root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
