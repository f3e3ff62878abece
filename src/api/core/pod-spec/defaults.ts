/**
 * Defaults of pod specs, in pods and templates (facts/types.json `serverDefaults`), beyond those declared in the
 * schema. pod/defaults.ts has those that only pods get.
 */
import type { HTTPGetAction, LifecycleHandler, Probe } from "../container/probe.ts";
import type { Container, EphemeralContainer } from "../container/schema.ts";
import { setPersistentVolumeClaimSpecDefaults } from "../persistent-volume-claim/defaults.ts";
import type { ImageVolumeSource, Volume } from "../volume/schema.ts";
import { parseImageReference } from "./image-reference.ts";
import type { PodSpec } from "./schema.ts";

const DEFAULT_FILE_MODE = 0o644;

const TOKEN_EXPIRATION_SECONDS = 3600;

export function setPodSpecDefaults(spec: PodSpec): PodSpec {
  return {
    ...spec,
    restartPolicy: spec.restartPolicy || "Always",
    dnsPolicy: spec.dnsPolicy || "ClusterFirst",
    securityContext: spec.securityContext ?? {},
    terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds ?? 30,
    schedulerName: spec.schedulerName || "default-scheduler",
    // `serviceAccount` is the deprecated alias of `serviceAccountName`.
    ...(spec.serviceAccountName ? { serviceAccount: spec.serviceAccountName } : {}),
    ...(spec.serviceAccount && !spec.serviceAccountName ? { serviceAccountName: spec.serviceAccount } : {}),
    containers: (spec.containers ?? []).map(setContainerDefaults),
    ...(spec.initContainers === undefined ? {} : { initContainers: spec.initContainers.map(setContainerDefaults) }),
    ...(spec.ephemeralContainers === undefined
      ? {}
      : { ephemeralContainers: spec.ephemeralContainers.map(setContainerDefaults) }),
    ...(spec.volumes === undefined ? {} : { volumes: spec.volumes.map(setVolumeDefaults) }),
  };
}

function setContainerDefaults<C extends Container | EphemeralContainer>(container: C): C {
  const { lifecycle } = container;
  return {
    ...container,
    terminationMessagePath: container.terminationMessagePath || "/dev/termination-log",
    terminationMessagePolicy: container.terminationMessagePolicy || "File",
    imagePullPolicy: container.imagePullPolicy || pullPolicyOf(container.image ?? ""),
    ...(container.env === undefined ? {} : { env: container.env.map(setEnvFieldVersion) }),
    ...(container.livenessProbe === undefined ? {} : { livenessProbe: setProbeDefaults(container.livenessProbe) }),
    ...(container.readinessProbe === undefined ? {} : { readinessProbe: setProbeDefaults(container.readinessProbe) }),
    ...(container.startupProbe === undefined ? {} : { startupProbe: setProbeDefaults(container.startupProbe) }),
    ...(lifecycle === undefined
      ? {}
      : {
          lifecycle: {
            ...lifecycle,
            ...(lifecycle.postStart === undefined ? {} : { postStart: setHandlerDefaults(lifecycle.postStart) }),
            ...(lifecycle.preStop === undefined ? {} : { preStop: setHandlerDefaults(lifecycle.preStop) }),
          },
        }),
  };
}

/** `Always` for the tag `latest`, which references without tag and digest have; else `IfNotPresent`. */
export function pullPolicyOf(image: string): "Always" | "IfNotPresent" {
  const reference = parseImageReference(image);
  return "tag" in reference && reference.tag === "latest" ? "Always" : "IfNotPresent";
}

function setProbeDefaults(probe: Probe): Probe {
  return {
    ...setHandlerDefaults(probe),
    timeoutSeconds: probe.timeoutSeconds || 1,
    periodSeconds: probe.periodSeconds || 10,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
  };
}

function setHandlerDefaults<H extends LifecycleHandler | Probe>(handler: H): H {
  if (handler.httpGet === undefined) return handler;
  const httpGet: HTTPGetAction = {
    ...handler.httpGet,
    path: handler.httpGet.path || "/",
    scheme: handler.httpGet.scheme || "HTTP",
  };
  return { ...handler, httpGet };
}

type EnvVar = NonNullable<Container["env"]>[number];

function setEnvFieldVersion(variable: EnvVar): EnvVar {
  const fieldRef = variable.valueFrom?.fieldRef;
  if (fieldRef === undefined || fieldRef.apiVersion) return variable;
  return { ...variable, valueFrom: { ...variable.valueFrom, fieldRef: { ...fieldRef, apiVersion: "v1" } } };
}

function setImagePolicy(image: ImageVolumeSource): ImageVolumeSource {
  return { ...image, pullPolicy: image.pullPolicy || pullPolicyOf(image.reference ?? "") };
}

function setVolumeDefaults(volume: Volume): Volume {
  const { name, ...source } = volume;
  if (Object.keys(source).length === 0) return { name, emptyDir: {} };
  return {
    ...volume,
    ...(volume.image === undefined ? {} : { image: setImagePolicy(volume.image) }),
    ...(volume.hostPath === undefined ? {} : { hostPath: { ...volume.hostPath, type: volume.hostPath.type ?? "" } }),
    ...(volume.secret === undefined ? {} : { secret: setFileMode(volume.secret) }),
    ...(volume.configMap === undefined ? {} : { configMap: setFileMode(volume.configMap) }),
    ...(volume.downwardAPI === undefined
      ? {}
      : {
          downwardAPI: {
            ...setFileMode(volume.downwardAPI),
            ...(volume.downwardAPI.items === undefined
              ? {}
              : { items: volume.downwardAPI.items.map(setFileFieldVersion) }),
          },
        }),
    ...(volume.ephemeral?.volumeClaimTemplate === undefined ? {} : { ephemeral: setClaimDefaults(volume.ephemeral) }),
    ...(volume.projected === undefined ? {} : { projected: setProjectedDefaults(volume.projected) }),
  };
}

type Ephemeral = NonNullable<Volume["ephemeral"]>;

function setClaimDefaults(ephemeral: Ephemeral): Ephemeral {
  const template = ephemeral.volumeClaimTemplate;
  if (template === undefined) return ephemeral;
  return { volumeClaimTemplate: { ...template, spec: setPersistentVolumeClaimSpecDefaults(template.spec) } };
}

function setFileMode<V extends { readonly defaultMode?: number | undefined }>(volume: V): V {
  return { ...volume, defaultMode: volume.defaultMode ?? DEFAULT_FILE_MODE };
}

type DownwardFile = NonNullable<NonNullable<Volume["downwardAPI"]>["items"]>[number];

function setFileFieldVersion(item: DownwardFile): DownwardFile {
  if (item.fieldRef === undefined || item.fieldRef.apiVersion) return item;
  return { ...item, fieldRef: { ...item.fieldRef, apiVersion: "v1" } };
}

type Projected = NonNullable<Volume["projected"]>;

function setProjectedDefaults(projected: Projected): Projected {
  const sources = projected.sources?.map((source) => ({
    ...source,
    ...(source.serviceAccountToken === undefined
      ? {}
      : {
          serviceAccountToken: {
            ...source.serviceAccountToken,
            expirationSeconds: source.serviceAccountToken.expirationSeconds ?? TOKEN_EXPIRATION_SECONDS,
          },
        }),
    ...(source.downwardAPI?.items === undefined
      ? {}
      : { downwardAPI: { ...source.downwardAPI, items: source.downwardAPI.items.map(setFileFieldVersion) } }),
  }));
  return { ...setFileMode(projected), ...(sources === undefined ? {} : { sources }) };
}
