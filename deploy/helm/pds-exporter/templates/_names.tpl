{{- define "pds-exporter.chartName" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "pds-exporter.name" -}}
{{- $name := include "pds-exporter.chartName" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "pds-exporter.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "pds-exporter.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "pds-exporter.selector" -}}
app.kubernetes.io/name: {{ include "pds-exporter.chartName" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "pds-exporter.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{/* The metadata of an object. Takes `root`, and what differs: `name` or a `suffix` of it, `labels`, `annotations`. */}}
{{- define "pds-exporter.metadata" -}}
{{- $root := .root -}}
name: {{ .name | default (include "pds-exporter.name" $root) }}{{ .suffix | default "" }}
namespace: {{ include "pds-exporter.namespace" $root }}
labels:
  {{- include "pds-exporter.labels" $root | nindent 2 }}
  {{- with merge (dict) (.labels | default dict) $root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "pds-exporter.labels" -}}
{{ include "pds-exporter.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "pds-exporter.image" -}}
{{- $image := .Values.image -}}
{{- $global := .Values.global | default dict -}}
{{- with $global.imageRegistry | default $image.registry }}{{ . }}/{{ end -}}
{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end -}}

{{/* The path prefix of all pages: as the exporter has it, that of the external URL unless one is given. */}}
{{- define "pds-exporter.prefix" -}}
{{- $web := .Values.web -}}
{{- $web.routePrefix | default (get (urlParse $web.externalUrl) "path" | default "") | trimSuffix "/" -}}
{{- end -}}

{{/* The port of the Prometheus that counters are read back from; nothing without one. */}}
{{- define "pds-exporter.prometheusPort" -}}
{{- with .Values.state.prometheus.url -}}
{{- $url := urlParse . -}}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- end -}}
{{- end -}}

{{/* What the exporter keeps its counters in: "template" (a claim for each shard), "claim", the "pod", or "none": they come back from Prometheus. */}}
{{- define "pds-exporter.disk" -}}
{{- $state := .Values.state -}}
{{- if and (eq .Values.mode "sharded") $state.shardDisks -}}
template
{{- else if and (eq .Values.mode "deployment") $state.persistent -}}
claim
{{- else if $state.prometheus.url -}}
none
{{- else -}}
pod
{{- end -}}
{{- end -}}

{{/* CPU and memory by the number of apps, overridden by `resources`. */}}
{{- define "pds-exporter.resources" -}}
{{- $sized := dict -}}
{{- if .Values.apps -}}
{{- $apps := int .Values.apps -}}
{{- if eq .Values.mode "sharded" -}}
{{- $apps = div (add $apps .Values.shards -1) .Values.shards | int -}}
{{- end -}}
{{- /* At rest 16 MiB and 8 KiB an app; a quarter more at times, and 72 MiB for the replies of a misbehaving service. */ -}}
{{- $memory := mul 16 (div (add 16 (div $apps 128) 15) 16) -}}
{{- $limit := mul 16 (div (add (div (mul $memory 5) 4) 72 15) 16) -}}
{{- $sized = dict
  "requests" (dict "cpu" (printf "%dm" (add 20 (div $apps 125))) "memory" (printf "%dMi" $memory))
  "limits" (dict "cpu" (printf "%dm" (add 500 (div $apps 100))) "memory" (printf "%dMi" $limit)) -}}
{{- end -}}
{{- toYaml (mergeOverwrite $sized (deepCopy .Values.resources)) -}}
{{- end -}}
