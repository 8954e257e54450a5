{{/* Rules of network policies that several components share. */}}

{{- define "ioa.egress.dns" -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
  {{- with .Values.networkPolicy.dns }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* To the port of a URL, where `networkPolicy.outside` says. A policy knows no names, so that it can say no more. */}}
{{- define "ioa.egress.url" -}}
{{- $parts := urlParse .url -}}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+$" $parts.host) -}}
{{- $usual := dict "http" "80" "https" "443" "nats" "4222" "tls" "4222" -}}
- ports:
    - {port: {{ $port | default (get $usual $parts.scheme) | default "443" }}, protocol: TCP}
  {{- with .root.Values.networkPolicy.outside }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- define "ioa.egress.nats" -}}
{{- if not .Values.nats.externalUrl -}}
- to:
    - podSelector:
        matchLabels:
          {{- include "ioa.selectorLabels" (dict "root" . "component" "nats") | nindent 10 }}
  ports:
    - {port: 4222, protocol: TCP}
{{- else -}}
{{- range splitList "," .Values.nats.externalUrl | uniq }}
{{- include "ioa.egress.url" (dict "root" $ "url" (trim .)) }}
{{ end }}
{{- end -}}
{{- end -}}
