{{/* Agent pools: their settings with every default filled in, their cards, and what scales them. */}}

{{/* All pools, those of tenants too, as a JSON list; `component` is what each is called. */}}
{{- define "ioa.everyPool" -}}
{{- $every := list -}}
{{- range $tenant := prepend .Values.tenants dict -}}
{{- range $pool := ternary $tenant.agentPools $.Values.agentPools (hasKey $tenant "name") -}}
{{- $every = append $every (merge (dict "component" (include "ioa.component" (dict "tenant" $tenant "component" $pool.name))) $pool) -}}
{{- end -}}
{{- end -}}
{{- toJson $every -}}
{{- end -}}

{{- define "ioa.pool" -}}
{{- $root := .root -}}
{{- $pool := .pool -}}
{{- $defaults := dict
  "replicas" 1 "maxReplicas" 10 "tasksAtOnce" 4 "goalsAtOnce" 8 "drainSeconds" 60 "podManagementPolicy" "Parallel"
  "image" dict "files" dict "card" dict "args" list "egress" list
  "model" $root.Values.model "persistence" $root.Values.poolPersistence "autoscaling" $root.Values.poolAutoscaling -}}
{{- $own := mustMergeOverwrite (deepCopy $root.Values.workloads) (deepCopy $defaults) (deepCopy $pool) -}}
{{- if not $own.command -}}
{{- $target := required (printf "The pool %q needs a target (FILE.py:ATTR or MODULE:ATTR) or a command." $pool.name) $own.target -}}
{{- $_ := set $own "command" (list "python3" "-m" "ioa.cli" "agent" "run" $target) -}}
{{- end -}}
{{- if not $own.terminationGracePeriodSeconds -}}
{{- $_ := set $own "terminationGracePeriodSeconds" (add $own.drainSeconds 15) -}}
{{- else if le (int $own.terminationGracePeriodSeconds) (int $own.drainSeconds) -}}
{{- fail (printf "The pool %q drains for %v s, but its pods are killed after %v s. Make terminationGracePeriodSeconds longer than drainSeconds." $pool.name $own.drainSeconds $own.terminationGracePeriodSeconds) -}}
{{- end -}}
{{- toYaml $own -}}
{{- end -}}

{{/* What the deployment says of the agent's card, as IOA_CARD wants it. */}}
{{- define "ioa.pool.card" -}}
{{- $card := omit .card "mayTeamUp" -}}
{{- if hasKey .card "mayTeamUp" -}}{{- $_ := set $card "may_team_up" .card.mayTeamUp -}}{{- end -}}
{{- toPrettyJson (merge (dict "agent_id" .name) $card) -}}
{{- end -}}

{{/*
What is taken of what an agent's process tells Prometheus (docs/metrics.md), as name, `service` and `stream`: what services tell would silence alerts
and scale others' pools, told by a pool.
*/}}
{{- define "ioa.pool.metrics" -}}
{{- $taken := list
  "(process|python|ioa_worker|ioa_client|ioa_nats|ioa_event_loop_lag)_[a-z_]+;;"
  "ioa_ready;;"
  "ioa_build_info;ioa-agent;"
  "ioa_(deliveries_total|redeliveries_total|delivery_duration_seconds_[a-z]+);;IOA_WORK" -}}
{{- range .Values.metrics.podMonitor.alsoOfPools }}{{ $taken = append $taken (printf "(%s);.*" .) }}{{ end -}}
{{- join "|" $taken -}}
{{- end -}}

{{- define "ioa.pool.keda" -}}
{{- $scaling := .own.autoscaling }}
{{- $keda := $scaling.keda }}
{{- $endpoint := $keda.monitoringEndpoint | default (printf "%s:8222" (include "ioa.nats.headless" .root)) }}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  {{- include "ioa.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    kind: StatefulSet
    name: {{ include "ioa.name" . }}
  minReplicaCount: {{ $scaling.minReplicas }}
  maxReplicaCount: {{ $scaling.maxReplicas }}
  pollingInterval: {{ $keda.pollingIntervalSeconds }}
  cooldownPeriod: {{ $keda.cooldownSeconds }}
  {{- with $scaling.behavior }}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        {{- toYaml . | nindent 8 }}
  {{- end }}
  triggers:
    {{- $consumers := list (printf "pool-%s" .own.name) }}
    {{- if $keda.anyGoal }}{{ $consumers = append $consumers "any" }}{{ end }}
    {{- range $consumers }}
    # Goals that wait for the pool, and those it has taken and not yet formed a team for. The control plane keeps this consumer.
    - type: nats-jetstream
      metadata:
        natsServerMonitoringEndpoint: {{ $endpoint | quote }}
        account: {{ ternary (printf "IOA_%s" ($.tenant.name | default "")) $keda.account (hasKey $.tenant "name") | quote }}
        stream: IOA_WORK
        consumer: {{ . }}
        lagThreshold: {{ $scaling.goalsPerReplica | quote }}
        activationLagThreshold: "0"
    {{- end }}
    {{- with $keda.prometheusUrl }}
    - type: prometheus
      metadata:
        serverAddress: {{ . | quote }}
        query: {{ $keda.prometheusQuery | replace "{pool}" $.component | quote }}
        threshold: {{ $scaling.tasksPerReplica | quote }}
    {{- end }}
    {{- with $keda.extraTriggers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- define "ioa.pool.hpa" -}}
{{- $scaling := .own.autoscaling }}
{{- $current := semverCompare ">=1.23-0" .root.Capabilities.KubeVersion.Version }}
---
apiVersion: autoscaling/{{ $current | ternary "v2" "v2beta2" }}
kind: HorizontalPodAutoscaler
metadata:
  {{- include "ioa.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: StatefulSet
    name: {{ include "ioa.name" . }}
  minReplicas: {{ $scaling.minReplicas }}
  maxReplicas: {{ $scaling.maxReplicas }}
  {{- with $scaling.behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  metrics:
    {{- /* As the PodMonitor labels them: a consumer is called alike in each tenant, and the pool itself may say what it likes. */}}
    {{- $groups := include "ioa.component" (dict "tenant" .tenant "component" "groups") }}
    {{- $goals := dict "consumer" (printf "pool-%s" .own.name) "app_kubernetes_io_component" $groups }}
    {{- $metrics := list (dict "name" $scaling.hpa.goalsMetric "labels" $goals "each" $scaling.goalsPerReplica) }}
    {{- with $scaling.hpa.tasksMetric }}
    {{- $tasks := dict "app_kubernetes_io_component" $.component }}
    {{- $metrics = append $metrics (dict "name" . "labels" $tasks "each" $scaling.tasksPerReplica) }}
    {{- end }}
    {{- range $metrics }}
    - type: External
      external:
        metric:
          name: {{ .name }}
          selector:
            matchLabels:
              {{- toYaml .labels | nindent 14 }}
        target:
          type: AverageValue
          averageValue: {{ .each | quote }}
    {{- end }}
{{- end -}}
