/** What the server knows of one kind: data, and the few behaviours a kind may have of its own. */

import type { ObjectSchema } from "../schema/schema.ts";
import type { FieldError } from "../schema/validation/field-error.ts";
import type { ObjectMeta } from "./meta/object-meta.ts";

/** The members every stored object has. */
export interface ApiObject {
  readonly kind?: string | undefined;
  readonly apiVersion?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
}

export const allVerbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"] as const;
export type Verb = (typeof allVerbs)[number];

export interface Kind<T extends ApiObject = ApiObject> {
  /** The project's own spelling: `coordination.svc.io`; empty for core. See `scheme.ts` for the Kubernetes spelling. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly verbs: readonly Verb[];
  readonly subresources: readonly Subresource<T>[];
  /** Under the store's prefix: `pods`, so that keys read `/registry/pods/{namespace}/{name}`. */
  readonly storageName: string;
  readonly schema: ObjectSchema & { readonly name: string };
  readonly columns: readonly Column<T>[];
  /** What a row of a table says of its object beside the cells. */
  rowConditions?(object: T): readonly RowCondition[];
  /** Field selectors this kind answers besides `metadata.name` and `metadata.namespace`: label → value in an object. */
  readonly selectableFields: Readonly<Record<string, FieldSelectorValue<T>>>;
  /** Those of `selectableFields` that the watch cache has an index for. */
  readonly indexedFields?: readonly string[];
  /** What is said to who asks for another field, where it is not what most kinds say. */
  readonly unsupportedFieldMessage?: (field: string) => string;
  readonly strategy: Strategy<T>;
  /** A delete answers with the object as it was, deleted or not, instead of with a `Status`. */
  readonly returnsDeletedObject?: true;
  /**
   * What the name must look like; a lower-case DNS subdomain when absent. Returns what is wrong, in Kubernetes' words.
   */
  readonly nameFormat?: (name: string) => readonly string[];
  /** Whether finalizers may be any qualified name; of most kinds they must have a domain, or be Kubernetes' own. */
  readonly allowsAnyFinalizer?: boolean;
  /** Said with every answer: that the kind is on its way out, and what to use instead. */
  readonly deprecation?: string;
  /** The release of Kubernetes that has it first, where servers may speak as an older one: `1.33`. */
  readonly since?: string;
  /** The version in which Kubernetes 1.33 keeps the kind, where it is another one: discovery tells its hash. */
  readonly storageVersion?: string;
  /** Whether a CustomResourceDefinition defines it. */
  readonly custom?: true;
  /** Set where the store holds another version of the kind. */
  readonly conversion?: Conversion<T>;
  /** Set instead where a webhook knows how the versions of the resource differ, whichever of them this is. */
  readonly converter?: Converter;
}

/** Each resource in one version: that which is stored, or another where only that is among them. */
export function onePerResource(kinds: readonly Kind[]): readonly Kind[] {
  const stored = new Set(kinds.filter(isStorageVersion).map((kind) => kind.storageName));
  const others = new Map(kinds.filter((kind) => !stored.has(kind.storageName)).map((kind) => [kind.storageName, kind]));
  return kinds.filter((kind) => isStorageVersion(kind) || others.get(kind.storageName) === kind);
}

/** Whether objects are stored in this version. */
function isStorageVersion(kind: Kind): boolean {
  return storageKindOf(kind).version === kind.version;
}

/** The version in which objects of the kind are stored. */
export function storageKindOf(kind: Kind): Kind {
  return kind.conversion?.storageKind ?? kind.converter?.storageKind ?? kind;
}

/** As `meta/v1.TableRowCondition`; clients may dim a completed row. */
export interface RowCondition {
  readonly type: "Completed";
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
}

/** Declared as a method, so that a `Kind<Pod>` is a `Kind` (parameters of methods are compared both ways). */
export type FieldSelectorValue<T> = { of(object: T): string }["of"];

/** Between a kind and the version of it that is stored. Both directions keep everything either version can say. */
export interface Conversion<T extends ApiObject> {
  readonly storageKind: Kind;
  toStorage(object: T): ApiObject;
  fromStorage(object: ApiObject): T;
}

/** An object as JSON has it, with its kind and apiVersion. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Between the versions of a resource where somebody else has to be asked, who may fail. One for all its versions. */
export interface Converter {
  /** The version in which objects are stored from now on. There may be objects that lie in others. */
  readonly storageKind: Kind;
  /** Any version of the resource, whether it is served or not. */
  kindOf(version: string): Kind | undefined;
  /**
   * The objects in one of the versions, in the same order; those that are of it are handed back as they are. Rejects
   * with a `StatusError` when one of them cannot be had.
   */
  convert(objects: readonly JsonObject[], version: string): Promise<readonly JsonObject[]>;
}

export interface Subresource<T extends ApiObject = ApiObject> {
  readonly name: string;
  readonly kind: string;
  /** Where the body is of another group: `policy/v1` Eviction. */
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly Verb[];
  /** Present where a write through the subresource is an update of the object itself, of which it may change a part. */
  readonly strategy?: SubresourceStrategy<T>;
  /** Present where the subresource shows the object as one of another kind, and takes changes in that form. */
  readonly view?: SubresourceView<T>;
}

/** A Deployment as its Scale. */
export interface SubresourceView<T extends ApiObject = ApiObject> {
  /** What is shown: its names, schema, columns and rules. It is no resource of its own. */
  readonly kind: Kind;
  toView(object: T): ApiObject;
  /** The object with what `shown` has changed. */
  fromView(object: T, shown: ApiObject): T;
  /** What a configuration of the form shown says of the object. */
  configurationFromView(shown: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
}

/** What an update through a subresource may change: `status`, `finalize`, `approval`, `ephemeralcontainers`, … */
export interface SubresourceStrategy<T extends ApiObject = ApiObject> {
  /** Members that a write through the subresource leaves as they are, and so cannot manage. */
  readonly resetFields?: readonly (readonly string[])[];
  /** Where it is shorter to say: what it can manage. `*` stands for any item of a list. */
  readonly manageableFields?: readonly (readonly string[])[];
  /** The object to be written: everything but the part comes from `previous`. `now` is as `metadata` has times. */
  prepareForUpdate(next: T, previous: T, now: string): T;
  validateUpdate?(next: T, previous: T): readonly FieldError[];
  /** As a strategy's, of what the subresource may change. */
  warnings?(next: T, previous: T): readonly string[];
}

/** One column of `kubectl get`: its definition and the cell of an object. `now` is in milliseconds. */
export interface Column<T> {
  readonly name: string;
  readonly type: "string" | "integer" | "number" | "boolean" | "date";
  readonly format?: string;
  readonly description?: string;
  /** 0 shows always, 1 only with `-o wide`. */
  readonly priority: number;
  cell(object: T, now: number): string | number | boolean | null;
}

/** Who sent a request, for kinds whose objects tell. */
export interface Requester {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** Flags of the server that strategies depend on. */
export interface StrategySettings {
  /** `--event-ttl`; events never expire when absent. */
  readonly eventTtlSeconds?: number | undefined;
}
/** What a kind does on writes, beyond its schema. All functions are pure: they return a new object or the same one. */
export interface Strategy<T> {
  /** Defaults that depend on more than the field itself; runs after the schema's own. */
  setDefaults?(object: T): T;
  /** Drops what a client may not set, fills what the server sets. `now` is as `metadata` has times. */
  prepareForCreate?(object: T, now: string, requester?: Requester): T;
  prepareForUpdate?(next: T, previous: T, now: string): T;
  /**
   * Cross-field rules, after the schema's validation. On updates too, with the object as it was: some rules spare what
   * was stored before they came.
   */
  validate?(object: T, previous?: T): readonly FieldError[];
  validateUpdate?(next: T, previous: T): readonly FieldError[];
  /** What a client is told although nothing is wrong: deprecated, pointless members. Updates have a `previous`. */
  warnings?(object: T, previous: T | undefined): readonly string[];
  /** Those about members of a new object that `prepareForCreate` changes. They come first. */
  warningsBeforePrepare?(object: T): readonly string[];
  /** Members that a client cannot change, and so cannot manage; the status where it has a subresource, when absent. */
  readonly resetFields?: readonly (readonly string[])[];
  /** Objects that come without a name get a random one (LimitRange). */
  readonly generatesMissingName?: boolean;
  /** PUT to a name that does not exist creates it (Event, Lease, Node in Kubernetes 1.33: see facts). */
  readonly allowCreateOnUpdate?: boolean;
  /** PUT without a resourceVersion overwrites; true when absent. */
  readonly allowUnconditionalUpdate?: boolean;
  /** Seconds of grace a delete grants; undefined means the object goes at once (everything but Pods). */
  gracePeriodSeconds?(object: T, requested: number | undefined): number | undefined;
  /** A delete that does not say what becomes of dependents leaves them alone; they go too when absent. */
  readonly orphansDependentsByDefault?: boolean;
  /** What the sender of such a delete is told. */
  readonly deletionWarning?: string;
  /** Puts back what the stored form cannot say: kind and apiVersion of objects within have no protobuf form. */
  afterDecode?(object: T): T;
  /** What the first request to delete makes of the object, where it does not go before its finalizers are gone. */
  prepareForDelete?(object: T, now: string): T;
  /** Why the object may not be deleted; undefined when it may. */
  validateDelete?(object: T): string | undefined;
  /** Seconds after which the store deletes the object (Events); undefined for never. */
  ttlSeconds?(object: T, settings: StrategySettings): number | undefined;
  /** Whether the object has finalizers in its spec, which a deletion waits for as well (Namespaces). */
  hasSpecFinalizers?(object: T): boolean;
}
