{{/* The metadata of a monitor, which may be in another namespace. Takes `root` and `monitor`, the monitor's values. */}}
{{- define "pds-exporter.monitorMetadata" -}}
{{- include "pds-exporter.metadata" (dict "root" .root "namespace" .monitor.namespace "labels" .monitor.additionalLabels) -}}
{{- end -}}

{{/* The `fields` that are not empty in `from`. */}}
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

{{/* Fields that all monitors of the operator share. */}}
{{- define "pds-exporter.monitorSpec" -}}
{{- include "pds-exporter.fields" (dict "from" .monitor "fields" (list "scrapeClass" "sampleLimit" "targetLimit" "labelLimit")) -}}
{{- if kindIs "bool" .monitor.scrapeClassicHistograms }}
scrapeClassicHistograms: {{ .monitor.scrapeClassicHistograms }}
{{- end }}
{{- end -}}

{{/* How a PodMonitor or ServiceMonitor finds the pods. */}}
{{- define "pds-exporter.monitorSelector" -}}
# `job` is the release's name.
jobLabel: app.kubernetes.io/instance
{{- if .monitor.namespace }}
namespaceSelector:
  matchNames: [{{ include "pds-exporter.namespace" .root | quote }}]
{{- end }}
selector:
  matchLabels:
    {{- include "pds-exporter.selector" .root | nindent 4 }}
{{- end -}}

{{/* How a monitor of the operator scrapes a pod. */}}
{{- define "pds-exporter.monitorHow" -}}
{{- include "pds-exporter.fields" (dict "from" .monitor "fields" (list "honorLabels" "proxyUrl" "tlsConfig" "basicAuth" "metricRelabelings")) }}
relabelings:
  # `instance` is the release or shard, not the pod, so that series continue in a new pod.
  - sourceLabels:
      - __meta_kubernetes_pod_label_app_kubernetes_io_instance
      - __meta_kubernetes_pod_label_apps_kubernetes_io_pod_index
    separator: "-"
    regex: (.+?)-?
    targetLabel: instance
  - action: labeldrop
    regex: pod
{{- end -}}

{{/* The relabelings of the values, which come last. */}}
{{- define "pds-exporter.monitorRelabelings" -}}
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
{{- include "pds-exporter.monitorRelabelings" . }}
{{- end -}}

{{- define "pds-exporter.metricsPath" -}}
{{ include "pds-exporter.prefix" . }}{{ .Values.web.telemetryPath }}
{{- end -}}

{{- define "pds-exporter.scheme" -}}
{{- .monitor.scheme | default (ternary "https" "" .root.Values.webConfig.tls) -}}
{{- end -}}
