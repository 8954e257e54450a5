{{/* The variables by which processes are configured. */}}

{{- define "ioa.process.env" -}}
- name: IOA_LOG_LEVEL
  value: {{ .Values.logLevel }}
{{- if .Values.logContent }}
- name: IOA_LOG_CONTENT
  value: "true"
{{- end }}
- name: IOA_METRICS_PORT
  value: {{ .Values.metrics.port | quote }}
- name: IOA_METRICS_ADDRESS # the kubelet probes it, and Prometheus scrapes it; who else may, the network policy says
  value: "*"
{{- end -}}

{{/* Takes the chart's root with `tenant`. */}}
{{- define "ioa.controlPlane.env" -}}
{{ include "ioa.process.env" . }}
- name: IOA_REPLICAS
  value: {{ .Values.controlPlane.streamReplicas | default (ternary .Values.nats.replicas 1 .Values.nats.enabled) | quote }}
{{- range $variable, $key := dict "LEASE" "lease" "RENEW_EVERY" "renewEvery" "FLOOR_TIMEOUT" "floorTimeout" "TASK_LEASE" "taskLease" "PAUSE_TIMEOUT" "pauseTimeout" "CONCLUSION_TIMEOUT" "conclusionTimeout" "PATIENCE" "patience" }}
- name: IOA_{{ $variable }}
  value: {{ get $.Values.controlPlane (printf "%sSeconds" $key) | quote }}
{{- end }}
- name: IOA_MAX_DEPTH
  value: {{ .Values.controlPlane.maxDepth | quote }}
{{- with .Values.controlPlane.leaders }}
- name: IOA_LEADERS
  value: {{ join "," . | quote }}
{{- end }}
- name: IOA_KEEP
  value: P{{ .Values.controlPlane.keepDays }}D
- name: IOA_KEEP_AGENTS
  value: P{{ .Values.controlPlane.keepAgentsDays }}D
- name: IOA_RATE
  value: {{ .Values.quotas.requests.perSecond | quote }}
- name: IOA_BURST
  value: {{ .Values.quotas.requests.burst | int64 | quote }}
- name: IOA_QUOTA_GOALS
  value: {{ .Values.quotas.goals.open | int64 | quote }}
- name: IOA_QUOTA_GOALS_WAITING
  value: {{ .Values.quotas.goals.waiting | int64 | quote }}
- name: IOA_QUOTA_GROUP_TASKS
  value: {{ .Values.quotas.group.tasks | int64 | quote }}
- name: IOA_QUOTA_GROUP_LOG_BYTES
  value: {{ .Values.quotas.group.logBytes | int64 | quote }}
- name: IOA_AGENT_FILES_BYTES
  value: {{ .Values.quotas.files.agentBytes | int64 | quote }}
- name: IOA_USER_FILES_BYTES
  value: {{ .Values.quotas.files.userBytes | int64 | quote }}
- name: IOA_STORE_BYTES
  value: {{ .tenant.storeBytes | int64 | default (include "ioa.nats.storeBytes" . | int64) | quote }}
{{- end -}}

{{- define "ioa.nats.storeBytes" -}}
{{- .Values.quotas.store.bytes | int64 | default (include "ioa.nats.room" . | int64) -}}
{{- end -}}

{{/* How many bytes a size such as 8Gi is; 0 where it is written in another way. */}}
{{- define "ioa.bytes" -}}
{{- $units := dict "" 1 "K" 1000 "Ki" 1024 "M" 1000000 "Mi" 1048576 "G" 1000000000 "Gi" 1073741824 "T" 1000000000000 "Ti" 1099511627776 -}}
{{- $size := kindIs "string" . | ternary . (int64 . | toString) -}}
{{- mul (regexFind "^[0-9]+" $size | int64) (get $units (regexReplaceAll "^[0-9]+" $size "") | int64) -}}
{{- end -}}

{{/* How many bytes NATS has for the tenant without a name; 0 for a NATS of one's own. */}}
{{- define "ioa.nats.room" -}}
{{- $bytes := include "ioa.bytes" (ternary .Values.nats.jetstream.maxFileStore "0" .Values.nats.enabled) | int64 -}}
{{- range .Values.tenants }}{{ $bytes = sub $bytes (.storeBytes | int64) }}{{ end -}}
{{- $bytes -}}
{{- end -}}

{{- define "ioa.qdrant.keySecret" -}}
{{- .Values.qdrant.existingSecret | default (ternary (printf "%s-qdrant" (include "ioa.fullname" .)) "" .Values.qdrant.enabled) -}}
{{- end -}}

{{/* Takes the chart's root with `own` and `tenant`: one with a name shares no index with others. */}}
{{- define "ioa.discovery.env" -}}
{{- if and (not .tenant.name) (or .Values.qdrant.enabled .Values.qdrant.externalUrl) -}}
- name: IOA_QDRANT_URL
  value: {{ ternary (printf "http://%s-qdrant.%s.svc.%s:6333" (include "ioa.fullname" .) .Release.Namespace .Values.clusterDomain) .Values.qdrant.externalUrl .Values.qdrant.enabled | quote }}
{{- with include "ioa.qdrant.keySecret" . }}
- name: IOA_QDRANT_API_KEY
  valueFrom:
    secretKeyRef: {name: {{ . }}, key: {{ $.Values.qdrant.secretKey }}}
{{- end }}
{{- else -}}
- name: IOA_VECTORS_FOLDER
  value: /data/vectors
{{- end }}
{{- with .own.embeddingModel }}
- name: IOA_EMBEDDING_MODEL
  value: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Takes `model`: baseUrl, name, existingSecret, secretKey, config. */}}
{{- define "ioa.model.env" -}}
{{- with .model }}
{{- if .config }}
- name: IOA_LLM_CONFIG
  value: /etc/ioa/agent/models.toml
{{- end }}
{{- if .baseUrl }}
- name: IOA_LLM_BASE_URL
  value: {{ .baseUrl | quote }}
- name: IOA_LLM_MODEL
  value: {{ required "model.name is missing: which model should the agents use?" .name | quote }}
{{- end }}
{{- if and .existingSecret (or .baseUrl .config) }}
- name: IOA_LLM_API_KEY
  valueFrom:
    secretKeyRef: {name: {{ .existingSecret }}, key: {{ .secretKey }}}
{{- end }}
{{- end }}
{{- end -}}
