/** Passes the pods of all sources to the pod manager. When all sources are ready, terminates other pods that run. */
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

/** Time after which pods start from the checkpoint if the API server does not respond. */
const API_SERVER_TIMEOUT_MS = 5_000;

export class PodSources {
  readonly #options: PodSourcesOptions;
  readonly #ready = Promise.withResolvers<void>();
  #apiSynced: boolean;
  #isReady = false;

  constructor(options: PodSourcesOptions) {
    this.#options = options;
    this.#apiSynced = options.api === undefined;
  }

  /** Whether every source has listed its pods. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /**
   * Images that pods of any source need, including checkpointed pods. Undefined until every source is ready: no image
   * may be collected before.
   */
  async findNeededImages(): Promise<ReadonlySet<string> | undefined> {
    if (!this.#isReady) return undefined;
    const { api, pods, staticPods } = this.#options;
    const checkpointed: Pod[] = [];
    for (const key of api?.checkpoint.keys(checkpointKey("")) ?? []) {
      const pod = (await api?.checkpoint.get(key)) as Pod | undefined;
      if (pod !== undefined) checkpointed.push(pod);
    }
    return findNeededImages([...pods.pods, ...staticPods.pods, ...checkpointed]);
  }

  /** Runs until the signal aborts. Never rejects. */
  async run(): Promise<void> {
    const { config, clock, signal } = this.#options;
    const { manifestPath, manifestUrl, manifestUrlHeaders, fileCheckMs, httpCheckMs } = config.sources;
    const loops: Promise<unknown>[] = [this.#sweepPeriodically()];
    if (manifestPath !== "") {
      const onTexts = (texts: readonly ManifestText[]): Promise<void> => this.#update("file", texts);
      loops.push(watchFiles({ path: manifestPath, periodMs: fileCheckMs, clock, onTexts, signal }));
    }
    if (manifestUrl !== "") {
      const onTexts = (texts: readonly ManifestText[]): Promise<void> => this.#update("http", texts);
      const headers = manifestUrlHeaders;
      loops.push(pollUrl({ url: manifestUrl, headers, periodMs: httpCheckMs, clock, onTexts, signal }));
    }
    if (this.#options.api !== undefined) loops.push(this.#followApi(this.#options.api));
    this.#checkReady();
    await Promise.all(loops);
  }

  async #update(kind: "file" | "http", texts: readonly ManifestText[]): Promise<void> {
    await this.#options.staticPods.update(kind, texts);
    this.#options.relister.requestRelist();
    this.#checkReady();
  }

  async #followApi(api: NonNullable<PodSourcesOptions["api"]>): Promise<void> {
    const { client, status, mirrors, checkpoint } = api;
    const listed = new Set<string>();
    const { config, clock, random, log, pods, relister, objects, signal } = this.#options;
    await using informer = startApiSource({
      client,
      nodeName: config.nodeName,
      clock,
      random,
      log: log.child("api-source"),
      onPut(pod) {
        if (isMirror(pod)) return mirrors.onMirrorUpdate(pod);
        listed.add(podUid(pod));
        checkpoint.set(checkpointKey(podUid(pod)), withoutServerMetadata(pod));
        pods.put(pod);
        objects.watchReferenced(pods.pods);
        status.onPodUpdate(pod);
        relister.requestRelist();
      },
      onDelete: (pod) => {
        if (isMirror(pod)) return mirrors.onMirrorDelete(pod);
        listed.delete(podUid(pod));
        this.#removePod(podUid(pod));
      },
      signal,
    });
    try {
      const restored = await this.#restoreFromCheckpoint(informer.synced, listed);
      await informer.synced;
      objects.isApiServerUnavailable = false;
      for (const uid of restored) if (!listed.has(uid)) this.#removePod(uid);
      this.#apiSynced = true;
      this.#checkReady();
      await waitForAbort(signal);
    } catch {
      // The signal has aborted.
    }
  }

  /** The API server no longer has the pod. */
  #removePod(uid: string): void {
    const { pods, api } = this.#options;
    api?.checkpoint.delete(checkpointKey(uid));
    api?.status.onPodDelete(uid);
    pods.delete(uid);
  }

  /** Starts the checkpointed pods if the API server does not respond in time. Resolves with their uids. */
  async #restoreFromCheckpoint(synced: Promise<void>, listed: ReadonlySet<string>): Promise<readonly string[]> {
    const { api, clock, signal, pods, objects, relister, log } = this.#options;
    const cancelled = new AbortController();
    const timeout = clock.sleep(API_SERVER_TIMEOUT_MS, AbortSignal.any([signal, cancelled.signal])).then(() => true);
    const isUnavailable = await Promise.race([synced.then(() => false), timeout]).finally(() => cancelled.abort());
    timeout.catch(() => undefined);
    if (!isUnavailable || api === undefined) return [];
    const restored: string[] = [];
    objects.isApiServerUnavailable = true;
    for (const key of api.checkpoint.keys(checkpointKey(""))) {
      const pod = (await api.checkpoint.get(key)) as Pod | undefined;
      // The API server may have responded in the meantime.
      if (pod === undefined || signal.aborted || listed.has(podUid(pod))) continue;
      restored.push(podUid(pod));
      pods.put(pod);
    }
    objects.watchReferenced(pods.pods);
    relister.requestRelist();
    if (restored.length > 0)
      log.info("API server does not respond; running pods from the checkpoint", { pods: restored.length });
    return restored;
  }

  #checkReady(): void {
    const { config, staticPods, api } = this.#options;
    const { manifestPath, manifestUrl } = config.sources;
    const isReady =
      this.#apiSynced &&
      (manifestPath === "" || staticPods.isRead("file")) &&
      (manifestUrl === "" || staticPods.isRead("http"));
    if (!isReady) return;
    api?.mirrors.setSourcesReady();
    this.#isReady = true;
    this.#ready.resolve();
  }

  async #sweepPeriodically(): Promise<void> {
    const { config, clock, log, signal, objects, pods } = this.#options;
    await Promise.race([this.#ready.promise, waitForAbort(signal)]);
    while (!signal.aborted) {
      await this.#sweep().catch((error: unknown) => {
        if (!signal.aborted) log.warn("Failed to terminate orphaned pods", { error: String(error) });
      });
      objects.pruneCheckpoint(pods.pods);
      await this.#options.api?.checkpoint.removeUnreadable();
      await clock.sleep(config.pods.syncMs, signal).catch(() => undefined);
    }
  }

  /** Terminates orphaned pods and removes their files. */
  async #sweep(): Promise<void> {
    const { pods, relister } = this.#options;
    pods.terminateOrphans(await relister.list());
    await pods.removeOrphanedPodFiles();
  }
}

function checkpointKey(uid: string): string {
  return `pod/${uid}`;
}

/** The checkpoint does not need the fields that only the API server uses. */
function withoutServerMetadata(pod: Pod): Pod {
  const { managedFields: _managed, resourceVersion: _revision, ...metadata } = pod.metadata ?? {};
  return { ...pod, metadata };
}
