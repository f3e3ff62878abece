/** The pods, ConfigMaps and Secrets of all manifests, and the errors in them. */

import { hash } from "node:crypto";
import type { ConfigMap } from "../../api/core/config-map/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Secret } from "../../api/core/secret/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { formatTime } from "../../schema/value/time.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import { runInSlices, type Steps } from "../../std/async/steps.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { podName, podNamespace, podUid } from "../pods/pod-fields.ts";
import {
  formatProblem,
  limitProblems,
  type ManifestItem,
  type ManifestProblem,
  type ManifestText,
  manifestValuesMax,
  parseManifestInSteps,
} from "./manifest.ts";
import { decodeConfigMap, decodeSecret, makeStaticPod } from "./static-pod.ts";

type Bytes = Readonly<Record<string, Uint8Array>>;

export interface StaticPodsOptions {
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onPut: (pod: Pod) => void;
  readonly onDelete: (pod: Pod) => void;
  /** In all manifests of a source together; `manifestValuesMax` when absent. */
  readonly valuesMax?: number;
  /** Called once per problem, not again while the problem persists. */
  readonly onProblem: (text: string) => void;
  /** Called with all ConfigMaps and Secrets of the manifests. */
  readonly onObjects?: ((objects: StaticObjects) => void) | undefined;
}

export interface StaticObjects {
  readonly configMaps: readonly ConfigMap[];
  readonly secrets: readonly Secret[];
}

/** The content of one file or URL. */
interface ParsedManifest extends StaticObjects {
  readonly pods: readonly Pod[];
  readonly objects: ReadonlyMap<string, Bytes>;
  readonly problems: readonly ManifestProblem[];
  /** Of the text; undefined if it could not be read. */
  readonly digest: string | undefined;
  readonly values: number;
}

type SourceKind = "file" | "http";

interface ManifestRead {
  readonly kind: SourceKind;
  readonly text: ManifestText;
  /** The last reading. */
  readonly before: ParsedManifest | undefined;
  readonly seen: string;
  /** How many values it may have. */
  readonly left: number;
}

const empty: Omit<ParsedManifest, "problems" | "digest"> = {
  pods: [],
  objects: new Map(),
  configMaps: [],
  secrets: [],
  values: 0,
};

export class StaticPods {
  readonly #options: StaticPodsOptions;
  /** By kind of source, then by file or URL; bounded by the manifests of the operator. */
  readonly #manifests = new Map<SourceKind, ReadonlyMap<string, ParsedManifest>>();
  #pods: ReadonlyMap<string, Pod> = new Map();
  #objects: ReadonlyMap<string, Bytes> = new Map();
  #problems: readonly string[] = [];
  readonly #readKinds = new Set<SourceKind>();

  constructor(options: StaticPodsOptions) {
    this.#options = options;
  }

  get pods(): readonly Pod[] {
    return [...this.#pods.values()];
  }

  /** The current problems, one line each. */
  get problems(): readonly string[] {
    return this.#problems;
  }

  /** Whether the source has been read completely. */
  isRead(kind: SourceKind): boolean {
    return this.#readKinds.has(kind);
  }

  /** `configMap` or `secret` of a manifest, for static pods only. */
  object(kind: "configMap" | "secret", namespace: string, name: string): Bytes | undefined {
    return this.#objects.get(`${kind}/${namespace}/${name}`);
  }

  /**
   * Sets all texts of a source, one call at a time. A text that cannot be read any more keeps its pods until the source
   * removes it. Waits for other work when the texts are long.
   */
  update(kind: SourceKind, texts: readonly ManifestText[]): MaybePromise<void> {
    return runInSlices(this.#update(kind, texts));
  }

  *#update(kind: SourceKind, texts: readonly ManifestText[]): Steps<void> {
    const before = this.#manifests.get(kind) ?? new Map<string, ParsedManifest>();
    const seen = formatTime(this.#options.clock.now());
    const manifests = new Map<string, ParsedManifest>();
    let left = this.#options.valuesMax ?? manifestValuesMax;
    for (const text of texts) {
      const manifest = yield* this.#read({ kind, text, before: before.get(text.name), seen, left });
      left -= manifest.values;
      manifests.set(text.name, manifest);
    }
    this.#manifests.set(kind, manifests);
    // A URL that does not respond may have pods that run here already.
    if (kind === "file" || texts.every(({ content }) => content instanceof Uint8Array)) this.#readKinds.add(kind);
    this.#publish();
  }

  *#read({ kind, text: { name, content }, before, seen, left }: ManifestRead): Steps<ParsedManifest> {
    const { nodeName } = this.#options;
    if (!(content instanceof Uint8Array)) {
      const problem = { source: name, line: undefined, field: "", message: content.problem };
      return { ...empty, ...before, digest: undefined, problems: [problem] };
    }
    const found = hash("sha256", content);
    if (before?.digest === found) return before;
    // A URL without content has no pods any more, as in Kubernetes.
    if (kind === "http" && content.length === 0) {
      const problem = { source: name, line: undefined, field: "", message: "zero-length data received" };
      return { ...empty, digest: found, problems: [problem] };
    }
    const manifest = yield* parseManifestInSteps(content, name, left);
    // It may fit the next time.
    const digest = manifest.isLeftOut ? undefined : found;
    const invalid: ManifestProblem[] = [];
    const pods: Pod[] = [];
    for (const item of manifest.pods) {
      const made = yield* makeStaticPod(item, { kind, name, nodeName }, seen);
      if ("pod" in made) pods.push(this.#reuse(made.pod));
      else invalid.push(...made.problems);
    }
    const problems = [...manifest.problems, ...limitProblems(invalid, name)];
    const objects = new Map([
      ...manifest.configMaps.map((each) => [objectKey("configMap", each), decodeConfigMap(each.object)] as const),
      ...manifest.secrets.map((each) => [objectKey("secret", each), decodeSecret(each.object)] as const),
    ]);
    const listed = {
      configMaps: manifest.configMaps.map(({ object }) => object),
      secrets: manifest.secrets.map(({ object }) => object),
    };
    const isBroken = pods.length === 0 && objects.size === 0 && problems.length > 0;
    return isBroken && before !== undefined
      ? { ...before, digest, problems }
      : { pods, objects, ...listed, problems, digest, values: manifest.isLeftOut ? 0 : manifest.values };
  }

  /** The pod of the last reading, if only the time of reading differs. */
  #reuse(pod: Pod): Pod {
    const last = this.#pods.get(podUid(pod));
    const labels = last?.metadata?.labels;
    return last !== undefined && deepEqual(last.spec, pod.spec) && deepEqual(labels, pod.metadata?.labels) ? last : pod;
  }

  /** Reports the differences from the state before. */
  #publish(): void {
    const { onPut, onDelete, onProblem, log } = this.#options;
    const manifests = [...this.#manifests.values()].flatMap((texts) => [...texts]);
    const problems = manifests.flatMap(([, manifest]) => manifest.problems.map(formatProblem));
    const pods = new Map<string, Pod>();
    const names = new Map<string, string>();
    for (const [source, manifest] of manifests) {
      for (const pod of manifest.pods) {
        const name = `${podNamespace(pod)}/${podName(pod)}`;
        const first = names.get(name);
        if (first === undefined) {
          names.set(name, source);
          pods.set(podUid(pod), pod);
        } else if (!pods.has(podUid(pod))) problems.push(`${source}: pod ${name} is in ${first} already`);
      }
    }
    const before = this.#pods;
    const reported = new Set(this.#problems);
    this.#pods = pods;
    this.#objects = new Map(manifests.flatMap(([, manifest]) => [...manifest.objects]));
    this.#problems = problems;
    for (const text of problems) {
      if (reported.has(text)) continue;
      log.error("Manifest has a problem", text);
      onProblem(text);
    }
    this.#options.onObjects?.({
      configMaps: manifests.flatMap(([, { configMaps }]) => configMaps),
      secrets: manifests.flatMap(([, { secrets }]) => secrets),
    });
    for (const [uid, pod] of before) if (!pods.has(uid)) onDelete(pod);
    for (const [uid, pod] of pods) if (before.get(uid) !== pod) onPut(pod);
  }
}

function objectKey(kind: "configMap" | "secret", { object }: ManifestItem<ApiObject>): string {
  return `${kind}/${object.metadata?.namespace ?? "default"}/${object.metadata?.name ?? ""}`;
}
