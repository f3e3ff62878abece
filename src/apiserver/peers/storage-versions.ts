/**
 * Publishes which versions this server stores, reads and serves of each built-in resource, as StorageVersion objects:
 * what Kubernetes' gate StorageVersionAPI does.
 */
import { storageVersionKind } from "../../api/apiserverinternal/storage-version/kind.ts";
import type { ServerStorageVersion, StorageVersion } from "../../api/apiserverinternal/storage-version/schema.ts";
import { hasEncodingCondition, withServerVersions } from "../../api/apiserverinternal/storage-version/status.ts";
import { betaKinds } from "../../api/beta-kinds.ts";
import { builtinKinds } from "../../api/builtin.ts";
import { type Kind, storageKindOf } from "../../api/kind.ts";
import { previewKinds } from "../../api/preview-kinds.ts";
import { isPersisted } from "../../api/review-kind.ts";
import { formatApiVersion, kubernetesGroup } from "../../api/scheme.ts";
import { create } from "../../registry/create.ts";
import type { Registries } from "../../registry/registries.ts";
import { guaranteedUpdate } from "../../registry/write/guaranteed-update.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { ignoreConflict, systemScope } from "../control-plane/ensure.ts";

/** Objects that are written at the same time. */
const WRITES_AT_ONCE = 8;
/** Those that can be read, whether or not they are served. */
const KNOWN_KINDS = [...builtinKinds, ...betaKinds, ...previewKinds];

/** `apps.deployments`, and `core.pods` of the core group. */
export function storageVersionName(group: string, resource: string): string {
  return `${group === "" ? "core" : kubernetesGroup(group)}.${resource}`;
}

/** Writes the objects of the served kinds; throws when the store does not answer. */
export async function publishStorageVersions(
  registries: Registries,
  kinds: readonly Kind[],
  serverId: string,
  signal: AbortSignal,
): Promise<void> {
  const pending = [...storageVersionsOf(kinds, serverId)];
  const write = async (): Promise<void> => {
    for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
      await publish(registries, next[0], next[1], signal);
    }
  };
  await Promise.all(Array.from({ length: WRITES_AT_ONCE }, write));
}

function storageVersionsOf(kinds: readonly Kind[], serverId: string): ReadonlyMap<string, ServerStorageVersion> {
  const versions = new Map<string, ServerStorageVersion>();
  for (const kind of kinds) {
    if (!isPersisted(kind) || kind.custom === true) continue;
    const name = storageVersionName(kind.group, kind.plural);
    const stored = storageKindOf(kind);
    const encodingVersion = versionOf({ ...stored, version: stored.storageVersion ?? stored.version });
    const { servedVersions = [] } = versions.get(name) ?? {};
    const known = KNOWN_KINDS.filter(({ group, plural }) => group === kind.group && plural === kind.plural);
    versions.set(name, {
      apiServerID: serverId,
      encodingVersion,
      decodableVersions: [...new Set([...known.map(versionOf), encodingVersion])],
      servedVersions: [...servedVersions, versionOf(kind)],
    });
  }
  return versions;
}

function versionOf({ group, version }: Pick<Kind, "group" | "version">): string {
  return formatApiVersion(kubernetesGroup(group), version);
}

async function publish(
  registries: Registries,
  name: string,
  own: ServerStorageVersion,
  signal: AbortSignal,
): Promise<void> {
  const registry = registries.of(storageVersionKind);
  const scope = { ...systemScope("", signal), group: kubernetesGroup(storageVersionKind.group) };
  const found = await registry.objects.get(registry.key(scope, name));
  if (found === undefined) await ignoreConflict(create(registry, scope, { metadata: { name }, spec: {} }));
  const request = { registry, scope, name, options: { subresource: "status" } };
  await guaranteedUpdate(request, (current) => withServer(current, own, registry.timestamp()));
}

/** Returns the same object when nothing changes. */
function withServer(current: StorageVersion, own: ServerStorageVersion, now: string): StorageVersion {
  const { storageVersions = [] } = current.status ?? {};
  const others = storageVersions.filter(({ apiServerID }) => apiServerID !== own.apiServerID);
  const isKnown = storageVersions.some((each) => deepEqual(each, own));
  return isKnown && hasEncodingCondition(current) ? current : withServerVersions(current, [...others, own], now);
}
