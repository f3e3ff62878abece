/**
 * The objects of a node without API server, written into a store in memory from which clients list and watch. Holds the
 * latest version of each; bounded by what the operator put on the node.
 */
import { createHash } from "node:crypto";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import { secretKind } from "../../api/core/secret/kind.ts";
import type { Secret } from "../../api/core/secret/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { ignoreNotFound } from "../../api/status.ts";
import { formatTime } from "../../schema/value/time.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import { type RandomSource, randomUuid } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { ObjectStore } from "../../storage/object-store.ts";
import type { Store } from "../../storage/store.ts";
import { podUid } from "../pods/pod-fields.ts";
import type { StaticObjects } from "../sources/static-pods.ts";

export interface PublishedObjectsOptions {
  readonly store: Store;
  /** `/registry` */
  readonly prefix: string;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}

interface PendingWrite {
  readonly objects: ObjectStore<ApiObject>;
  /** Undefined: delete it. */
  readonly object: ApiObject | undefined;
}

/** Set on Secrets: clients see their names and keys, and no values. */
const REDACTED_ANNOTATION = "svc.io/withheld";
/** In addition to those of the objects: kubectl's default, and the namespace of the node's lease. */
const NAMESPACES = ["default", "kube-node-lease"];

export class PublishedObjects implements AsyncDisposable {
  readonly #options: PublishedObjectsOptions;
  readonly #pods: ObjectStore<ApiObject>;
  readonly #configMaps: ObjectStore<ApiObject>;
  readonly #secrets: ObjectStore<ApiObject>;
  readonly #namespaces: ObjectStore<ApiObject>;
  /** By key, until written. */
  readonly #pending = new Map<string, PendingWrite>();
  readonly #queue: WorkQueue;
  /** Keys of the current ConfigMaps and Secrets. */
  #manifests: ReadonlySet<string> = new Set();
  readonly #namespaceNames = new Set<string>();

  constructor(options: PublishedObjectsOptions) {
    this.#options = options;
    const { store, prefix, clock, random, log } = options;
    const of = (kind: unknown): ObjectStore<ApiObject> => new ObjectStore({ store, prefix, kind: kind as Kind });
    this.#pods = of(podKind);
    this.#configMaps = of(configMapKind);
    this.#secrets = of(secretKind);
    this.#namespaces = of(namespaceKind);
    this.#queue = new WorkQueue({
      clock,
      random,
      concurrency: 1,
      backoff: { initialMs: 200, maxMs: 30_000, jitter: 0.2 },
      work: (key) => this.#write(key),
      onError: (key, error) => log.warn("Cannot publish object", { key, error: String(error) }),
    });
    for (const name of NAMESPACES) this.#putNamespace(name);
  }

  putPod(pod: Pod, status: PodStatus): void {
    const creationTimestamp = pod.metadata?.creationTimestamp ?? status.startTime ?? this.#now();
    this.#put(this.#pods, { ...pod, metadata: { ...pod.metadata, creationTimestamp }, status } as Pod);
  }

  /** The pod has terminated, and no source has it. */
  deletePod(pod: Pod): void {
    const { namespace, name = "" } = pod.metadata ?? {};
    const key = this.#pods.key(namespace, name);
    const next = this.#pending.get(key)?.object;
    // An edited manifest is another pod of the same name, which may be published already.
    if (next !== undefined && podUid(next as Pod) !== podUid(pod)) return;
    this.#enqueue(key, { objects: this.#pods, object: undefined });
  }

  /** Replaces all ConfigMaps and Secrets. */
  putManifestObjects({ configMaps, secrets }: StaticObjects): void {
    const before = this.#manifests;
    const keys = [
      ...configMaps.map((each) => this.#put(this.#configMaps, this.#withServerMetadata("configMap", each))),
      ...secrets.map((each) => this.#put(this.#secrets, this.#withServerMetadata("secret", redactSecret(each)))),
    ];
    this.#manifests = new Set(keys);
    for (const key of before) {
      if (this.#manifests.has(key)) continue;
      const objects = key.startsWith(this.#secrets.prefix()) ? this.#secrets : this.#configMaps;
      this.#enqueue(key, { objects, object: undefined });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#queue[Symbol.asyncDispose]();
  }

  #now(): string {
    return formatTime(this.#options.clock.now());
  }

  /** Adds the metadata that a server would add. The uid depends on the name only. */
  #withServerMetadata(kind: string, object: ApiObject): ApiObject {
    const { name, namespace = "default" } = object.metadata ?? {};
    const uid = createHash("md5").update(`${kind}/${namespace}/${name}`).digest("hex");
    return { ...object, metadata: { ...object.metadata, namespace, uid, creationTimestamp: this.#now() } };
  }

  #putNamespace(name: string): void {
    if (this.#namespaceNames.has(name)) return;
    this.#namespaceNames.add(name);
    const metadata = { name, uid: randomUuid(this.#options.random), creationTimestamp: this.#now() };
    const made = { metadata, spec: { finalizers: ["kubernetes"] }, status: { phase: "Active" } };
    const object = namespaceKind.strategy.setDefaults?.(made as never) ?? made;
    this.#enqueue(this.#namespaces.key(undefined, name), { objects: this.#namespaces, object: object as ApiObject });
  }

  #put(objects: ObjectStore<ApiObject>, object: ApiObject): string {
    const { namespace = "default", name = "" } = object.metadata ?? {};
    this.#putNamespace(namespace);
    const key = objects.key(namespace, name);
    this.#enqueue(key, { objects, object });
    return key;
  }

  #enqueue(key: string, wanted: PendingWrite): void {
    this.#pending.set(key, wanted);
    this.#queue.add(key);
  }

  async #write(key: string): Promise<void> {
    const wanted = this.#pending.get(key);
    if (wanted === undefined) return;
    const { objects, object } = wanted;
    const before = await objects.get(key);
    // Another object of the same name is published as a deletion and a creation.
    const isOther = before !== undefined && object?.metadata?.uid !== before.metadata?.uid;
    const isKept = before !== undefined && object !== undefined && !isOther;
    if (before !== undefined && !isKept) await objects.delete(key).catch(ignoreNotFound);
    if (isKept) await objects.guaranteedUpdate(key, (current) => keepCreationTimestamp(object, current));
    else if (object !== undefined) await objects.create(key, object);
    if (this.#pending.get(key) === wanted) this.#pending.delete(key);
  }
}

/** Updates do not change the creation time. */
function keepCreationTimestamp(next: ApiObject, current: ApiObject): ApiObject {
  const { creationTimestamp } = current.metadata ?? {};
  return { ...next, metadata: { ...next.metadata, creationTimestamp } } as ApiObject;
}

/** Values are not published: pods get them, and the manifests have them. */
function redactSecret(secret: Secret): Secret {
  const { data, stringData, ...rest } = secret;
  const names = Object.keys({ ...data, ...stringData });
  const annotations = { ...secret.metadata?.annotations, [REDACTED_ANNOTATION]: "values are in the manifest only" };
  // kubectl apply stores the whole Secret in this annotation.
  delete (annotations as Record<string, string>)["kubectl.kubernetes.io/last-applied-configuration"];
  return {
    ...rest,
    type: secret.type ?? "Opaque",
    metadata: { ...secret.metadata, annotations },
    data: Object.fromEntries(names.map((name) => [name, ""])),
  };
}
