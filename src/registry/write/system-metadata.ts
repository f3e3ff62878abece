/** The members of metadata that only the server sets. */
import type { ApiObject } from "../../api/kind.ts";
import type { ObjectMeta } from "../../api/meta/object-meta.ts";
import { randomSuffix, randomUuid } from "../../std/crypto/random.ts";
import type { Registry } from "../registry.ts";
import { metadataOf, withMetadata } from "./object-metadata.ts";
import type { WriteRequest } from "./request.ts";
import { checkResourceVersion } from "./resource-version.ts";

/** A generated name keeps at most this many characters of its prefix, so that with its suffix it is a DNS label. */
const GENERATED_PREFIX_MAX = 58;

/** Drops uid, timestamps and selfLink from the request before managed fields are computed. */
export function clearSystemMetadata<T extends ApiObject>(sent: T): T {
  const { uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, selfLink, ...metadata } =
    metadataOf(sent);
  return withMetadata(sent, metadata);
}

/**
 * Sets name, uid and creationTimestamp of a new object; keeps those of an existing one. Throws a 409 when the stored
 * object has another resourceVersion than the request.
 */
export function setSystemMetadata<T extends ApiObject>(
  request: WriteRequest<T>,
  object: T,
  previous: T | undefined,
): T {
  if (previous === undefined) return withMetadata(object, newMetadata(request, metadataOf(object)));
  checkResourceVersion(request, object, previous);
  return withMetadata(object, keptMetadata(metadataOf(object), metadataOf(previous)));
}

function newMetadata<T extends ApiObject>({ registry }: WriteRequest<T>, metadata: ObjectMeta): ObjectMeta {
  const { random } = registry.deps;
  return {
    ...metadata,
    ...generatedName(registry, metadata),
    uid: randomUuid(random),
    creationTimestamp: registry.timestamp(),
  };
}

function generatedName<T extends ApiObject>(registry: Registry<T>, { name, generateName }: ObjectMeta): ObjectMeta {
  const { random } = registry.deps;
  if (name) return {};
  if (generateName) return { name: generateName.slice(0, GENERATED_PREFIX_MAX) + randomSuffix(random) };
  return registry.kind.strategy.generatesMissingName === true ? { name: randomUuid(random) } : {};
}

/** Members that an update cannot change, or may omit. */
function keptMetadata(sent: ObjectMeta, previous: ObjectMeta): ObjectMeta {
  const { deletionTimestamp, deletionGracePeriodSeconds, generation, ...rest } = sent;
  return {
    ...rest,
    uid: sent.uid || previous.uid,
    resourceVersion: previous.resourceVersion,
    creationTimestamp: previous.creationTimestamp,
    ...optional("generation", previous.generation),
    ...optional("deletionTimestamp", previous.deletionTimestamp ?? deletionTimestamp),
    ...optional("deletionGracePeriodSeconds", deletionGracePeriodSeconds ?? previous.deletionGracePeriodSeconds),
  };
}

function optional<K extends string, V>(name: K, value: V | undefined): { readonly [P in K]?: V } {
  return (value === undefined ? {} : { [name]: value }) as { readonly [P in K]?: V };
}
