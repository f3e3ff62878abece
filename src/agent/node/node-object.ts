/** The Node object on the API server, to which other clients add labels, taints and resources. */

import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import type { Client } from "../../client/client.ts";
import { type Informer, startInformer } from "../../client/informer/informer.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";

export interface NodeObjectOptions {
  /** Undefined: there is no API server, and `initial` is the node. */
  readonly client: Client | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** The node as the agent measured and configured it. */
  readonly initial: Node;
  /** Called when the object is read or has changed. */
  readonly onChange?: (node: Node) => void;
}

/** How long pods wait for the first read; then they use `initial`. */
const SYNC_TIMEOUT_MS = 10_000;

export class NodeObject implements AsyncDisposable {
  readonly #options: NodeObjectOptions;
  readonly #informer: Informer<Node> | undefined;

  constructor(options: NodeObjectOptions) {
    this.#options = options;
    const { client, clock, random, log, initial } = options;
    const query = { fieldSelector: `metadata.name=${initial.metadata?.name ?? ""}` };
    this.#informer = client && startInformer({ client, kind: nodeKind, query, clock, random, log });
    this.#informer?.subscribe({ put: (node) => options.onChange?.(node) });
  }

  /** The object, with the labels and allocatable resources of the agent. */
  async read(): Promise<Node> {
    const { initial } = this.#options;
    const name = initial.metadata?.name ?? "";
    await this.#waitForSync();
    const found = this.#informer?.get(name);
    if (found === undefined) return initial;
    const labels = { ...found.metadata?.labels, ...initial.metadata?.labels };
    const allocatable = { ...found.status?.allocatable, ...initial.status?.allocatable };
    return { ...found, metadata: { ...found.metadata, name, labels }, status: { ...found.status, allocatable } };
  }

  async #waitForSync(): Promise<void> {
    const informer = this.#informer;
    if (informer === undefined || informer.isSynced) return;
    const cancel = new AbortController();
    const timeout = this.#options.clock.sleep(SYNC_TIMEOUT_MS, cancel.signal).catch(() => undefined);
    await Promise.race([informer.synced.catch(() => undefined), timeout]);
    cancel.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#informer?.[Symbol.asyncDispose]();
  }
}
