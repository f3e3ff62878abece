/**
 * ServiceAccount: sets the service account of pods, mounts its token in their containers, and adds its image pull
 * secrets.
 */
import type { VolumeMount } from "../../../api/core/container/schema.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { serviceAccountKind } from "../../../api/core/service-account/kind.ts";
import type { ServiceAccount } from "../../../api/core/service-account/schema.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import { podReferences } from "../../../auth/authz/node/node-graph.ts";
import { deepFreeze } from "../../../schema/value/freeze.ts";
import { andThen, type MaybePromise } from "../../../std/async/maybe-promise.ts";
import { type RandomSource, randomSuffix } from "../../../std/crypto/random.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { type AdmissionRequest, matchesResource, metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin, ObjectReader } from "../../chain/plugin.ts";
import { enforcesMountableSecrets, findForbiddenSecret } from "./mountable-secrets.ts";

const DEFAULT = "default";
const MIRROR = "kubernetes.io/config.mirror";
const MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX = "kube-api-access-";
/** An hour; the additional seconds distinguish it from an expiration that the user chose. */
const TOKEN_SECONDS = 3607;
/** The service account controller creates the default account of a new namespace asynchronously. */
const RETRY_DELAY_MS = 150;
const RETRIES_MAX = 10;

interface Deps {
  readonly reader: ObjectReader;
  readonly clock: Clock;
  readonly random: RandomSource;
}

export function serviceAccount({ reader, clock, random }: Deps): AdmissionPlugin {
  return {
    name: "ServiceAccount",
    handles: (attributes) =>
      matchesResource(attributes, podKind, ["CREATE"]) ||
      matchesResource(attributes, podKind, ["UPDATE"], "ephemeralcontainers"),
    mutate(request) {
      const pod = request.object as Pod;
      if (request.operation !== "CREATE" || pod.spec === undefined) return undefined;
      if (isMirrorPod(pod)) {
        validateMirrorPod(pod, request);
        return undefined;
      }
      const named = withAccountName(pod.spec, pod.spec.serviceAccountName || DEFAULT);
      return andThen(getAccount(named, request, { reader, clock }), (account) => {
        const automount = named.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true;
        return { ...pod, spec: withPullSecrets(automount ? mountToken(named, random) : named, account) } as Pod;
      });
    },
    validate(request) {
      const pod = request.object as Pod;
      if (pod.spec === undefined) return;
      if (isMirrorPod(pod)) return validateMirrorPod(pod, request);
      if (!pod.spec.serviceAccountName) {
        const { namespace, name } = metadataOf(pod);
        throw newForbidden(
          request,
          `no service account specified for pod ${namespace ?? request.namespace}/${name ?? ""}`,
        );
      }
      const { spec } = pod;
      return andThen(getAccount(spec, request, { reader, clock }), (account) => {
        if (!enforcesMountableSecrets(account)) return;
        const reason = findForbiddenSecret(spec, account, request.operation === "UPDATE");
        if (reason !== undefined) throw newForbidden(request, reason);
      });
    },
  };
}

function isMirrorPod(pod: Pod): boolean {
  return metadataOf(pod).annotations?.[MIRROR] !== undefined;
}

/** Mirror pods must not use credentials of the cluster. */
function validateMirrorPod(pod: Pod, request: AdmissionRequest): void {
  const { serviceAccountName, volumes = [] } = pod.spec ?? {};
  if (serviceAccountName) throw newForbidden(request, "a mirror pod may not reference service accounts");
  if ([...podReferences(pod)].some((reference) => reference.startsWith("secrets/"))) {
    throw newForbidden(request, "a mirror pod may not reference secrets");
  }
  if (volumes.some(({ projected }) => projected?.sources?.some((each) => each.serviceAccountToken !== undefined))) {
    throw newForbidden(request, "a mirror pod may not use service account token volume projections");
  }
}

/** The deprecated field `serviceAccount` has the same value. */
function withAccountName(spec: PodSpec, name: string): PodSpec {
  return { ...spec, serviceAccountName: name, serviceAccount: name } as PodSpec;
}

function getAccount(
  { serviceAccountName: name = "" }: PodSpec,
  request: AdmissionRequest,
  deps: Pick<Deps, "reader" | "clock">,
): MaybePromise<ServiceAccount> {
  const found = deps.reader.get(serviceAccountKind, request.namespace, name, request);
  return found === undefined || found instanceof Promise ? waitForAccount(name, found, request, deps) : found;
}

async function waitForAccount(
  name: string,
  first: MaybePromise<ServiceAccount | undefined>,
  request: AdmissionRequest,
  { reader, clock }: Pick<Deps, "reader" | "clock">,
): Promise<ServiceAccount> {
  const { namespace } = request;
  let found = await first;
  for (let waited = 0; found === undefined; waited++) {
    if (name !== DEFAULT || waited === RETRIES_MAX) {
      const missing = `serviceaccount ${JSON.stringify(name)} not found`;
      throw newForbidden(request, `error looking up service account ${namespace}/${name}: ${missing}`);
    }
    await clock.sleep(RETRY_DELAY_MS, request.signal);
    found = await reader.get(serviceAccountKind, namespace, name, request);
  }
  return found;
}

/** Mounts a projected volume with token, CA and namespace in each container without one. */
function mountToken(spec: PodSpec, random: RandomSource): PodSpec {
  const volumes = spec.volumes ?? [];
  const present = volumes.find(({ name }) => name.startsWith(VOLUME_PREFIX))?.name;
  const name = present ?? VOLUME_PREFIX + randomSuffix(random);
  const mount: VolumeMount = { name, readOnly: true, mountPath: MOUNT_PATH };
  let isMounted = false;
  const mounted = <C extends { readonly volumeMounts?: readonly VolumeMount[] | undefined }>(container: C): C => {
    const { volumeMounts = [] } = container;
    if (volumeMounts.some(({ mountPath }) => mountPath === MOUNT_PATH)) return container;
    isMounted = true;
    return { ...container, volumeMounts: [...volumeMounts, mount] };
  };
  const initContainers = spec.initContainers?.map(mounted);
  const containers = spec.containers.map(mounted);
  return {
    ...spec,
    ...(initContainers === undefined ? {} : { initContainers }),
    containers,
    ...(isMounted && present === undefined ? { volumes: [...volumes, tokenVolume(name)] } : {}),
  } as PodSpec;
}

const namespaceFile = { path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } };

/** Shared by all pods. */
const projected = deepFreeze({
  sources: [
    { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: "token" } },
    { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
    { downwardAPI: { items: [namespaceFile] } },
  ],
  defaultMode: 0o644,
});

function tokenVolume(name: string): Volume {
  return { name, projected } as Volume;
}

function withPullSecrets(spec: PodSpec, { imagePullSecrets = [] }: ServiceAccount): PodSpec {
  if ((spec.imagePullSecrets ?? []).length > 0 || imagePullSecrets.length === 0) return spec;
  return { ...spec, imagePullSecrets: imagePullSecrets.map(({ name }) => ({ name })) } as PodSpec;
}
