{{/* What pods have in common. `own` are a component's settings: `workloads` with the component's over it. */}}

{{- define "ioa.settings" -}}
{{- mustMergeOverwrite (deepCopy .root.Values.workloads) (deepCopy .own) | toYaml -}}
{{- end -}}

{{- define "ioa.serviceAccount" }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "ioa.metadata" (merge (dict "annotations" .own.serviceAccountAnnotations) .) | nindent 2 }}
automountServiceAccountToken: false
{{- end -}}

{{/* Metadata of a pod. Takes `checksums`, a map. The chart's version is not in it, so that a new chart restarts only what it changes. */}}
{{- define "ioa.podMetadata" -}}
labels:
  {{- $labels := merge (dict "app.kubernetes.io/part-of" "ioa") .root.Values.commonLabels }}
  {{- if not (has .component (list "nats" "credentials")) }}
  {{- $labels = merge $labels (fromYaml (include "ioa.clientLabel" .root)) }}
  {{- end }}
  {{- toYaml (mergeOverwrite $labels .own.podLabels (fromYaml (include "ioa.selectorLabels" .))) | nindent 2 }}
{{- with merge (dict) .own.podAnnotations (.checksums | default dict) (.root.Values.commonAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The part of a pod's spec that places it and says what it may. */}}
{{- define "ioa.podPlacement" -}}
serviceAccountName: {{ .serviceAccount | default (include "ioa.name" .) }}
automountServiceAccountToken: {{ .token | default false }}
enableServiceLinks: false
{{- include "ioa.pullSecrets" .root }}
securityContext:
  {{- toYaml .own.podSecurityContext | nindent 2 }}
{{- with .own.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .own.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- if not .own.hostUsers }}
hostUsers: false
{{- end }}
{{- with .own.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  {{- $selector := dict "matchLabels" (fromYaml (include "ioa.selectorLabels" .)) }}
  {{- $spread := list (dict "maxSkew" 1 "topologyKey" "kubernetes.io/hostname" "whenUnsatisfiable" "ScheduleAnyway") }}
  {{- range default $spread .own.topologySpreadConstraints }}
  - {{- toYaml (merge (deepCopy .) (dict "labelSelector" $selector)) | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* The part of a container that follows from settings. */}}
{{- define "ioa.containerSettings" -}}
securityContext:
  {{- toYaml .own.containerSecurityContext | nindent 2 }}
{{- with .own.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Startup asks whether the process runs, readiness whether it can serve (NATS and JetStream too), liveness whether it still turns. */}}
{{- define "ioa.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 1
  failureThreshold: 120
  timeoutSeconds: 2
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  failureThreshold: 2
  timeoutSeconds: 3
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  failureThreshold: 6
  timeoutSeconds: 5
{{- end -}}

{{- define "ioa.podDisruptionBudget" }}
---
apiVersion: policy/{{ semverCompare ">=1.21-0" .root.Capabilities.KubeVersion.Version | ternary "v1" "v1beta1" }}
kind: PodDisruptionBudget
metadata:
  {{- include "ioa.metadata" . | nindent 2 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "ioa.selectorLabels" . | nindent 6 }}
{{- end -}}

{{/* A claim of a StatefulSet. Takes `size`. */}}
{{- define "ioa.claim" -}}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata:
    name: data
    labels:
      {{- include "ioa.selectorLabels" . | nindent 6 }}
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .root.Values.global.storageClass }}
    storageClassName: {{ . }}
    {{- end }}
    resources:
      requests:
        storage: {{ .size }}
{{- end -}}
