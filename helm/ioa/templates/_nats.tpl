{{- define "ioa.authorization.secret" -}}
{{- .Values.credentials.authorization.existingSecret | default (printf "%s-nats-authorization" (include "ioa.fullname" .)) -}}
{{- end -}}

{{/* Whether a pool scales by KEDA, which asks NATS's monitoring. */}}
{{- define "ioa.nats.scales" -}}
{{- $scales := false -}}
{{- range $pool := include "ioa.everyPool" . | fromJsonArray -}}
{{- $scaling := (fromYaml (include "ioa.pool" (dict "root" $ "pool" $pool))).autoscaling -}}
{{- if and $scaling.enabled (not $scaling.monitoringEndpoint) -}}
{{- $scales = true -}}
{{- end -}}
{{- end -}}
{{- $scales -}}
{{- end -}}

{{/* Whether other pods read NATS's monitoring, which shows all connections and subscriptions. */}}
{{- define "ioa.nats.monitored" -}}
{{- or (not (empty .Values.networkPolicy.monitoring)) (eq (include "ioa.nats.scales" .) "true") -}}
{{- end -}}

{{/* Readers of NATS's monitoring, as a JSON list of a policy's `from` entries. */}}
{{- define "ioa.nats.readers" -}}
{{- concat .Values.networkPolicy.monitoring (ternary .Values.networkPolicy.keda list (eq (include "ioa.nats.scales" .) "true")) | toJson -}}
{{- end -}}

{{/*
Asks nats-server how it is, by one path or several: over the network where its monitoring is heard there and there is one, else from within the
container.
*/}}
{{- define "ioa.nats.probe" -}}
{{- if and (eq (include "ioa.nats.monitored" .root) "true") (eq (len .paths) 1) -}}
httpGet: {path: {{ first .paths | quote }}, port: monitor}
{{- else -}}
exec:
  command:
    - wget
    - --quiet
    - --spider
    {{- range .paths }}
    - {{ printf "http://127.0.0.1:8222%s" . | quote }}
    {{- end }}
{{- end -}}
{{- end -}}

{{/*
Whether the streams of every tenant are recovered, as a JSON list of paths. By name, since nats-server counts itself sick for ever where it stores
something of a tenant that is gone.
*/}}
{{- define "ioa.nats.recovered" -}}
{{- $paths := list "/healthz?account=IOA" -}}
{{- range .Values.tenants }}{{ $paths = append $paths (printf "/healthz?account=IOA_%s" .name) }}{{ end -}}
{{- toJson $paths -}}
{{- end -}}

{{/* Container that makes nats-server read a changed authorization: an update of the Secret reaches the pod after 60 to 90 s. */}}
{{- define "ioa.nats.reloader" -}}
name: reloader
image: {{ include "ioa.image" (dict "root" .root "image" .root.Values.images.nats) }}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
command:
  - sh
  - -c
  - |
    loaded=
    while sleep 2; do
      mounted=$(cksum /etc/nats/authorization/authorization.conf)
      if [ "$mounted" != "$loaded" ] && nats-server --signal reload=/var/run/nats/nats.pid; then loaded=$mounted; fi
    done
securityContext:
  {{- toYaml .own.containerSecurityContext | nindent 2 }}
resources:
  {{- toYaml .root.Values.workloads.resources | nindent 2 }}
volumeMounts:
  - {name: authorization, mountPath: /etc/nats/authorization, readOnly: true}
  - {name: run, mountPath: /var/run/nats, readOnly: true}
{{- end -}}

{{/* nats-server's configuration. Every write is synced before it is acknowledged: with anything less, a power cut costs acknowledged messages. */}}
{{- define "ioa.nats.config" -}}
server_name: $POD_NAME
listen: 0.0.0.0:4222
http: {{ ternary "0.0.0.0" "127.0.0.1" (eq (include "ioa.nats.monitored" .) "true") }}:8222
pid_file: /var/run/nats/nats.pid
max_payload: 1MB
max_pending: 8MB
write_deadline: "2s"
# Each token of a subscribed subject needs 380 bytes on each server; subjects of IoA have at most nine.
max_sub_tokens: 16
# A service that hangs gets no more requests after 9 s. Clients that were heard in between are not pinged.
ping_interval: 3s
ping_max: 2
lame_duck_grace_period: 10s
lame_duck_duration: 30s
jetstream {
  store_dir: /data
  max_file_store: {{ .Values.nats.maxFileStore }}
  sync_interval: always
}
include authorization/authorization.conf
{{- if include "ioa.tls.enabled" . }}
tls {
  cert_file: /etc/nats/tls/tls.crt
  key_file: /etc/nats/tls/tls.key
  ca_file: /etc/nats/tls/ca.crt
}
{{- end }}
{{- if gt (int .Values.nats.replicas) 1 }}
cluster {
  name: {{ include "ioa.fullname" . }}
  listen: 0.0.0.0:6222
  # Clients know every node by name; pods' addresses would be no use to those outside.
  no_advertise: true
  include authorization/routes.conf
  {{- if include "ioa.tls.enabled" . }}
  tls {
    cert_file: /etc/nats/tls/tls.crt
    key_file: /etc/nats/tls/tls.key
    ca_file: /etc/nats/tls/ca.crt
    verify: true
  }
  {{- end }}
}
{{- end }}
{{- with .Values.nats.extraConfig }}
{{ . }}
{{- end }}
{{- end -}}
