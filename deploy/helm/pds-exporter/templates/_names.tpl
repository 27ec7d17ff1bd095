{{- define "pds-exporter.chartName" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of objects. The name of a Service begins with a letter and has no dots; that of a release may differ. */}}
{{- define "pds-exporter.name" -}}
{{- $chart := include "pds-exporter.chartName" . -}}
{{- $release := .Release.Name | replace "." "-" -}}
{{- $name := ternary $release (printf "%s-%s" $release $chart) (contains $chart $release) -}}
{{- if regexMatch "^[0-9]" $name -}}
{{- $name = printf "%s-%s" $chart $release -}}
{{- end -}}
{{- .Values.fullnameOverride | default $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "pds-exporter.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "pds-exporter.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/*
The release, in the label app.kubernetes.io/instance of pods and the label `job` of series. In a parent chart, an alias
replaces the chart's name: each alias is a release with the name of its objects.
*/}}
{{- define "pds-exporter.release" -}}
{{- ternary .Release.Name (include "pds-exporter.name" .) (eq .Chart.Name "pds-exporter") -}}
{{- end -}}

{{/* The selector labels, as YAML. */}}
{{- define "pds-exporter.selector" -}}
app.kubernetes.io/name: {{ include "pds-exporter.chartName" . | quote }}
app.kubernetes.io/instance: {{ include "pds-exporter.release" . | quote }}
{{- end -}}

{{- define "pds-exporter.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{/* The maps of a list as one, as YAML. Earlier maps take precedence, even with an empty string; `null` removes a key. */}}
{{- define "pds-exporter.merge" -}}
{{- $merged := dict -}}
{{- range reverse . -}}
{{- range $key, $value := default dict . -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $merged $key -}}
{{- else -}}
{{- $_ := set $merged $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $merged -}}
{{ toYaml . }}
{{- end -}}
{{- end -}}

{{/*
The metadata of an object. Takes `root` and, if they differ, `name` or its `suffix`, `namespace`, `labels`, `annotations`.
Selector labels take precedence, then those of the object, then those of the release.
*/}}
{{- define "pds-exporter.metadata" -}}
{{- $root := .root -}}
{{- $own := dict
  "app.kubernetes.io/version" $root.Chart.AppVersion
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version) -}}
{{- $selector := include "pds-exporter.selector" $root | fromYaml -}}
{{- $fixed := dict "app.kubernetes.io/managed-by" $root.Release.Service -}}
name: {{ printf "%s%s" (.name | default (include "pds-exporter.name" $root)) (.suffix | default "") | quote }}
namespace: {{ .namespace | default (include "pds-exporter.namespace" $root) | quote }}
labels:
  {{- include "pds-exporter.merge" (list $selector $fixed .labels $root.Values.commonLabels $own) | nindent 2 }}
{{- with include "pds-exporter.merge" (list .annotations $root.Values.commonAnnotations) }}
annotations:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Replaces the default identity labels in `text` by `labels`: in lists, queries and links. */}}
{{- define "pds-exporter.identify" -}}
{{- $text := .text -}}
{{- $labels := .labels -}}
{{- range $how := list (list ", " "%[1]s") (list ", " "%[1]s=\"%%s\"") (list " " "$labels.%[1]s") (list "&" "var-%[1]s={{ $labels.%[1]s }}") (list "&" "var-%[1]s=${__data.fields.%[1]s}") -}}
{{- $from := list -}}
{{- $to := list -}}
{{- range list "cluster" "namespace" "job" -}}
{{- $from = append $from (printf (index $how 1) .) -}}
{{- end -}}
{{- range $labels -}}
{{- $to = append $to (printf (index $how 1) .) -}}
{{- end -}}
{{- $text = replace (join (index $how 0) $from) (join (index $how 0) $to) $text -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{- define "pds-exporter.image" -}}
{{- $image := .Values.image -}}
{{- with .Values.global.imageRegistry | default $image.registry }}{{ . }}/{{ end -}}
{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end -}}

{{/* The path prefix of all pages, as in the exporter: `web.routePrefix`, by default the path of `web.externalUrl`. */}}
{{- define "pds-exporter.prefix" -}}
{{- $web := .Values.web -}}
{{- $web.routePrefix | default (get (urlParse $web.externalUrl) "path" | default "") | trimSuffix "/" -}}
{{- end -}}

{{/* The port of `state.prometheus.url`; empty without a URL. */}}
{{- define "pds-exporter.prometheusPort" -}}
{{- with .Values.state.prometheus.url -}}
{{- $url := urlParse . -}}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- end -}}
{{- end -}}

{{/* The storage of counters: "template" (a claim per shard), "claim", "pod" (an emptyDir) or "none" (cursors in Prometheus). */}}
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

{{/* CPU and memory, derived from the number of apps; `resources` overrides them. */}}
{{- define "pds-exporter.resources" -}}
{{- $sized := dict -}}
{{- if .Values.apps -}}
{{- $apps := int .Values.apps -}}
{{- if eq .Values.mode "sharded" -}}
{{- $apps = div (add $apps .Values.shards -1) .Values.shards | int -}}
{{- end -}}
{{- /* Request: 16 MiB, and 8 KiB per app. Limit: a quarter more, and 72 MiB; the replies of a misbehaving service take 80 MiB. */ -}}
{{- $memory := mul 16 (div (add 16 (div $apps 128) 15) 16) -}}
{{- $limit := mul 16 (div (add (div (mul $memory 5) 4) 72 15) 16) -}}
{{- $sized = dict
  "requests" (dict "cpu" (printf "%dm" (add 20 (div $apps 125))) "memory" (printf "%dMi" $memory))
  "limits" (dict "cpu" (printf "%dm" (add 500 (div $apps 100))) "memory" (printf "%dMi" $limit)) -}}
{{- end -}}
{{- range $kind, $given := .Values.resources -}}
{{- if kindIs "map" $given -}}
{{- $given = include "pds-exporter.merge" (list $given (get $sized $kind)) | fromYaml -}}
{{- end -}}
{{- $_ := set $sized $kind $given -}}
{{- if not $given -}}
{{- $_ := unset $sized $kind -}}
{{- end -}}
{{- end -}}
{{- toYaml $sized -}}
{{- end -}}
