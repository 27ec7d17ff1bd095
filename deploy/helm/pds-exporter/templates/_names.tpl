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

{{- define "pds-exporter.metadata" -}}
name: {{ include "pds-exporter.name" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "pds-exporter.labels" . | nindent 2 }}
{{- end -}}

{{- define "pds-exporter.labels" -}}
{{ include "pds-exporter.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "pds-exporter.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
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
