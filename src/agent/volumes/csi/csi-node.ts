/** Publishes the node's CSI drivers: the CSINode object, an annotation and topology labels of the Node. */

import { nodeKind } from "../../../api/core/node/kind.ts";
import type { Node } from "../../../api/core/node/schema.ts";
import { ignoreNotFound, StatusError } from "../../../api/status.ts";
import { csiNodeKind } from "../../../api/storage/csi-node/kind.ts";
import type { CSINode, CSINodeDriver } from "../../../api/storage/csi-node/schema.ts";
import type { Client } from "../../../client/client.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import type { RandomSource } from "../../../std/crypto/random.ts";
import type { Logger } from "../../../std/log/logger.ts";
import { Backoff } from "../../../std/time/backoff.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { NodeInfo } from "./messages.ts";

export interface CsiNodeOptions {
  readonly client: Client;
  readonly nodeName: string;
}

/** For retries. */
export interface CsiNodeRetryOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const RETRY_MIN_MS = 200;
const RETRY_MAX_MS = 60_000;
const SILENT_TRIES = 4;
/** JSON: driver → its ID of this node. */
const ID_ANNOTATION = "csi.volume.kubernetes.io/nodeid";
const MIGRATED_ANNOTATION = "storage.alpha.kubernetes.io/migrated-plugins";
/** Kubernetes' in-tree plugins whose volumes CSI drivers provide on every node. */
const MIGRATED_PLUGINS = ["aws-ebs", "azure-disk", "azure-file", "cinder", "gce-pd", "vsphere-volume"]
  .map((name) => `kubernetes.io/${name}`)
  .join(",");
const CONFLICTS_MAX = 5;
const COUNT_MAX = 2 ** 31 - 1;

/** Serializes writes: drivers register concurrently, and all change the same two objects. */
export class CsiNodeWriter {
  readonly #options: CsiNodeOptions;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: CsiNodeOptions) {
    this.#options = options;
  }

  /** Creates the object if it does not exist: schedulers wait for it. Resolves when it exists, or the signal aborts. */
  async create({ clock, random, log, signal }: CsiNodeRetryOptions): Promise<void> {
    const backoff = new Backoff({ initialMs: RETRY_MIN_MS, maxMs: RETRY_MAX_MS }, random);
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        await this.#runExclusive(() => this.#update((drivers) => drivers));
        return;
      } catch (error) {
        // At first the Node may not exist.
        if (tries === SILENT_TRIES) log.warn("Cannot create the node's CSINode", { error: String(error) });
        await clock.sleep(backoff.next(), signal).catch(() => undefined);
      }
    }
  }

  /** Rejects when the API server refuses, or when the topology contradicts the node's labels. */
  async add(driver: string, info: NodeInfo): Promise<void> {
    const { nodeId = "", accessibleTopology, maxVolumesPerNode = 0n } = info;
    if (nodeId === "") throw new Error("error adding CSI driver node info: driverNodeID must not be empty");
    const segments = accessibleTopology?.segments ?? {};
    const entry: CSINodeDriver = {
      name: driver,
      nodeID: nodeId,
      topologyKeys: Object.keys(segments).sort(),
      ...(maxVolumesPerNode > 0n ? { allocatable: { count: Math.min(Number(maxVolumesPerNode), COUNT_MAX) } } : {}),
    };
    await this.#runExclusive(async () => {
      await this.#annotate(driver, nodeId, segments);
      await this.#update((drivers) => [...drivers.filter(({ name }) => name !== driver), entry]);
    });
  }

  async remove(driver: string): Promise<void> {
    await this.#runExclusive(async () => {
      await this.#update((drivers) => drivers.filter(({ name }) => name !== driver));
      await this.#annotate(driver, undefined, {});
    });
  }

  async #runExclusive(work: () => Promise<void>): Promise<void> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    await result;
  }

  async #annotate(driver: string, id: string | undefined, segments: Readonly<Record<string, string>>): Promise<void> {
    const { client, nodeName: name } = this.#options;
    const { metadata } = await client.get(nodeKind, { name });
    for (const [key, value] of Object.entries(segments)) {
      const label = getMember(metadata?.labels, key);
      if (label === undefined || label === value) continue;
      throw new Error(
        "error updating node with topology labels: detected topology value collision: " +
          `driver reported "${key}":"${value}" but existing label is "${key}":"${label}"`,
      );
    }
    const before = metadata?.annotations?.[ID_ANNOTATION];
    const ids = setNodeId(before, driver, id);
    const labels = Object.entries(segments).filter(([key]) => getMember(metadata?.labels, key) === undefined);
    if (ids === before && labels.length === 0) return;
    const annotations = { [ID_ANNOTATION]: ids ?? null };
    const patch = { metadata: { annotations, ...(labels.length > 0 ? { labels: Object.fromEntries(labels) } : {}) } };
    await client.patch(nodeKind, { name }, "merge", patch);
  }

  async #update(change: (drivers: readonly CSINodeDriver[]) => readonly CSINodeDriver[]): Promise<void> {
    const { client, nodeName: name } = this.#options;
    for (let tries = 1; ; tries++) {
      const found = await client.get(csiNodeKind, { name }).catch(ignoreNotFound);
      const before = found?.spec.drivers ?? [];
      const drivers = change(before);
      const annotations = { ...found?.metadata?.annotations, [MIGRATED_ANNOTATION]: MIGRATED_PLUGINS };
      if (found !== undefined && deepEqual(before, drivers) && deepEqual(found.metadata?.annotations, annotations)) {
        return;
      }
      try {
        if (found !== undefined) {
          const metadata = { ...found.metadata, annotations };
          await client.update(csiNodeKind, { ...found, metadata, spec: { drivers } });
        } else await client.create(csiNodeKind, newCsiNode(await client.get(nodeKind, { name }), drivers));
        return;
      } catch (error) {
        const conflicts = error instanceof StatusError && error.status.code === 409;
        if (!conflicts || tries === CONFLICTS_MAX) throw error;
      }
    }
  }
}

/** Owned by the Node, so that it is deleted with it. */
function newCsiNode({ metadata }: Node, drivers: readonly CSINodeDriver[]): CSINode {
  const { name = "", uid = "" } = metadata ?? {};
  const ownerReferences = [{ apiVersion: "v1", kind: "Node", name, uid }];
  return {
    kind: "CSINode",
    apiVersion: "storage.svc.io/v1",
    metadata: { name, annotations: { [MIGRATED_ANNOTATION]: MIGRATED_PLUGINS }, ownerReferences },
    spec: { drivers },
  };
}

/** Undefined when no driver is left. A malformed annotation is replaced. */
function setNodeId(annotation: string | undefined, driver: string, id: string | undefined): string | undefined {
  let ids: Readonly<Record<string, unknown>> = {};
  try {
    const parsed: unknown = JSON.parse(annotation ?? "{}");
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) ids = { ...parsed };
  } catch {
    // Malformed.
  }
  const { [driver]: _, ...others } = ids;
  const next = id === undefined ? others : { ...others, [driver]: id };
  const sorted = Object.fromEntries(Object.entries(next).sort(([a], [b]) => (a < b ? -1 : 1)));
  return Object.keys(sorted).length === 0 ? undefined : JSON.stringify(sorted);
}
