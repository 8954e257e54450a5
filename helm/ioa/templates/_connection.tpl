{{/* Connection of a process to NATS: URL, seed and certificate authority. */}}

{{- define "ioa.nats.headless" -}}
{{ include "ioa.fullname" . }}-nats-headless.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end -}}

{{/* Every node by its name, so that a client of a node that is gone finds another one at once. */}}
{{- define "ioa.nats.url" -}}
{{- if not .Values.nats.externalUrl -}}
{{- $root := . -}}
{{- $scheme := ternary "tls" "nats" (include "ioa.tls.enabled" . | eq "true") -}}
{{- $urls := list -}}
{{- range $index := until (int .Values.nats.replicas) -}}
{{- $urls = append $urls (printf "%s://%s-nats-%d.%s:4222" $scheme (include "ioa.fullname" $root) $index (include "ioa.nats.headless" $root)) -}}
{{- end -}}
{{- join "," $urls -}}
{{- else -}}
{{- .Values.nats.externalUrl -}}
{{- end -}}
{{- end -}}

{{/* "true" or empty. A NATS outside is encrypted by what its URL says; the chart only brings the authority to check it by. */}}
{{- define "ioa.tls.enabled" -}}
{{- if and .Values.tls.enabled (or (not .Values.nats.externalUrl) .Values.tls.existingSecret .Values.tls.certManager.enabled) -}}true{{- end -}}
{{- end -}}

{{/* What a certificate of NATS names, as a YAML list: its services, each node, and a port that was forwarded. */}}
{{- define "ioa.tls.names" -}}
{{- $name := printf "%s-nats" (include "ioa.fullname" .) -}}
- {{ $name }}
- {{ $name }}.{{ .Release.Namespace }}
- {{ $name }}.{{ .Release.Namespace }}.svc
- {{ $name }}.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
- "*.{{ include "ioa.nats.headless" . }}"
- localhost
{{- end -}}

{{- define "ioa.tls.secret" -}}
{{- .Values.tls.existingSecret | default (printf "%s-nats-tls" (include "ioa.fullname" .)) -}}
{{- end -}}

{{/*
Data of that Secret: the existing data, or, without another source, a new authority and its certificate. One rendering creates one, so that pods
can restart by it.
*/}}
{{- define "ioa.tls.data" -}}
{{- if not (hasKey . "tlsData") -}}
{{- $data := get (lookup "v1" "Secret" .Release.Namespace (include "ioa.tls.secret" .) | default dict) "data" -}}
{{- if not (or $data .Values.tls.existingSecret) -}}
{{- $authority := genCAWithKey (printf "%s-nats-authority" (include "ioa.fullname" .)) 3650 (genPrivateKey "ecdsa") -}}
{{- $names := include "ioa.tls.names" . | fromYamlArray -}}
{{- $certificate := genSignedCertWithKey (first $names) (list "127.0.0.1") $names 3650 $authority (genPrivateKey "ecdsa") -}}
{{- $data = dict "ca.crt" ($authority.Cert | b64enc) "tls.crt" ($certificate.Cert | b64enc) "tls.key" ($certificate.Key | b64enc) -}}
{{- end -}}
{{- $_ := set . "tlsData" ($data | default dict) -}}
{{- end -}}
{{- toYaml .tlsData -}}
{{- end -}}

{{/*
What pods restart by when NATS gets another certificate: nats-server and its clients read it when they start. Takes `key`, the part that they read.
Nothing where cert-manager renews it, since no rendering sees when.
*/}}
{{- define "ioa.tls.checksum" -}}
{{- if and (include "ioa.tls.enabled" .root) (not .root.Values.tls.certManager.enabled) -}}
{{- with get (fromYaml (include "ioa.tls.data" .root)) .key -}}
checksum/{{ $.key }}: {{ sha256sum . }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The Secret with a component's seed. */}}
{{- define "ioa.credentials.secret" -}}
{{- get .root.Values.credentials.existingSecrets .component | default (printf "%s-%s-nats" (include "ioa.fullname" .root) .component) -}}
{{- end -}}

{{- define "ioa.connection.env" -}}
- name: IOA_NATS_URL
  value: {{ include "ioa.nats.url" .root | quote }}
- name: IOA_NATS_SEED
  value: /etc/ioa/credentials/seed
{{- if include "ioa.tls.enabled" .root }}
- name: IOA_NATS_CA
  value: /etc/ioa/tls/ca.crt
{{- end }}
{{- end -}}

{{/* Takes `seedKey`, an expression over the container's variables, where a Secret holds several seeds. */}}
{{- define "ioa.connection.mounts" -}}
- name: credentials
  {{- if .seedKey }}
  mountPath: /etc/ioa/credentials/seed
  subPathExpr: {{ .seedKey }}
  {{- else }}
  mountPath: /etc/ioa/credentials
  {{- end }}
  readOnly: true
{{- if include "ioa.tls.enabled" .root }}
- name: tls
  mountPath: /etc/ioa/tls
  readOnly: true
{{- end }}
{{- end -}}

{{- define "ioa.connection.volumes" -}}
- name: credentials
  secret:
    secretName: {{ include "ioa.credentials.secret" . }}
    defaultMode: 0440
{{- if include "ioa.tls.enabled" .root }}
- name: tls
  secret:
    secretName: {{ include "ioa.tls.secret" .root }}
    defaultMode: 0440
    items:
      - {key: ca.crt, path: ca.crt}
{{- end }}
{{- end -}}

{{/* User of `helm test` and of the notes: the first user. */}}
{{- define "ioa.test.user" -}}
{{- (first .Values.credentials.users).name -}}
{{- end -}}

{{/* Admin that creates the HTTP key of `helm test`: the first admin; empty if there is none, or no gateway. */}}
{{- define "ioa.test.admin" -}}
{{- $admins := list -}}
{{- range .Values.credentials.users }}{{ if eq .role "admin" }}{{ $admins = append $admins .name }}{{ end }}{{ end -}}
{{- if and .Values.gateway.enabled $admins }}{{ first $admins }}{{ end -}}
{{- end -}}
