{{/* What PodMonitor and ServiceMonitor share. Takes `root` and `monitor`, its values. */}}
{{- define "pds-exporter.monitorSpec" -}}
# The alerts expect this job name.
jobLabel: app.kubernetes.io/name
{{- with .monitor.scrapeClass }}
scrapeClass: {{ . }}
{{- end }}
{{- with .monitor.sampleLimit }}
sampleLimit: {{ . }}
{{- end }}
{{- if kindIs "bool" .monitor.scrapeClassicHistograms }}
scrapeClassicHistograms: {{ .monitor.scrapeClassicHistograms }}
{{- end }}
selector:
  matchLabels:
    {{- include "pds-exporter.selector" .root | nindent 4 }}
{{- end -}}

{{- define "pds-exporter.monitorEndpoint" -}}
port: http
path: {{ include "pds-exporter.prefix" .root }}{{ .root.Values.web.telemetryPath }}
interval: {{ .monitor.interval }}
scrapeTimeout: {{ .monitor.scrapeTimeout }}
{{- with .monitor.scheme | default (ternary "https" "" .root.Values.webConfig.tls) }}
scheme: {{ . }}
{{- end }}
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
{{- range $field := list "tlsConfig" "basicAuth" "metricRelabelings" }}
{{- with get $.monitor $field }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}
