{{/* The metadata of a monitor, which may lie in the namespace of Prometheus. Takes `root` and `monitor`, its values. */}}
{{- define "pds-exporter.monitorMetadata" -}}
{{- include "pds-exporter.metadata" (dict "root" .root "namespace" .monitor.namespace "labels" .monitor.additionalLabels) -}}
{{- end -}}

{{/* Those of the `fields` that `from` has and that are not empty. */}}
{{- define "pds-exporter.fields" -}}
{{- $from := .from -}}
{{- $set := dict -}}
{{- range .fields -}}
{{- if get $from . -}}
{{- $_ := set $set . (get $from .) -}}
{{- end -}}
{{- end -}}
{{- if $set -}}
{{ toYaml $set | nindent 0 }}
{{- end -}}
{{- end -}}

{{/* What the kinds of the operator share. */}}
{{- define "pds-exporter.monitorSpec" -}}
{{- include "pds-exporter.fields" (dict "from" .monitor "fields" (list "scrapeClass" "sampleLimit" "targetLimit" "labelLimit")) -}}
{{- if kindIs "bool" .monitor.scrapeClassicHistograms }}
scrapeClassicHistograms: {{ .monitor.scrapeClassicHistograms }}
{{- end }}
{{- end -}}

{{/* How a kind of the operator finds the pods. */}}
{{- define "pds-exporter.monitorSelector" -}}
# The job is the release.
jobLabel: app.kubernetes.io/instance
{{- if .monitor.namespace }}
namespaceSelector:
  matchNames: [{{ include "pds-exporter.namespace" .root | quote }}]
{{- end }}
selector:
  matchLabels:
    {{- include "pds-exporter.selector" .root | nindent 4 }}
{{- end -}}

{{/* How a kind of the operator scrapes one. */}}
{{- define "pds-exporter.monitorHow" -}}
{{- include "pds-exporter.fields" (dict "from" .monitor "fields" (list "honorLabels" "proxyUrl" "tlsConfig" "basicAuth" "metricRelabelings")) }}
relabelings:
  # One instance per place that a process fills, the release or the shard: counters go on in the next pod.
  - sourceLabels:
      - __meta_kubernetes_pod_label_app_kubernetes_io_instance
      - __meta_kubernetes_pod_label_apps_kubernetes_io_pod_index
    separator: "-"
    regex: (.+?)-?
    targetLabel: instance
  - action: labeldrop
    regex: pod
  {{- with .monitor.relabelings }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "pds-exporter.monitorEndpoint" -}}
port: http
path: {{ include "pds-exporter.metricsPath" .root | quote }}
interval: {{ .monitor.interval }}
scrapeTimeout: {{ .monitor.scrapeTimeout }}
{{- with include "pds-exporter.scheme" . }}
scheme: {{ . }}
{{- end }}
{{- include "pds-exporter.monitorHow" . }}
{{- end -}}

{{- define "pds-exporter.metricsPath" -}}
{{ include "pds-exporter.prefix" . }}{{ .Values.web.telemetryPath }}
{{- end -}}

{{- define "pds-exporter.scheme" -}}
{{- .monitor.scheme | default (ternary "https" "" .root.Values.webConfig.tls) -}}
{{- end -}}
