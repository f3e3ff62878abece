import { namespaceKind } from "../api/core/namespace/kind.ts";
import { podKind } from "../api/core/pod/kind.ts";
import type { SharedInformers } from "../client/informer/shared-informers.ts";
import type { Clock, Timer } from "../std/time/clock.ts";

/** How long informers of pods and namespaces stay open without policies. */
const IDLE_MS = 300_000;

interface OpenInformers {
  readonly informers: SharedInformers & AsyncDisposable;
  isSynced: boolean;
}

export interface PodInformersOptions {
  readonly openInformers: () => SharedInformers & AsyncDisposable;
  readonly clock: Clock;
  /** Called when pods and namespaces are listed. */
  readonly onSync: () => void;
}

/** Informers of pods and namespaces: open while there are policies, and a few minutes longer. */
export class PodInformers {
  readonly #options: PodInformersOptions;
  #open: OpenInformers | undefined;
  #idle: Timer | undefined;

  constructor(options: PodInformersOptions) {
    this.#options = options;
  }

  /** Those that are open, listed or not. */
  get current(): SharedInformers | undefined {
    return this.#open?.informers;
  }

  /** Opens the informers; undefined until pods and namespaces are listed. */
  open(): SharedInformers | undefined {
    this.#idle?.cancel();
    this.#idle = undefined;
    this.#open ??= this.#start();
    return this.#open.isSynced ? this.#open.informers : undefined;
  }

  closeLater(): void {
    if (this.#open !== undefined) this.#idle ??= this.#options.clock.timer(IDLE_MS, () => void this.close());
  }

  async close(): Promise<void> {
    this.#idle?.cancel();
    this.#idle = undefined;
    const open = this.#open;
    this.#open = undefined;
    await open?.informers[Symbol.asyncDispose]();
  }

  #start(): OpenInformers {
    const informers = this.#options.openInformers();
    const open: OpenInformers = { informers, isSynced: false };
    Promise.all([informers.of(podKind).synced, informers.of(namespaceKind).synced])
      .then(() => {
        open.isSynced = true;
        this.#options.onSync();
      })
      // It was closed.
      .catch(() => {});
    return open;
  }
}
