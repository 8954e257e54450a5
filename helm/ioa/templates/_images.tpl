{{/* Reference of an image. Takes `root` and `image`, REGISTRY/REPOSITORY with :TAG or @DIGEST; the default tag is the appVersion. */}}
{{- define "ioa.image" -}}
{{- $image := .image -}}
{{- with .root.Values.global.imageRegistry }}{{ $image = regexReplaceAll "^[^/]+" $image . }}{{ end -}}
{{- if regexMatch "[:@][^/]+$" $image }}{{ $image }}{{ else }}{{ $image }}:{{ .root.Chart.AppVersion }}{{ end -}}
{{- end -}}

{{- define "ioa.pullSecrets" -}}
{{- with .Values.global.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}
