import type { ApiObject } from "../api/kind.ts";
import { alreadyExists, badRequest, StatusError } from "../api/status.ts";
import { suffix, uuid } from "../std/random.ts";
import type { Revision } from "../storage/store.ts";
import { type Allocate, allocating } from "./allocation.ts";
import { tracked, type Writer } from "./field-tracking.ts";
import type { Registry, Scope, WriteOptions } from "./registry.ts";
import { checkNew, defaulted, inNamespace, metadataOf, ownersOnce, withMetadata } from "./write.ts";

/** A generated name keeps this much of its prefix, so that the suffix fits a DNS label. */
const GENERATED_PREFIX_MAX = 58;
/** Attempts to find a generated name that is free. */
const GENERATE_ATTEMPTS = 8;

/** Called with the object about to be written; throws to forbid it, or resolves with what is to be written instead. */
export type Admit = (scope: Scope, object: ApiObject) => Promise<ApiObject | undefined>;

export interface CreateOptions extends WriteOptions, Writer {
  readonly admit?: Admit | undefined;
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
export async function createApplied<T extends ApiObject>(
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
  const holding = { allocator: registry.allocator, scope, dryRun: options.dryRun === true };
  for (let attempt = 1; ; attempt++) {
    try {
      return await allocating(holding, async (allocate) => {
        const object = await prepared(registry, scope, sent, options, allocate);
        return await store(registry, scope, object, metadataOf(object).name ?? "", options);
      });
    } catch (error) {
      if (!(error instanceof StatusError) || error.status.reason !== "AlreadyExists") throw error;
      if (metadataOf(sent).name) throw await whyTaken(registry, scope, error);
      if (attempt === GENERATE_ATTEMPTS) throw noNameLeft(error);
    }
  }
}

/** Clients may watch from the version of what they have made: the cache has to be there before it. */
async function remembered<T extends ApiObject>(registry: Registry<T>, object: T): Promise<void> {
  // What is soon forgotten, such as events, is written far more often than read.
  if (registry.uncached || registry.ttlSeconds(object) !== undefined) return;
  const { cache } = registry;
  if (!cache.shows(0 as Revision)) await cache.ready();
}

/** Whoever waits for an object to be gone is told that it is on its way. */
async function whyTaken<T extends ApiObject>(
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

async function prepared<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  sent: T,
  options: CreateOptions,
  allocate: Allocate<T> | undefined,
): Promise<T> {
  const { strategy } = registry.kind;
  const named = withMetadata(sent, chosenName(registry, sent));
  const complete = ownersOnce(defaulted(registry, inNamespace(registry, scope, named)), options);
  const filled = tracked(registry, scope, complete, undefined, options);
  const admitted = ((await options.admit?.(scope, filled)) as T | undefined) ?? filled;
  const given = (await allocate?.(admitted, undefined)) ?? admitted;
  const identified = withMetadata(given, systemMetadata(registry, given));
  options.warn?.(strategy.warningsOfSent?.(identified) ?? []);
  const object = strategy.prepareForCreate?.(identified, registry.timestamp()) ?? identified;
  checkNew(registry, scope, object);
  await options.confirm?.(scope, object, undefined);
  options.warn?.(strategy.warnings?.(object, undefined) ?? []);
  return object;
}

function chosenName<T extends ApiObject>(registry: Registry<T>, sent: T) {
  // What only the server says is forgotten before anybody is asked who said it.
  const { deletionTimestamp, deletionGracePeriodSeconds, selfLink, ...metadata } = metadataOf(sent);
  const { name, generateName } = metadata;
  if (name) return metadata;
  if (generateName) {
    return { ...metadata, name: generateName.slice(0, GENERATED_PREFIX_MAX) + suffix(registry.deps.random) };
  }
  return registry.kind.strategy.namesItself === true ? { ...metadata, name: uuid(registry.deps.random) } : metadata;
}

function systemMetadata<T extends ApiObject>(registry: Registry<T>, object: T) {
  return { ...metadataOf(object), uid: uuid(registry.deps.random), creationTimestamp: registry.timestamp() };
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
    return object;
  }
  await remembered(registry, object);
  return await registry.objects.create(key, object, { subject, ttlSeconds: registry.ttlSeconds(object) });
}
