/** A kind: its names, schema and columns, and its strategy for writes. */
import type { FeatureLookup } from "../flags/gates.ts";
import type { ObjectSchema } from "../schema/schema.ts";
import type { JsonSchemaProps } from "../schema/structural/json-schema-props.ts";
import type { FieldError } from "../schema/validation/field-error.ts";
import type { Steps } from "../std/async/steps.ts";
import type { ObjectMeta } from "./meta/object-meta.ts";

/** The fields of every stored object. */
export interface ApiObject {
  readonly kind?: string | undefined;
  readonly apiVersion?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
}

export const allVerbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"] as const;
export type Verb = (typeof allVerbs)[number];

export interface StoredVersion {
  /** That of its values; undefined for a version that has no protobuf form, whose JSON is converted. */
  readonly schema?: ObjectSchema;
  /** Returns the value in the version of the kind. */
  readonly convert: (value: JsonObject) => JsonObject;
}

export interface Kind<T extends ApiObject = ApiObject> {
  /** The project's own alias: `coordination.svc.io`; empty for core. See `scheme.ts` for the alias of Kubernetes. */
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
  /** Under the store's prefix: `pods` makes keys `/registry/pods/{namespace}/{name}`. */
  readonly storageName: string;
  readonly schema: ObjectSchema & { readonly name: string };
  readonly columns: readonly Column<T>[];
  /** The order of the rows of a table; that of the names when absent. */
  compareRows?(a: T, b: T): number;
  /** The conditions of the object's table row. */
  rowConditions?(object: T): readonly RowCondition[];
  /** Supported field selectors besides `metadata.name` and `metadata.namespace`: label → value in an object. */
  readonly selectableFields: Readonly<Record<string, FieldSelectorValue<T>>>;
  /** Those of `selectableFields` that the watch cache has an index for. */
  readonly indexedFields?: readonly string[];
  /** The error for an unsupported field selector, where it differs from that of most kinds. */
  readonly unsupportedFieldMessage?: (field: string) => string;
  readonly strategy: Strategy<T>;
  /** A delete returns the object, deleted or not, instead of a `Status`. */
  readonly returnsDeletedObject?: true;
  /** The format of names; a lower-case DNS subdomain when absent. Returns Kubernetes' messages for what is wrong. */
  readonly nameFormat?: (name: string) => readonly string[];
  /** Accepts any qualified name as a finalizer. Most kinds require a domain or one of Kubernetes' own finalizers. */
  readonly allowsAnyFinalizer?: boolean;
  /**
   * What Kubernetes' strategy of the kind checks on update, in this order, after the metadata that every kind checks:
   * an error is a cause of the 422 as often as it is found. `["metadata", "spec", "metadataUpdate"]` where unset.
   */
  readonly updateChecks?: readonly UpdateCheck[];
  /** The warning sent with every response: the kind is deprecated, and what to use instead. */
  readonly deprecation?: string;
  /** The Kubernetes release that introduced it, for servers that emulate an older one: `1.33`. */
  readonly since?: string;
  /** The gate without which the kind is not served. */
  readonly featureGate?: string;
  /** The version in which Kubernetes 1.33 stores the kind, where it differs: discovery publishes its hash. */
  readonly storageVersion?: string;
  /** How values are read that Kubernetes stores in a version with other members; by that version. */
  readonly storedVersions?: Readonly<Record<string, StoredVersion>>;
  /** A CustomResourceDefinition defines the kind. */
  readonly custom?: true;
  /** The group as the definition of a custom resource has it, which may be Kubernetes' alias of `group`. */
  readonly definedGroup?: string;
  /** The schema of that definition, which OpenAPI publishes. Absent where the definition allows any members. */
  readonly structuralSchema?: JsonSchemaProps;
  /** Set where the store holds another version of the kind. */
  readonly conversion?: Conversion<T>;
  /** Set instead where a webhook converts between the versions of the resource. */
  readonly converter?: Converter;
}

/** `spec`: the rules of the schema and of the strategy. `change`: the strategy's for updates, last where unset. */
export type UpdateCheck = "metadata" | "metadataUpdate" | "spec" | "change";

/** One version of each resource: the storage version, or another where the storage version is not among `kinds`. */
export function onePerResource(kinds: readonly Kind[]): readonly Kind[] {
  const stored = new Set(kinds.filter(isStorageVersion).map((kind) => kind.storageName));
  const others = new Map(kinds.filter((kind) => !stored.has(kind.storageName)).map((kind) => [kind.storageName, kind]));
  return kinds.filter((kind) => isStorageVersion(kind) || others.get(kind.storageName) === kind);
}

/** Whether this is the storage version. */
function isStorageVersion(kind: Kind): boolean {
  return storageKindOf(kind).version === kind.version;
}

/** The kind in its storage version. */
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

/** Declared as a method, so that a `Kind<Pod>` is assignable to `Kind`: parameters of methods are bivariant. */
export type FieldSelectorValue<T> = { of(object: T): string }["of"];

/** Converts between a version and the storage version. Both directions keep all that either version can express. */
export interface Conversion<T extends ApiObject> {
  readonly storageKind: Kind;
  toStorage(object: T): ApiObject;
  fromStorage(object: ApiObject): T;
}

/** A JSON object with its kind and apiVersion. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Converts between the versions of a resource through a call that may fail. All versions share one converter. */
export interface Converter {
  /** The current storage version. The store may hold objects in others. */
  readonly storageKind: Kind;
  /** Returns any version of the resource, served or not. */
  kindOf(version: string): Kind | undefined;
  /**
   * Returns the objects in `version`, in the same order; objects of that version are returned as they are. Rejects with
   * a `StatusError` when one cannot be converted.
   */
  convert(objects: readonly JsonObject[], version: string): Promise<readonly JsonObject[]>;
}

export interface Subresource<T extends ApiObject = ApiObject> {
  readonly name: string;
  readonly kind: string;
  /** Set where the body is of another group: `policy/v1` Eviction. */
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly Verb[];
  /** Served only while the gate is on. */
  readonly featureGate?: string;
  /** Set where a write through the subresource updates a part of the object itself. */
  readonly strategy?: SubresourceStrategy<T>;
  /** Set where the subresource represents the object as another kind, and accepts updates in that kind. */
  readonly view?: SubresourceView<T>;
}

/** The object represented as another kind: a Deployment as its Scale. */
export interface SubresourceView<T extends ApiObject = ApiObject> {
  /** The other kind: names, schema, columns and rules. It is not a resource of its own. */
  readonly kind: Kind;
  toView(object: T): ApiObject;
  /** The object with the changes that `shown` makes. */
  fromView(object: T, shown: ApiObject): T;
  /** The field of the object that the other kind changes; it has one manager in both. */
  readonly managedPath: readonly string[];
}

/** How a subresource updates the object: `status`, `finalize`, `approval`, `ephemeralcontainers`, … */
export interface SubresourceStrategy<T extends ApiObject = ApiObject> {
  /** Fields that the subresource does not update, so that its writer does not manage them. */
  readonly resetFields?: readonly (readonly string[])[];
  /** Alternatively, the fields that its writer can manage. `*` stands for any list item. */
  readonly manageableFields?: readonly (readonly string[])[];
  /** The object to write: all fields but those of the subresource come from `previous`. `now` is an RFC 3339 time. */
  prepareForUpdate(next: T, previous: T, now: string): T;
  validateUpdate?(next: T, previous: T, features?: FeatureLookup): readonly FieldError[];
  /** The same, for kinds whose validation may take long. */
  validateUpdateInSteps?(next: T, previous: T): Steps<readonly FieldError[]>;
  /** Like the strategy's, for the fields of the subresource. */
  warnings?(next: T, previous: T): readonly string[];
}

/** A column of `kubectl get`: its definition and the cell of an object. `now` is in milliseconds. */
export interface Column<T> {
  readonly name: string;
  readonly type: "string" | "integer" | "number" | "boolean" | "date";
  readonly format?: string;
  readonly description?: string;
  /** 0 shows always, 1 only with `-o wide`. */
  readonly priority: number;
  cell(object: T, now: number): string | number | boolean | null;
}

/** The user of a request, for kinds that record it. */
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
/** How a kind handles writes, beyond its schema. All functions are pure: they return a new object or the same one. */
export interface Strategy<T> {
  /** Sets defaults that depend on other fields; runs after the schema's defaults. Absent features have theirs. */
  setDefaults?(object: T, features?: FeatureLookup): T;
  /** Drops fields that clients may not set and sets those of the server. `now` is an RFC 3339 time. */
  prepareForCreate?(object: T, now: string, requester?: Requester): T;
  prepareForUpdate?(next: T, previous: T, now: string): T;
  /**
   * Validates across fields, after the schema's validation. Updates pass the previous object: some rules exempt what
   * was stored before they existed. Absent features have their defaults.
   */
  validate?(object: T, previous?: T, features?: FeatureLookup): readonly FieldError[];
  /** The same, for kinds whose validation may take long. */
  validateInSteps?(object: T, previous?: T): Steps<readonly FieldError[]>;
  validateUpdate?(next: T, previous: T, features?: FeatureLookup): readonly FieldError[];
  /** Warnings for the client: deprecated fields, fields without effect. Updates pass `previous`. */
  warnings?(object: T, previous: T | undefined): readonly string[];
  /** Warnings about fields that `prepareForCreate` changes. They come first. */
  warningsBeforePrepare?(object: T): readonly string[];
  /**
   * Fields that a client cannot change, and so does not manage; when absent, the status of kinds with a status
   * subresource.
   */
  readonly resetFields?: readonly (readonly string[])[];
  /** Objects without a name get a random one (LimitRange). */
  readonly generatesMissingName?: boolean;
  /** A PUT to a missing name creates the object (Event, Lease, Node in Kubernetes 1.33). */
  readonly allowCreateOnUpdate?: boolean;
  /** A PUT without a resourceVersion overwrites; true when absent. */
  readonly allowUnconditionalUpdate?: boolean;
  /** The grace period of a delete, in seconds; undefined deletes at once (all kinds but Pod). */
  gracePeriodSeconds?(object: T, requested: number | undefined): number | undefined;
  /** A delete without a propagation policy orphans the dependents; they are deleted in the background when absent. */
  readonly orphansDependentsByDefault?: boolean;
  /** The warning that such a delete returns. */
  readonly deletionWarning?: string;
  /** Restores what the stored encoding lacks: protobuf has no kind and apiVersion of nested objects. */
  afterDecode?(object: T): T;
  /** The object after the first delete request, when finalizers keep it from being deleted. */
  prepareForDelete?(object: T, now: string): T;
  /** The reason why the object may not be deleted; undefined when it may. */
  validateDelete?(object: T): string | undefined;
  /** Seconds after which the store deletes the object (Events); undefined for never. */
  ttlSeconds?(object: T, settings: StrategySettings): number | undefined;
  /** Whether the object has finalizers in its spec, which a deletion waits for as well (Namespaces). */
  hasSpecFinalizers?(object: T): boolean;
}

/** The release without the kind; empty if its removal is not planned. */
export function removedRelease({ deprecation = "" }: Pick<Kind, "deprecation">): string {
  return /unavailable in v(\d+\.\d+)/.exec(deprecation)?.[1] ?? "";
}
