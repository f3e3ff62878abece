/** What all manifests together ask for: which pods, with which ConfigMaps and Secrets, and what is wrong with them. */

import type { ConfigMap } from "../../api/core/config-map/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Secret } from "../../api/core/secret/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { formatTime } from "../../schema/value/time.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { podName, podNamespace, podUid } from "../pods/pod-fields.ts";
import {
  formatProblem,
  type ManifestItem,
  type ManifestProblem,
  type ManifestText,
  parseManifest,
} from "./manifest.ts";
import { decodeConfigMap, decodeSecret, makeStaticPod } from "./static-pod.ts";

type Bytes = Readonly<Record<string, Uint8Array>>;

export interface StaticPodsOptions {
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onPut: (pod: Pod) => void;
  readonly onDelete: (pod: Pod) => void;
  /** Called once for every problem, not again while it stays. */
  readonly onProblem: (text: string) => void;
  /** What lies beside the pods now. */
  readonly onObjects?: ((objects: StaticObjects) => void) | undefined;
}

export interface StaticObjects {
  readonly configMaps: readonly ConfigMap[];
  readonly secrets: readonly Secret[];
}

/** What was made of one text. */
interface ParsedManifest extends StaticObjects {
  readonly pods: readonly Pod[];
  readonly objects: ReadonlyMap<string, Bytes>;
  readonly problems: readonly ManifestProblem[];
  /** What it was made of; undefined for a text that could not be had. */
  readonly content: Uint8Array | undefined;
}

type SourceKind = "file" | "http";

const empty: Pick<ParsedManifest, "pods" | "objects" | keyof StaticObjects> = {
  pods: [],
  objects: new Map(),
  configMaps: [],
  secrets: [],
};

export class StaticPods {
  readonly #options: StaticPodsOptions;
  /** By kind of source, then by name of the text; bounded by what the operator put there. */
  readonly #readings = new Map<SourceKind, ReadonlyMap<string, ParsedManifest>>();
  #pods: ReadonlyMap<string, Pod> = new Map();
  #objects: ReadonlyMap<string, Bytes> = new Map();
  #problems: readonly string[] = [];
  readonly #answered = new Set<SourceKind>();

  constructor(options: StaticPodsOptions) {
    this.#options = options;
  }

  get pods(): readonly Pod[] {
    return [...this.#pods.values()];
  }

  /** What is wrong now, one line each. */
  get problems(): readonly string[] {
    return this.#problems;
  }

  /** Whether the source has been read, so that what it does not have is known. */
  isRead(kind: SourceKind): boolean {
    return this.#answered.has(kind);
  }

  /** `configMap` or `secret` of a manifest, for static pods only. */
  object(kind: "configMap" | "secret", namespace: string, name: string): Bytes | undefined {
    return this.#objects.get(`${kind}/${namespace}/${name}`);
  }

  /** All texts that a source has now. A text that cannot be read any more keeps the pods it had until it is gone. */
  update(kind: SourceKind, texts: readonly ManifestText[]): void {
    const before = this.#readings.get(kind) ?? new Map<string, ParsedManifest>();
    const seen = formatTime(this.#options.clock.now());
    this.#readings.set(
      kind,
      new Map(texts.map((text) => [text.name, this.#read(kind, text, before.get(text.name), seen)])),
    );
    // A server that does not answer may have pods that run here.
    if (kind === "file" || texts.every(({ content }) => content instanceof Uint8Array)) this.#answered.add(kind);
    this.#tell();
  }

  #read(
    kind: SourceKind,
    { name, content }: ManifestText,
    before: ParsedManifest | undefined,
    seen: string,
  ): ParsedManifest {
    const { nodeName } = this.#options;
    if (!(content instanceof Uint8Array)) {
      const problem = { source: name, line: undefined, field: "", message: content.problem };
      return { ...empty, ...before, content: undefined, problems: [problem] };
    }
    if (before?.content !== undefined && Buffer.compare(before.content, content) === 0) return before;
    const manifest = parseManifest(content, name);
    const problems = [...manifest.problems];
    const pods = manifest.pods.flatMap((item) => {
      const made = makeStaticPod(item, { kind, name, nodeName }, seen);
      if ("pod" in made) return [this.#same(made.pod)];
      problems.push(...made.problems);
      return [];
    });
    const objects = new Map([
      ...manifest.configMaps.map((each) => [objectKey("configMap", each), decodeConfigMap(each.object)] as const),
      ...manifest.secrets.map((each) => [objectKey("secret", each), decodeSecret(each.object)] as const),
    ]);
    const found = {
      configMaps: manifest.configMaps.map(({ object }) => object),
      secrets: manifest.secrets.map(({ object }) => object),
    };
    const isBroken = pods.length === 0 && objects.size === 0 && problems.length > 0;
    return isBroken && before !== undefined
      ? { ...before, content, problems }
      : { pods, objects, ...found, problems, content };
  }

  /** The pod that is known already, where nothing but the time of reading differs. */
  #same(pod: Pod): Pod {
    const known = this.#pods.get(podUid(pod));
    const labels = known?.metadata?.labels;
    return known !== undefined && deepEqual(known.spec, pod.spec) && deepEqual(labels, pod.metadata?.labels)
      ? known
      : pod;
  }

  /** What differs from what was told before. */
  #tell(): void {
    const { onPut, onDelete, onProblem, log } = this.#options;
    const readings = [...this.#readings.values()].flatMap((texts) => [...texts]);
    const problems = readings.flatMap(([, reading]) => reading.problems.map(formatProblem));
    const pods = new Map<string, Pod>();
    const names = new Map<string, string>();
    for (const [source, reading] of readings) {
      for (const pod of reading.pods) {
        const name = `${podNamespace(pod)}/${podName(pod)}`;
        const first = names.get(name);
        if (first === undefined) {
          names.set(name, source);
          pods.set(podUid(pod), pod);
        } else if (!pods.has(podUid(pod))) problems.push(`${source}: pod ${name} is in ${first} already`);
      }
    }
    const before = this.#pods;
    const known = new Set(this.#problems);
    this.#pods = pods;
    this.#objects = new Map(readings.flatMap(([, reading]) => [...reading.objects]));
    this.#problems = problems;
    for (const text of problems) {
      if (known.has(text)) continue;
      log.error("Manifest has a problem", text);
      onProblem(text);
    }
    this.#options.onObjects?.({
      configMaps: readings.flatMap(([, { configMaps }]) => configMaps),
      secrets: readings.flatMap(([, { secrets }]) => secrets),
    });
    for (const [uid, pod] of before) if (!pods.has(uid)) onDelete(pod);
    for (const [uid, pod] of pods) if (before.get(uid) !== pod) onPut(pod);
  }
}

function objectKey(kind: "configMap" | "secret", { object }: ManifestItem<ApiObject>): string {
  return `${kind}/${object.metadata?.namespace ?? "default"}/${object.metadata?.name ?? ""}`;
}
