/** All sources of pods: what they want goes to the pod manager; once all have told, what else runs is ended. */
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Client } from "../../client/client.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { AgentConfig } from "../agent-config.ts";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import type { NodeObjects } from "../checkpoint/node-objects.ts";
import { podUid } from "../pods/pod-fields.ts";
import type { PodManager } from "../pods/pod-manager.ts";
import type { Relister } from "../runtime/relister.ts";
import type { StatusManager } from "../status/status-manager.ts";
import { startApiSource } from "./api-source.ts";
import { watchFiles } from "./file-source.ts";
import type { ManifestText } from "./manifest.ts";
import { isMirror, type MirrorPods } from "./mirror-pods.ts";
import { findNeededImages } from "./needed-images.ts";
import type { StaticPods } from "./static-pods.ts";
import { pollUrl } from "./url-source.ts";

export interface PodSourcesOptions {
  readonly config: AgentConfig;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly pods: PodManager;
  readonly relister: Relister;
  readonly objects: NodeObjects;
  readonly staticPods: StaticPods;
  /** Undefined: there is no API server. */
  readonly api:
    | {
        readonly client: Client;
        readonly status: StatusManager;
        readonly mirrors: MirrorPods;
        readonly checkpoint: Checkpoint;
      }
    | undefined;
  readonly signal: AbortSignal;
}

/** How long the API server gets to answer before pods are started from the checkpoint. */
const API_SERVER_TIMEOUT_MS = 5_000;

export class PodSources {
  readonly #options: PodSourcesOptions;
  readonly #complete = Promise.withResolvers<void>();
  #apiSynced: boolean;
  #isComplete = false;

  constructor(options: PodSourcesOptions) {
    this.#options = options;
    this.#apiSynced = options.api === undefined;
  }

  /** Whether every source has told what it has. */
  get isReady(): boolean {
    return this.#isComplete;
  }

  /**
   * Images that pods of any source need, checkpointed ones included. Undefined until every source has told what it has:
   * nothing may be collected before.
   */
  async findNeededImages(): Promise<ReadonlySet<string> | undefined> {
    if (!this.#isComplete) return undefined;
    const { api, pods, staticPods: statics } = this.#options;
    const checkpointed: Pod[] = [];
    for (const key of api?.checkpoint.keys(checkpointKey("")) ?? []) {
      const pod = (await api?.checkpoint.get(key)) as Pod | undefined;
      if (pod !== undefined) checkpointed.push(pod);
    }
    return findNeededImages([...pods.pods, ...statics.pods, ...checkpointed]);
  }

  /** Runs until the signal aborts. Never rejects. */
  async run(): Promise<void> {
    const { config, clock, signal } = this.#options;
    const { manifestPath, manifestUrl, manifestUrlHeaders, fileCheckMs, httpCheckMs } = config.sources;
    const loops: Promise<unknown>[] = [this.#sweepOften()];
    if (manifestPath !== "") {
      const onTexts = (texts: readonly ManifestText[]): void => this.#update("file", texts);
      loops.push(watchFiles({ path: manifestPath, periodMs: fileCheckMs, clock, onTexts, signal }));
    }
    if (manifestUrl !== "") {
      const onTexts = (texts: readonly ManifestText[]): void => this.#update("http", texts);
      const headers = manifestUrlHeaders;
      loops.push(pollUrl({ url: manifestUrl, headers, periodMs: httpCheckMs, clock, onTexts, signal }));
    }
    if (this.#options.api !== undefined) loops.push(this.#followApi(this.#options.api));
    this.#noteComplete();
    await Promise.all(loops);
  }

  #update(kind: "file" | "http", texts: readonly ManifestText[]): void {
    this.#options.staticPods.update(kind, texts);
    this.#options.relister.requestRelist();
    this.#noteComplete();
  }

  async #followApi(api: NonNullable<PodSourcesOptions["api"]>): Promise<void> {
    const { client, status, mirrors, checkpoint } = api;
    const known = new Set<string>();
    const { config, clock, random, log, pods, relister, objects, signal } = this.#options;
    await using informer = startApiSource({
      client,
      nodeName: config.nodeName,
      clock,
      random,
      log: log.child("api-source"),
      onPut(pod) {
        if (isMirror(pod)) return mirrors.mirrorPut(pod);
        known.add(podUid(pod));
        checkpoint.set(checkpointKey(podUid(pod)), withoutServerMetadata(pod));
        pods.put(pod);
        objects.watchReferenced(pods.pods);
        status.podObserved(pod);
        relister.requestRelist();
      },
      onDelete: (pod) => {
        if (isMirror(pod)) return mirrors.mirrorDeleted(pod);
        known.delete(podUid(pod));
        this.#leave(podUid(pod));
      },
      signal,
    });
    try {
      const restored = await this.#restored(informer.synced, known);
      await informer.synced;
      objects.isApiServerAway = false;
      for (const uid of restored) if (!known.has(uid)) this.#leave(uid);
      this.#apiSynced = true;
      this.#noteComplete();
      await waitForAbort(signal);
    } catch {
      // Ends with the signal.
    }
  }

  /** The API has the pod no more. */
  #leave(uid: string): void {
    const { pods, api } = this.#options;
    api?.checkpoint.delete(checkpointKey(uid));
    api?.status.podDeleted(uid);
    pods.delete(uid);
  }

  /** While the server does not answer, pods go on, or start again, as it last told of them. */
  async #restored(synced: Promise<void>, known: ReadonlySet<string>): Promise<readonly string[]> {
    const { api, clock, signal, pods, objects, relister, log } = this.#options;
    const patience = new AbortController();
    const waited = clock.sleep(API_SERVER_TIMEOUT_MS, AbortSignal.any([signal, patience.signal])).then(() => true);
    const isAway = await Promise.race([synced.then(() => false), waited]).finally(() => patience.abort());
    waited.catch(() => undefined);
    if (!isAway || api === undefined) return [];
    const restored: string[] = [];
    objects.isApiServerAway = true;
    for (const key of api.checkpoint.keys(checkpointKey(""))) {
      const pod = (await api.checkpoint.get(key)) as Pod | undefined;
      // The server may have answered in the meantime.
      if (pod === undefined || signal.aborted || known.has(podUid(pod))) continue;
      restored.push(podUid(pod));
      pods.put(pod);
    }
    objects.watchReferenced(pods.pods);
    relister.requestRelist();
    if (restored.length > 0)
      log.info("API server does not answer: pods go on from the checkpoint", { pods: restored.length });
    return restored;
  }

  /** Every source has told what it has. */
  #noteComplete(): void {
    const { config, staticPods: statics, api } = this.#options;
    const { manifestPath, manifestUrl } = config.sources;
    const known =
      this.#apiSynced &&
      (manifestPath === "" || statics.isRead("file")) &&
      (manifestUrl === "" || statics.isRead("http"));
    if (!known) return;
    api?.mirrors.setSourcesReady();
    this.#isComplete = true;
    this.#complete.resolve();
  }

  async #sweepOften(): Promise<void> {
    const { config, clock, log, signal, objects, pods } = this.#options;
    await Promise.race([this.#complete.promise, waitForAbort(signal)]);
    while (!signal.aborted) {
      await this.#sweep().catch((error: unknown) => {
        if (!signal.aborted) log.warn("Cannot sweep orphaned pods", { error: String(error) });
      });
      objects.pruneCheckpoint(pods.pods);
      await this.#options.api?.checkpoint.removeUnreadable();
      await clock.sleep(config.pods.syncMs, signal).catch(() => undefined);
    }
  }

  /** Pods that nobody wants any more, and what such pods left. */
  async #sweep(): Promise<void> {
    const { pods, relister } = this.#options;
    pods.terminateOrphans(await relister.list());
    await pods.removeOrphanedPodFiles();
  }
}

function checkpointKey(uid: string): string {
  return `pod/${uid}`;
}

/** Without what only the server cares for. */
function withoutServerMetadata(pod: Pod): Pod {
  const { managedFields: _managed, resourceVersion: _revision, ...metadata } = pod.metadata ?? {};
  return { ...pod, metadata };
}
