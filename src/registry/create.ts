import type { ApiObject } from "../api/kind.ts";
import type { ObjectMeta } from "../api/meta/object-meta.ts";
import { alreadyExists, badRequest, StatusError } from "../api/status.ts";
import { randomSuffix, randomUuid } from "../std/crypto/random.ts";
import type { Revision } from "../storage/store.ts";
import { runMutatingAdmission, runValidatingAdmission } from "./write/admission.ts";
import { type Allocate, withAllocation } from "./write/allocation.ts";
import { trackManagedFields, type FieldManagerOptions } from "./managed-fields/track-managed-fields.ts";
import type { Registry, Scope, WriteOptions } from "./registry.ts";
import { AFTER_ADMISSION, checkNew, applyDefaults, setNamespace, metadataOf, dedupOwnerReferences, withMetadata } from "./write/prepare.ts";

/** A generated name keeps this much of its prefix, so that the suffix fits a DNS label. */
const GENERATED_PREFIX_MAX = 58;
/** Attempts to find a generated name that is free. */
const GENERATE_ATTEMPTS = 8;

export interface CreateOptions extends WriteOptions, FieldManagerOptions {
  /** Asked before an object is created where one was to be changed; throws to forbid. */
  readonly authorizeCreate?: (() => Promise<void>) | undefined;
}

/** Resolves with the object as stored. */
export async function create<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  sent: T,
  options: CreateOptions = {},
): Promise<T> {
  if (metadataOf(sent).resourceVersion) throw badRequest("resourceVersion should not be set on objects to be created");
  return await createAny(registry, scope, sent, options);
}

/** The same for an object that an apply made: its book is kept already. */
export async function createFromApply<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  applied: T,
  options: CreateOptions = {},
): Promise<T> {
  const { resourceVersion: _, ...metadata } = metadataOf(applied);
  return await createAny(registry, scope, withMetadata(applied, metadata), { ...options, fieldManager: undefined });
}

async function createAny<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  sent: T,
  options: CreateOptions,
): Promise<T> {
  const admitted = await admitNew(registry, scope, sent, options);
  const holding = { allocator: registry.allocator, scope, dryRun: options.dryRun === true };
  for (let attempt = 1; ; attempt++) {
    try {
      return await withAllocation(holding, async (allocate) => {
        const object = await prepared(registry, scope, admitted, options, allocate);
        return await store(registry, scope, object, metadataOf(object).name ?? "", options);
      });
    } catch (error) {
      if (!(error instanceof StatusError) || error.status.reason !== "AlreadyExists") throw error;
      if (metadataOf(admitted).name) throw await explainAlreadyExists(registry, scope, error);
      if (attempt === GENERATE_ATTEMPTS) throw noNameLeft(error);
    }
  }
}

/** Clients may watch from the version of what they have made: the cache has to be there before it. */
async function waitForCache<T extends ApiObject>(registry: Registry<T>, object: T): Promise<void> {
  // What is soon forgotten, such as events, is written far more often than read.
  if (registry.uncached || registry.ttlSeconds(object) !== undefined) return;
  const { cache } = registry;
  if (!cache.shows(0 as Revision)) await cache.ready();
}

/** Whoever waits for an object to be gone is told that it is on its way. */
async function explainAlreadyExists<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  error: StatusError,
): Promise<StatusError> {
  const { code, reason = "", message = "", details = {} } = error.status;
  const present = await registry.objects.get(registry.key(scope, details.name ?? ""));
  if (present === undefined || metadataOf(present).deletionTimestamp === undefined) return error;
  return new StatusError(code, reason, `object is being deleted: ${message}`, { details });
}

/** Another try may have more luck: the names are random. */
function noNameLeft({ status }: StatusError): StatusError {
  const why = "the server was not able to generate a unique name for the object";
  const details = { ...status.details, retryAfterSeconds: 1 };
  return new StatusError(409, "AlreadyExists", `${status.message}, ${why}`, { details });
}

/** What the plugins make of what was sent. The server chooses a name only afterwards. */
async function admitNew<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  sent: T,
  options: CreateOptions,
): Promise<T> {
  const own = setNamespace(registry, scope, withMetadata(sent, clearSystemMetadata(sent)));
  const complete = dedupOwnerReferences(applyDefaults(registry, own), options);
  const filled = await trackManagedFields(registry, scope, complete, undefined, options);
  const admitted = dedupOwnerReferences(await runMutatingAdmission(filled, undefined, options), options, AFTER_ADMISSION);
  await options.checkEscalation?.(scope, admitted, undefined);
  return admitted;
}

async function prepared<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  admitted: T,
  options: CreateOptions,
  allocate: Allocate<T> | undefined,
): Promise<T> {
  const { strategy } = registry.kind;
  const named = withMetadata(admitted, systemMetadata(registry, admitted));
  const given = (await allocate?.(named, undefined)) ?? named;
  options.warn?.(strategy.warningsBeforePrepare?.(given) ?? []);
  const object = strategy.prepareForCreate?.(given, registry.timestamp(), scope.user) ?? given;
  checkNew(registry, scope, object);
  options.warn?.(strategy.warnings?.(object, undefined) ?? []);
  await options.authorizeCreate?.();
  await runValidatingAdmission(object, undefined, options);
  return object;
}

/** What only the server says is forgotten before anybody is asked who said it. */
function clearSystemMetadata(sent: ApiObject): ObjectMeta {
  const { uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, selfLink, ...metadata } =
    metadataOf(sent);
  return metadata;
}

function systemMetadata<T extends ApiObject>(registry: Registry<T>, object: T): ObjectMeta {
  const { random } = registry.deps;
  const metadata = metadataOf(object);
  return {
    ...metadata,
    ...chosenName(registry, metadata),
    uid: randomUuid(random),
    creationTimestamp: registry.timestamp(),
  };
}

function chosenName<T extends ApiObject>(registry: Registry<T>, { name, generateName }: ObjectMeta): ObjectMeta {
  const { random } = registry.deps;
  if (name) return {};
  if (generateName) return { name: generateName.slice(0, GENERATED_PREFIX_MAX) + randomSuffix(random) };
  return registry.kind.strategy.generatesMissingName === true ? { name: randomUuid(random) } : {};
}

async function store<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  object: T,
  name: string,
  options: CreateOptions,
): Promise<T> {
  const key = registry.key(scope, name);
  const subject = registry.subject(scope, name);
  if (options.dryRun === true) {
    if ((await registry.peek(scope, key)) !== undefined) throw alreadyExists(subject);
    return await registry.objects.asWritten(object);
  }
  await waitForCache(registry, object);
  return await registry.objects.create(key, object, { subject, ttlSeconds: registry.ttlSeconds(object) });
}
