import type { ApiObject } from "../../api/kind.ts";
import { alreadyExists, StatusError } from "../../api/status.ts";
import type { Revision } from "../../storage/store.ts";
import { readLatest } from "../read/latest.ts";
import type { Registry } from "../registry.ts";
import { type Allocate, withAllocation } from "./allocation.ts";
import { metadataOf } from "./object-metadata.ts";
import type { WriteRequest } from "./request.ts";

/** The steps of the pipeline after admission; resolves with the object to store. */
export type Prepare<T> = (allocate: Allocate<T>) => Promise<T>;

/** The last step: stores what `prepare` resolves with, for the object that admission let through. */
export type StoreStep<T> = (admitted: T, prepare: Prepare<T>) => Promise<T>;

/** Attempts to find a generated name that no object has. */
const GENERATE_ATTEMPTS = 8;

/** Stores a new object. Prepares it again under another name when a generated one is taken. */
export async function storeNew<T extends ApiObject>(
  request: WriteRequest<T>,
  admitted: T,
  prepare: Prepare<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await withAllocation(request, async (allocate) => await storeObject(request, await prepare(allocate)));
    } catch (error) {
      if (!(error instanceof StatusError) || error.status.reason !== "AlreadyExists") throw error;
      if (metadataOf(admitted).name) throw await explainAlreadyExists(request, error);
      if (attempt === GENERATE_ATTEMPTS) throw noUniqueName(error);
    }
  }
}

async function storeObject<T extends ApiObject>({ registry, scope, options }: WriteRequest<T>, object: T): Promise<T> {
  const name = metadataOf(object).name ?? "";
  const key = registry.key(scope, name);
  const subject = registry.subject(scope, name);
  if (options.dryRun === true) {
    if ((await readLatest(registry, scope, key)) !== undefined) throw alreadyExists(subject);
    return await registry.objects.roundTrip(object);
  }
  checkNoResourceVersion(object);
  await waitForCache(registry, object);
  return await registry.objects.create(key, object, { subject, ttlSeconds: registry.ttlSeconds(object) });
}

/**
 * Kubernetes' store rejects new objects with a number as resourceVersion, after all other checks and not in a dry run;
 * it ignores other texts.
 */
function checkNoResourceVersion(object: ApiObject): void {
  const version = metadataOf(object).resourceVersion ?? "";
  if (!/^\d{1,20}$/.test(version) || /^0+$/.test(version)) return;
  throw new StatusError(500, "", "resourceVersion should not be set on objects to be created");
}

/** A client may watch from the resourceVersion of the object it created: the cache must be ready before that. */
async function waitForCache<T extends ApiObject>(registry: Registry<T>, object: T): Promise<void> {
  // Objects with a TTL, such as events, are written far more often than read.
  if (registry.bypassesCache || registry.ttlSeconds(object) !== undefined) return;
  const { cache } = registry;
  await cache.waitFor(0 as Revision);
}

/** Adds "object is being deleted" when the existing object is terminating. */
async function explainAlreadyExists<T extends ApiObject>(
  { registry, scope }: WriteRequest<T>,
  error: StatusError,
): Promise<StatusError> {
  const { code, reason = "", message = "", details = {} } = error.status;
  // It may be an encrypted object that cannot be read.
  const existing = await registry.objects.get(registry.key(scope, details.name ?? "")).catch(() => undefined);
  if (existing === undefined || metadataOf(existing).deletionTimestamp === undefined) return error;
  return new StatusError(code, reason, `object is being deleted: ${message}`, { details });
}

/** The client may retry: the names are random. */
function noUniqueName({ status }: StatusError): StatusError {
  const why = "the server was not able to generate a unique name for the object";
  const details = { ...status.details, retryAfterSeconds: 1 };
  return new StatusError(409, "AlreadyExists", `${status.message}, ${why}`, { details });
}
