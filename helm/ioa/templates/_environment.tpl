{{/* The variables by which processes are configured. */}}

{{- define "ioa.process.env" -}}
- name: IOA_LOG_LEVEL
  value: {{ .Values.logLevel }}
{{- if .Values.logContent }}
- name: IOA_LOG_CONTENT
  value: "true"
{{- end }}
- name: IOA_METRICS_PORT
  value: "9464"
- name: IOA_METRICS_ADDRESS # for the kubelet and Prometheus; the network policy limits the readers
  value: "*"
{{- end -}}

{{/* Takes the chart's root with `tenant`. */}}
{{- define "ioa.controlPlane.env" -}}
{{ include "ioa.process.env" . }}
- name: IOA_REPLICAS
  value: {{ .Values.controlPlane.streamReplicas | default (ternary 1 .Values.nats.replicas (not (empty .Values.nats.externalUrl))) | quote }}
- name: IOA_STORE_BYTES
  value: {{ .tenant.storeBytes | int64 | default (include "ioa.nats.storeBytes" . | int64) | quote }}
{{- range $name, $value := .Values.controlPlane.settings }}
- name: {{ $name }}
  value: {{ ternary $value (toJson $value) (kindIs "string" $value) | quote }}
{{- end }}
{{- end -}}

{{- define "ioa.nats.storeBytes" -}}
{{- .Values.quotas.storeBytes | int64 | default (include "ioa.nats.room" . | int64) -}}
{{- end -}}

{{/* How many bytes a size such as 8Gi is; 0 where it is written in another way. */}}
{{- define "ioa.bytes" -}}
{{- $units := dict "" 1 "K" 1000 "Ki" 1024 "M" 1000000 "Mi" 1048576 "G" 1000000000 "Gi" 1073741824 "T" 1000000000000 "Ti" 1099511627776 -}}
{{- $size := kindIs "string" . | ternary . (int64 . | toString) -}}
{{- mul (regexFind "^[0-9]+" $size | int64) (get $units (regexReplaceAll "^[0-9]+" $size "") | int64) -}}
{{- end -}}

{{/* How many bytes NATS has for the tenant without a name; 0 for a NATS of one's own. */}}
{{- define "ioa.nats.room" -}}
{{- $bytes := include "ioa.bytes" (ternary "0" .Values.nats.maxFileStore (not (empty .Values.nats.externalUrl))) | int64 -}}
{{- range .Values.tenants }}{{ $bytes = sub $bytes (.storeBytes | int64) }}{{ end -}}
{{- $bytes -}}
{{- end -}}

{{/* Takes the chart's root with `tenant`. A tenant with a name uses no Qdrant. */}}
{{- define "ioa.discovery.env" -}}
{{- if and (not .tenant.name) .Values.qdrant.url -}}
- name: IOA_QDRANT_URL
  value: {{ .Values.qdrant.url | quote }}
{{- with .Values.qdrant.existingSecret }}
- name: IOA_QDRANT_API_KEY
  valueFrom:
    secretKeyRef: {name: {{ . }}, key: api-key}
{{- end }}
{{- else -}}
- name: IOA_VECTORS_FOLDER
  value: /data/vectors
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
