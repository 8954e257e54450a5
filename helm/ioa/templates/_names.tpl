{{/* Names and labels. A component is a service, `nats`, `credentials`, `test`, or a pool by its own name. */}}

{{- define "ioa.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := .Chart.Name -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What a component of a tenant is called: as without tenants, with the tenant's name before it. Takes `tenant` and `component`. */}}
{{- define "ioa.component" -}}
{{- with .tenant.name }}{{ . }}-{{ end }}{{ .component -}}
{{- end -}}

{{/* Name of a component's objects. Takes `root` and `component`. A StatefulSet's name has 52 characters at most. */}}
{{- define "ioa.name" -}}
{{- $name := printf "%s-%s" (include "ioa.fullname" .root) .component -}}
{{- if gt (len $name) 52 -}}
{{- fail (printf "The name %q is longer than 52 characters, which a StatefulSet's may not be. Choose a shorter pool name or set fullnameOverride." $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- define "ioa.selectorLabels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of every object. Takes `root` and `component`. */}}
{{- define "ioa.labels" -}}
{{ include "ioa.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: ioa
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Metadata of an object. Takes `root`, `component` and, when it is not the component's own, `name`; `annotations` are added. */}}
{{- define "ioa.metadata" -}}
name: {{ .name | default (include "ioa.name" .) }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "ioa.labels" . | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) (.root.Values.commonAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The label of pods that may connect to NATS, for network policies. */}}
{{- define "ioa.clientLabel" -}}
{{ include "ioa.fullname" . }}-nats-client: "true"
{{- end -}}
