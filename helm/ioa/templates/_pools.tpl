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
  "image" $root.Values.images.agent "files" dict "card" dict "args" list "egress" list
  "model" $root.Values.model "persistence" $root.Values.poolPersistence "autoscaling" $root.Values.poolAutoscaling -}}
{{- $own := mustMergeOverwrite (deepCopy $root.Values.workloads) (deepCopy $defaults) (deepCopy $pool) -}}
{{- if not $own.command -}}
{{- $target := required (printf "The pool %q needs a target (FILE.py:ATTR or MODULE:ATTR) or a command." $pool.name) $own.target -}}
{{- $_ := set $own "command" (list "python3" "-m" "ioa.cli" "agent" "run" $target) -}}
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

{{- define "ioa.pool.scaledObject" -}}
{{- $scaling := .own.autoscaling }}
{{- $endpoint := $scaling.monitoringEndpoint | default (printf "%s:8222" (include "ioa.nats.headless" .root)) }}
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
  pollingInterval: 5
  cooldownPeriod: {{ $scaling.cooldownSeconds }}
  triggers:
    {{- $consumers := list (printf "pool-%s" .own.name) }}
    {{- if $scaling.anyGoal }}{{ $consumers = append $consumers "any" }}{{ end }}
    {{- range $consumers }}
    # Goals that wait for the pool, and those it has taken and not yet formed a team for. The control plane creates this consumer.
    - type: nats-jetstream
      metadata:
        natsServerMonitoringEndpoint: {{ $endpoint | quote }}
        account: {{ with $.tenant.name }}IOA_{{ . }}{{ else }}IOA{{ end }}
        stream: IOA_WORK
        consumer: {{ . }}
        lagThreshold: {{ $scaling.goalsPerReplica | quote }}
        activationLagThreshold: "0"
    {{- end }}
    {{- with $scaling.prometheusUrl }}
    - type: prometheus
      metadata:
        serverAddress: {{ . | quote }}
        query: {{ printf "sum(ioa_worker_tasks_running{app_kubernetes_io_component=%q})" $.component | quote }}
        threshold: {{ $scaling.tasksPerReplica | quote }}
    {{- end }}
{{- end -}}
