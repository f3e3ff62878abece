/**
 * Every pod runs as an account of its namespace, and finds in its containers what it needs to speak to the API as that
 * account: Kubernetes' ServiceAccount.
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
import { matchesResource, metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin, AdmissionRequest, ObjectReader } from "../../chain/plugin.ts";
import { mustNameItsSecrets, unnamedSecret } from "./mountable-secrets.ts";

const DEFAULT = "default";
const MIRROR = "kubernetes.io/config.mirror";
const MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX = "kube-api-access-";
/** An hour, and a bit by which it is told from what somebody asked for. */
const TOKEN_SECONDS = 3607;
/** A controller gives each new namespace its default account, which takes a moment. */
const WAIT_MS = 150;
const WAITS_MAX = 10;

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
      if (request.operation !== "CREATE" || pod.spec === undefined || isMirror(pod)) return undefined;
      const named = withAccountName(pod.spec, pod.spec.serviceAccountName || DEFAULT);
      return andThen(accountOf(named, request, { reader, clock }), (account) => {
        const automount = named.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true;
        return { ...pod, spec: withPullSecrets(automount ? withToken(named, random) : named, account) } as Pod;
      });
    },
    validate(request) {
      const pod = request.object as Pod;
      if (pod.spec === undefined) return;
      if (isMirror(pod)) return refuseMirror(pod, request);
      if (!pod.spec.serviceAccountName) {
        const { namespace, name } = metadataOf(pod);
        throw newForbidden(
          request,
          `no service account specified for pod ${namespace ?? request.namespace}/${name ?? ""}`,
        );
      }
      const { spec } = pod;
      return andThen(accountOf(spec, request, { reader, clock }), (account) => {
        if (!mustNameItsSecrets(account)) return;
        const why = unnamedSecret(spec, account, request.operation === "UPDATE");
        if (why !== undefined) throw newForbidden(request, why);
      });
    },
  };
}

function isMirror(pod: Pod): boolean {
  return metadataOf(pod).annotations?.[MIRROR] !== undefined;
}

/** What a node runs by itself gets nothing of the cluster's. */
function refuseMirror(pod: Pod, request: AdmissionRequest): void {
  const { serviceAccountName, volumes = [] } = pod.spec ?? {};
  if (serviceAccountName) throw newForbidden(request, "a mirror pod may not reference service accounts");
  if ([...podReferences(pod)].some((reference) => reference.startsWith("secrets/"))) {
    throw newForbidden(request, "a mirror pod may not reference secrets");
  }
  if (volumes.some(({ projected }) => projected?.sources?.some((each) => each.serviceAccountToken !== undefined))) {
    throw newForbidden(request, "a mirror pod may not use service account token volume projections");
  }
}

/** The older member says the same. */
function withAccountName(spec: PodSpec, name: string): PodSpec {
  return { ...spec, serviceAccountName: name, serviceAccount: name } as PodSpec;
}

function accountOf(
  { serviceAccountName: name = "" }: PodSpec,
  request: AdmissionRequest,
  deps: Pick<Deps, "reader" | "clock">,
): MaybePromise<ServiceAccount> {
  const found = deps.reader.get(serviceAccountKind, request.namespace, name, request);
  return found === undefined || found instanceof Promise ? awaitAccount(name, found, request, deps) : found;
}

async function awaitAccount(
  name: string,
  first: MaybePromise<ServiceAccount | undefined>,
  request: AdmissionRequest,
  { reader, clock }: Pick<Deps, "reader" | "clock">,
): Promise<ServiceAccount> {
  const { namespace } = request;
  let found = await first;
  for (let waited = 0; found === undefined; waited++) {
    if (name !== DEFAULT || waited === WAITS_MAX) {
      const missing = `serviceaccount ${JSON.stringify(name)} not found`;
      throw newForbidden(request, `error looking up service account ${namespace}/${name}: ${missing}`);
    }
    await clock.sleep(WAIT_MS, request.signal);
    found = await reader.get(serviceAccountKind, namespace, name, request);
  }
  return found;
}

/** A volume with a token, the authority of the API server and the namespace, in each container that has none yet. */
function withToken(spec: PodSpec, random: RandomSource): PodSpec {
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

/** The same for all pods, which share it. */
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
