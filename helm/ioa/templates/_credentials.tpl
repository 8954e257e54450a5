{{/*
Clients of NATS, for the Job that creates credentials: for each Secret the identities by key, and whether it was given.
An agent of a pool has the id <pool>-<number>, and the key of its pod's name.
*/}}
{{- define "ioa.identities" -}}
{{- $root := . -}}
{{- $secrets := dict -}}
{{- range $tenant := prepend .Values.tenants dict -}}
{{- $whose := ternary (dict "tenant" $tenant.name) dict (hasKey $tenant "name") -}}
{{- range $service := keys $root.Values.services -}}
{{- $component := include "ioa.component" (dict "tenant" $tenant "component" $service) -}}
{{- $_ := set $secrets (include "ioa.credentials.secret" (dict "root" $root "component" $component)) (dict
  "given" (hasKey $root.Values.credentials.existingSecrets $component) "seeds" (dict "seed" (merge (dict "name" $service "role" "service") $whose))) -}}
{{- end -}}
{{- range $pool := ternary $tenant.agentPools $root.Values.agentPools (hasKey $tenant "name") -}}
{{- $component := include "ioa.component" (dict "tenant" $tenant "component" $pool.name) -}}
{{- $name := include "ioa.name" (dict "root" $root "component" $component) -}}
{{- $seeds := dict -}}
{{- range $number := until (int ($pool.maxReplicas | default 10)) -}}
{{- $_ := set $seeds (printf "%s-%d" $name $number) (merge (dict "name" (printf "%s-%d" $pool.name $number) "role" "agent" "pool" $pool.name) $whose) -}}
{{- end -}}
{{- $_ := set $secrets (include "ioa.credentials.secret" (dict "root" $root "component" $component)) (dict
  "given" (hasKey $root.Values.credentials.existingSecrets $component) "seeds" $seeds) -}}
{{- end -}}
{{- range $user := ternary $tenant.users $root.Values.credentials.users (hasKey $tenant "name") -}}
{{- $component := include "ioa.component" (dict "tenant" $tenant "component" $user.name) -}}
{{- $_ := set $secrets (include "ioa.credentials.secret" (dict "root" $root "component" $component)) (dict
  "given" (hasKey $root.Values.credentials.existingSecrets $component) "seeds" (dict "seed" (merge (dict "name" $user.name "role" $user.role) $whose))) -}}
{{- end -}}
{{- end -}}
{{- if .Values.callout.enabled -}}
{{- $_ := set $secrets (include "ioa.credentials.secret" (dict "root" $root "component" "authcallout")) (dict
  "given" (hasKey $root.Values.credentials.existingSecrets "authcallout") "seeds" (dict "seed" (dict "name" "authcallout" "role" "service"))) -}}
{{- end -}}
{{- if .Values.gateway.enabled -}}
{{- $_ := set $secrets (include "ioa.credentials.secret" (dict "root" $root "component" "gateway")) (dict
  "given" (hasKey $root.Values.credentials.existingSecrets "gateway") "seeds" (dict "seed" (dict "name" "gateway" "role" "gateway"))) -}}
{{- with include "ioa.seats" . | fromJsonArray -}}
{{- $seeds := dict -}}
{{- range . }}{{ $_ := set $seeds . (dict "name" . "role" "agent" "pool" .) }}{{ end -}}
{{- $_ := set $secrets (include "ioa.credentials.secret" (dict "root" $root "component" "gateway-seats")) (dict
  "given" (hasKey $root.Values.credentials.existingSecrets "gateway-seats") "seeds" $seeds) -}}
{{- end -}}
{{- end -}}
{{- toJson $secrets -}}
{{- end -}}

{{/* Under which ids people answer through the gateway, as a JSON list. */}}
{{- define "ioa.seats" -}}
{{- $seats := list -}}
{{- range ternary .Values.gateway.seats list .Values.gateway.enabled }}{{ $seats = append $seats (print "human-" .) }}{{ end -}}
{{- toJson $seats -}}
{{- end -}}

{{/* What each tenant with a name may use up, as the plan has it; nothing if there is none. Of what is stored the server counts each copy. */}}
{{- define "ioa.tenantLimits" -}}
{{- $limits := dict -}}
{{- $copies := .Values.controlPlane.streamReplicas | default (ternary 1 .Values.nats.replicas (not (empty .Values.nats.externalUrl))) | int64 -}}
{{- range $tenant := .Values.tenants -}}
{{- $own := dict "max_file" (mul ($tenant.storeBytes | int64) $copies) -}}
{{- range $role, $limit := $tenant.limits -}}
{{- $_ := set $own ($role | snakecase) ($limit | int64) -}}
{{- end -}}
{{- $_ := set $limits $tenant.name $own -}}
{{- end -}}
{{- with $limits }}{{ toJson . }}{{ end -}}
{{- end -}}

{{/* The rotation that is asked for, as the plan has it; nothing if there is none. */}}
{{- define "ioa.rotation" -}}
{{- $rotate := .Values.credentials.rotate -}}
{{- if $rotate.id -}}
{{- $secrets := list -}}
{{- range $component := $rotate.of -}}
{{- $secrets = append $secrets (include "ioa.credentials.secret" (dict "root" $ "component" $component)) -}}
{{- end -}}
{{- toJson (dict "id" $rotate.id "of" $secrets "ended" $rotate.ended) -}}
{{- end -}}
{{- end -}}

{{/* What a pool's pods restart by when its keys are replaced: a file that is mounted by itself stays as it was in a running pod. */}}
{{- define "ioa.rotation.ofPool" -}}
{{- $rotate := .root.Values.credentials.rotate -}}
{{- if and $rotate.id (has .pool $rotate.of) -}}
checksum/keys: {{ sha256sum $rotate.id }}
{{- end -}}
{{- end -}}

{{- define "ioa.credentials.plan" -}}
{{- $routes := list -}}
{{- if not .Values.nats.externalUrl -}}
{{- range $number := until (int .Values.nats.replicas) -}}
{{- $routes = append $routes (printf "%s-nats-%d.%s:6222" (include "ioa.fullname" $) $number (include "ioa.nats.headless" $)) -}}
{{- end -}}
{{- end -}}
{{- $rotation := dict -}}
{{- with include "ioa.rotation" . -}}
{{- $_ := set $rotation "rotation" (fromJson .) -}}
{{- end -}}
{{- with include "ioa.tenantLimits" . -}}
{{- $_ := set $rotation "tenants" (fromJson .) -}}
{{- end -}}
{{- if .Values.callout.enabled -}}
{{- $_ := set $rotation "callout" (include "ioa.credentials.secret" (dict "root" $ "component" "callout")) -}}
{{- end -}}
{{- toPrettyJson (merge $rotation (dict
  "secrets" (fromJson (include "ioa.identities" .))
  "limits" (dict
    "service_connections" (.Values.quotas.connections.services | int64)
    "agent_connections" (.Values.quotas.connections.agents | int64)
    "user_connections" (.Values.quotas.connections.users | int64))
  "authorization" (include "ioa.authorization.secret" .)
  "routes" $routes
  "labels" (omit (fromYaml (include "ioa.labels" (dict "root" . "component" "credentials"))) "helm.sh/chart" "app.kubernetes.io/managed-by" "app.kubernetes.io/version"))) -}}
{{- end -}}
