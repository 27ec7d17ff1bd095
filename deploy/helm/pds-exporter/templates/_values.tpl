{{/*
Prepares .Values once; every template begins with it. A value of `null` gets its default. Helm removes such keys, so the
folder `files` has a copy of values.yaml. Whole numbers that Helm reads as floats become integers and are printed as such:
5000000, not 5e+06.
*/}}
{{- define "pds-exporter.values" -}}
{{- if not .Values.isPrepared -}}
{{- include "pds-exporter.defaults" (dict "values" .Values "defaults" (.Files.Get "files/values.yaml" | fromYaml)) -}}
{{- range list "serviceMonitor" "scrapeConfig" "podMonitoring" -}}
{{- include "pds-exporter.defaults" (dict "values" (get $.Values .) "defaults" $.Values.podMonitor) -}}
{{- end -}}
{{- include "pds-exporter.integers" .Values -}}
{{- $schema := .Files.Get "files/values.schema.json" | fromYaml -}}
{{- include "pds-exporter.forms" (dict "path" "" "value" .Values "schema" $schema "definitions" $schema.definitions) -}}
{{- include "pds-exporter.refuse" . -}}
{{- $_ := set .Values "isPrepared" true -}}
{{- end -}}
{{- end -}}

{{/* Adds to `values` the keys that only `defaults` has, except labels and fields of security contexts: users may remove those. */}}
{{- define "pds-exporter.defaults" -}}
{{- $values := .values -}}
{{- range $key, $default := .defaults -}}
{{- $value := index $values $key -}}
{{- if not (has $key (list "podSecurityContext" "securityContext")) -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := set $values $key $default -}}
{{- else if and (kindIs "map" $default) (kindIs "map" $value) (ne $key "labels") -}}
{{- include "pds-exporter.defaults" (dict "values" $value "defaults" $default) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "pds-exporter.integers" -}}
{{- $values := . -}}
{{- range $key, $value := $values -}}
{{- if kindIs "map" $value -}}
{{- include "pds-exporter.integers" $value -}}
{{- else if kindIs "slice" $value -}}
{{- $list := list -}}
{{- range $value -}}
{{- $element := dict "value" . -}}
{{- include "pds-exporter.integers" $element -}}
{{- $list = append $list $element.value -}}
{{- end -}}
{{- $_ := set $values $key $list -}}
{{- else if kindIs "float64" $value -}}
{{- if and (eq $value (floor $value)) (lt $value 9e15) -}}
{{- $_ := set $values $key (int64 $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Fails if a value with a `form` in values.schema.json is no string or lacks it. Helm itself would print only type and pattern. */}}
{{- define "pds-exporter.forms" -}}
{{- $all := . -}}
{{- $value := .value -}}
{{- $schema := .schema -}}
{{- with get $schema "$ref" -}}
{{- $schema = get $all.definitions (base .) -}}
{{- end -}}
{{- if and (hasKey $schema "form") (not (kindIs "invalid" $value)) -}}
{{- if not (kindIs "string" $value) -}}
{{- fail (printf "%s: is text, and YAML reads %v as another type; write it in quotes, or with --set-string" (trimPrefix "." .path) $value) -}}
{{- end -}}
{{- if or (not (regexMatch $schema.form $value)) (and (hasKey $schema "isEmpty") (not $value)) -}}
{{- fail (printf "%s: %q is not %s" (trimPrefix "." .path) $value $schema.is) -}}
{{- end -}}
{{- else if kindIs "slice" $value -}}
{{- range $value -}}
{{- include "pds-exporter.forms" (dict "path" $all.path "value" . "schema" ($schema.items | default dict) "definitions" $all.definitions) -}}
{{- end -}}
{{- else if kindIs "map" $value -}}
{{- range $key, $field := $value -}}
{{- with $schema.keys -}}
{{- include "pds-exporter.forms" (dict "path" $all.path "value" $key "schema" .) -}}
{{- end -}}
{{- $of := get ($schema.properties | default dict) $key | default $schema.additionalProperties -}}
{{- if kindIs "map" $of -}}
{{- include "pds-exporter.forms" (dict "path" (printf "%s.%s" $all.path $key) "value" $field "schema" $of "definitions" $all.definitions) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Fails if values contradict each other; values.schema.json refuses single invalid values. */}}
{{- define "pds-exporter.refuse" -}}
{{- $labels := pick .Values "commonLabels" "podLabels" -}}
{{- range $section, $value := omit .Values "global" "commonLabels" "podLabels" -}}
{{- range $key := list "labels" "additionalLabels" -}}
{{- if kindIs "map" $value -}}
{{- $_ := set $labels (printf "%s.%s" $section $key) (get $value $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $path, $labels := $labels -}}
{{- range $key := list "app.kubernetes.io/name" "app.kubernetes.io/instance" -}}
{{- if hasKey (ternary $labels dict (kindIs "map" $labels)) $key -}}
{{- fail (printf "%s: %s selects the pods, and follows from nameOverride and the release" $path $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $objects := pick .Values "extraEnv" "extraEnvFrom" "extraContainers" "extraInitContainers" "extraVolumes" "extraVolumeMounts" "tolerations" "affinity" "topologySpreadConstraints" "dnsConfig" "hostAliases" "imagePullSecrets" "lifecycle" "podSecurityContext" "securityContext" "resources" "verticalPodAutoscaler" -}}
{{- $objects = merge (dict "ingress.tls" .Values.ingress.tls "httpRoute.parentRefs" .Values.httpRoute.parentRefs "networkPolicy.from" .Values.networkPolicy.from "existingConfig.volume" .Values.existingConfig.volume) $objects -}}
{{- range list "podMonitor" "serviceMonitor" "scrapeConfig" "podMonitoring" -}}
{{- $monitor := . -}}
{{- range list "relabelings" "metricRelabelings" "tlsConfig" "basicAuth" -}}
{{- $_ := set $objects (printf "%s.%s" $monitor .) (get (get $.Values $monitor) .) -}}
{{- end -}}
{{- end -}}
{{- range $path, $object := $objects -}}
{{- include "pds-exporter.texts" (dict "path" $path "value" $object "isText" false) -}}
{{- end -}}
{{- $existing := .Values.existingConfig -}}
{{- $hasExisting := or $existing.volume $existing.configMaps $existing.secrets -}}
{{- if not (or .Values.config $hasExisting) -}}
{{- fail "config: set it, or existingConfig" -}}
{{- end -}}
{{- if hasKey .Values.configFiles "pds-exporter.toml" -}}
{{- fail "configFiles: pds-exporter.toml is `config`; name further files" -}}
{{- end -}}
{{- if and .Values.configFiles .Values.config (not (regexMatch "(?m)^ *include *=" .Values.config)) -}}
{{- fail "configFiles: `config` includes none of them; begin it with include = [\"*.toml\"] or similar" -}}
{{- end -}}
{{- range $file, $text := merge (dict "config" .Values.config) .Values.configFiles -}}
{{- if gt (len $text) 1048576 -}}
{{- fail (printf "%s: has %d bytes, and a ConfigMap or Secret holds 1048576; cut it into files, named in configFiles or existingConfig and included" $file (len $text)) -}}
{{- end -}}
{{- end -}}
{{- if and (include "pds-exporter.neverReloads" .) $hasExisting -}}
{{- fail "configReloadInterval: 0s replaces the pods when `config` changes, but a change of existingConfig is not seen; set an interval such as 30s" -}}
{{- end -}}
{{- if and (include "pds-exporter.neverReloads" .) (eq .Values.mode "sidecar") -}}
{{- fail "configReloadInterval: 0s replaces the pods when `config` changes, and mode sidecar has no pods of its own; set an interval such as 30s" -}}
{{- end -}}
{{- $web := .Values.webConfig -}}
{{- if and (or $web.tls $web.clientCertificates) (not $web.existingSecret) -}}
{{- fail "webConfig: set existingSecret, the Secret with web-config.yml; without it the exporter serves plain HTTP" -}}
{{- end -}}
{{- if and $web.clientCertificates (not $web.tls) -}}
{{- fail "webConfig: clientCertificates needs tls: true" -}}
{{- end -}}
{{- $prometheus := .Values.state.prometheus -}}
{{- if and (or $prometheus.tokenKey $prometheus.passwordKey $prometheus.caKey $prometheus.headersKey) (not $prometheus.existingSecret) -}}
{{- fail "state.prometheus: set existingSecret, the Secret that the keys are in" -}}
{{- end -}}
{{- $policy := .Values.networkPolicy -}}
{{- if and $policy.enabled (ne .Values.mode "sidecar") (not (or $policy.fromNamespace $policy.from)) -}}
{{- fail "networkPolicy: set fromNamespace or from; without a peer it would let everybody in" -}}
{{- end -}}
{{- $monitors := list -}}
{{- range list "podMonitor" "serviceMonitor" "scrapeConfig" "podMonitoring" -}}
{{- if (get $.Values .).enabled -}}
{{- $monitors = append $monitors . -}}
{{- end -}}
{{- end -}}
{{- if gt (len $monitors) 1 -}}
{{- fail (printf "%s: each would scrape the same pods, as the same series; enable one of them" (join ", " $monitors)) -}}
{{- end -}}
{{- range $monitors -}}
{{- $monitor := get $.Values . -}}
{{- if gt (include "pds-exporter.milliseconds" $monitor.scrapeTimeout | int64) (include "pds-exporter.milliseconds" $monitor.interval | int64) -}}
{{- fail (printf "%s: scrapeTimeout %s is longer than interval %s; Prometheus refuses that" . $monitor.scrapeTimeout $monitor.interval) -}}
{{- end -}}
{{- end -}}
{{- $service := .Values.service -}}
{{- if and (eq $service.type "ClusterIP") (or $service.nodePort $service.externalTrafficPolicy) -}}
{{- fail "service: nodePort and externalTrafficPolicy need type NodePort or LoadBalancer" -}}
{{- end -}}
{{- if and (ne $service.type "LoadBalancer") (or $service.loadBalancerIP $service.loadBalancerSourceRanges) -}}
{{- fail "service: loadBalancerIP and loadBalancerSourceRanges need type LoadBalancer" -}}
{{- end -}}
{{- if and (eq $service.ipFamilyPolicy "SingleStack") (gt (len $service.ipFamilies) 1) -}}
{{- fail "service: two ipFamilies need ipFamilyPolicy PreferDualStack or RequireDualStack" -}}
{{- end -}}
{{- $rule := .Values.prometheusRule -}}
{{- $isSidecar := eq .Values.mode "sidecar" -}}
{{- $ofPods := pick .Values "extraContainers" "extraInitContainers" "hostAliases" -}}
{{- range list "podMonitor" "serviceMonitor" "scrapeConfig" "podMonitoring" "ingress" "httpRoute" "verticalPodAutoscaler" -}}
{{- $_ := set $ofPods . (get $.Values .).enabled -}}
{{- end -}}
{{- range $path, $value := $ofPods -}}
{{- if and $isSidecar $value -}}
{{- fail (printf "%s: mode sidecar has no pods of its own; set it for the workload that the exporter is added to" $path) -}}
{{- end -}}
{{- end -}}
{{- range $path, $names := dict
  "extraContainers" (dict "ours" (list (dict "name" "pds-exporter")) "theirs" .Values.extraContainers)
  "extraVolumes" (dict "ours" (include "pds-exporter.volumes" (dict "root" . "volume" (ternary "pds-exporter-" "" $isSidecar) "mode" 288) | fromYamlArray) "theirs" list) -}}
{{- $seen := list -}}
{{- range concat $names.ours $names.theirs -}}
{{- if has .name $seen -}}
{{- fail (printf "%s: there are two of the name %s" $path .name) -}}
{{- end -}}
{{- $seen = append $seen .name -}}
{{- end -}}
{{- end -}}
{{- range $path := list "extraContainers" "extraInitContainers" -}}
{{- range $container := get $.Values $path -}}
{{- range $container.ports -}}
{{- if eq (.name | default "") "http" -}}
{{- fail (printf "%s: %s has a port of the name http, too; monitors would scrape it as the exporter, so rename it" $path $container.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $path, $labels := dict "identityLabels" (list "instance" "project" "app" "token") "ownerLabels" (concat $rule.identityLabels (list "instance" "project" "app" "token")) -}}
{{- range $labels -}}
{{- if has . (get $rule $path) -}}
{{- fail (printf "prometheusRule.%s: %s identifies something else in the rules" $path .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not (has "job" $rule.identityLabels) -}}
{{- fail "prometheusRule: identityLabels lack job, by which the rules know the release" -}}
{{- end -}}
{{- if and $rule.enabled $isSidecar $rule.thisReleaseOnly (not $rule.job) -}}
{{- fail "prometheusRule: set job, that of the sidecar's series, or thisReleaseOnly: false in one release for all" -}}
{{- end -}}
{{- range list "podMonitor" "serviceMonitor" "scrapeConfig" "podMonitoring" -}}
{{- if and $rule.enabled $rule.job (get $.Values .).enabled -}}
{{- fail (printf "prometheusRule: job is for series that no monitor of the chart scrapes, and %s is enabled" .) -}}
{{- end -}}
{{- end -}}
{{- $gke := .Values.podMonitoring -}}
{{- if and $gke.enabled (or $gke.namespace $gke.relabelings $gke.targetLimit) -}}
{{- fail "podMonitoring: Google Cloud knows no namespace, relabelings and targetLimit" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) -}}
{{- fail "ingress: set hosts" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "httpRoute: set parentRefs" -}}
{{- end -}}
{{- end -}}

{{/* Fails if an object of Kubernetes has a number or boolean in a field that is text wherever it occurs. */}}
{{- define "pds-exporter.texts" -}}
{{- $all := . -}}
{{- $value := .value -}}
{{- if kindIs "map" $value -}}
{{- range $key, $field := $value -}}
{{- $isText := or $all.isText (has $key (list "name" "value" "values" "key" "matchLabels" "command" "args" "ip" "hosts" "hostnames" "secretName" "image" "namespace" "sectionName" "path" "subPath" "mountPath" "claimName" "cidr" "except" "level" "user" "role" "type" "updateMode" "containerName" "regex" "replacement" "separator" "targetLabel" "sourceLabels" "action" "serverName" "operator" "effect" "topologyKey")) -}}
{{- include "pds-exporter.texts" (dict "path" (printf "%s.%s" $all.path $key) "value" $field "isText" $isText) -}}
{{- end -}}
{{- else if kindIs "slice" $value -}}
{{- range $value -}}
{{- include "pds-exporter.texts" (dict "path" $all.path "value" . "isText" $all.isText) -}}
{{- end -}}
{{- else if or (and .isText (not (kindIs "string" $value)) (not (kindIs "invalid" $value))) (and (regexMatch "[.](requests|limits|minAllowed|maxAllowed)[.]" .path) (kindIs "bool" $value)) -}}
{{- fail (printf "%s: is text, and YAML reads %v as another type; write it in quotes, or with --set-string" .path $value) -}}
{{- end -}}
{{- end -}}

{{/* The milliseconds of a Prometheus duration, such as 1m30s. */}}
{{- define "pds-exporter.milliseconds" -}}
{{- $units := dict "y" 31536000000 "w" 604800000 "d" 86400000 "h" 3600000 "m" 60000 "s" 1000 "ms" 1 -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9]+[a-z]+" . -1 -}}
{{- $sum = add $sum (mul (regexFind "[0-9]+" .) (get $units (regexFind "[a-z]+" .))) -}}
{{- end -}}
{{- $sum -}}
{{- end -}}

{{/* "true" if a changed configuration replaces the pods. */}}
{{- define "pds-exporter.neverReloads" -}}
{{- if hasPrefix "0" .Values.configReloadInterval -}}true{{- end -}}
{{- end -}}
