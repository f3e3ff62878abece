/**
 * Deletes what its owners left behind, and lets owners that are deleted in the foreground, or with their dependents
 * orphaned, go when that is done.
 *
 *     watches of metadata, one a kind ──► graph ──► queue of uids (each once) ──► asks the server, then acts
 *
 * Whatever the graph says is verified before anything is deleted.
 */
import { builtinScheme } from "../../api/builtin.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { formatApiVersion } from "../../api/scheme.ts";
import { createEventRecorder, type EventRecorder } from "../../client/event-recorder.ts";
import { metadataOnly } from "../../client/metadata-only.ts";
import { type ReflectorEvent, reflect } from "../../client/reflector.ts";
import { WorkQueue } from "../../std/work-queue.ts";
import type { ControllerDeps } from "../controller.ts";
import { collect } from "./collect.ts";
import { OwnerLookup, UnknownOwnerError } from "./owner-lookup.ts";
import { OwnershipGraph, type OwnershipNode } from "./ownership-graph.ts";

/** Nothing is done before every kind was seen once, or this long has gone by. As Kubernetes. */
const SYNC_MS = 30_000;

export async function runGarbageCollector(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal } = deps;
  const scheme = builtinScheme();
  const kinds = scheme.kinds().filter(isCollected);
  await using recorder = createEventRecorder({ client, clock, random, log, component: "garbage-collector-controller" });
  const synced = new Synced(kinds.length);
  const timer = clock.timer(SYNC_MS, () => synced.giveUp());
  const owners = new OwnerLookup(scheme, client);
  const graph = new OwnershipGraph({
    look: (uid) => queue.add(uid),
    misplaced: (dependent, owner) => reportMisplaced(recorder, dependent, owner),
  });
  const collector = { client, graph, owners, log, look: (uid: string) => queue.addAfter(uid, AGAIN_MS) };
  await using queue = new WorkQueue({
    clock,
    random,
    concurrency: 8,
    backoff: { initialMs: 50, maxMs: 1_000_000, jitter: 0.1 },
    work: async (uid, stopping) => {
      await synced.wait;
      stopping.throwIfAborted();
      await collect(collector, uid, stopping);
    },
    onError: (uid, error) => {
      if (error instanceof UnknownOwnerError) log.v(2)?.info("Cannot judge an owner", { uid, why: error.message });
      else log.error("Cannot collect garbage; trying again", error, { uid });
    },
  });
  const watching = kinds.map(async (kind) => {
    const onEvent = (event: ReflectorEvent<ApiObject>): void => {
      apply(graph, owners, kind, event);
      if (event.type === "replace") synced.add(kind);
    };
    await reflect({ client, clock, random, log, kind: metadataOnly(kind), onEvent }, signal);
  });
  await Promise.all(watching);
  timer.cancel();
  synced.giveUp();
}

/** An object that changed while it was looked at is looked at again so soon. */
const AGAIN_MS = 50;

/** Events are many, own nothing and go by themselves. Of a kind with several versions, the stored one is watched. */
function isCollected({ kind, conversion, verbs }: Kind): boolean {
  const isPossible = (["delete", "list", "watch"] as const).every((verb) => verbs.includes(verb));
  return isPossible && conversion === undefined && kind !== "Event";
}

function apply(graph: OwnershipGraph, owners: OwnerLookup, kind: Kind, event: ReflectorEvent<ApiObject>): void {
  switch (event.type) {
    case "put":
      graph.observe(kind, event.object.metadata ?? {});
      return;
    case "delete": {
      const { metadata = {} } = event.object;
      if (graph.forget(metadata.uid ?? "")) owners.isGone(kind, metadata);
      return;
    }
    case "replace":
      graph.retain(kind, new Set(event.items.map(({ metadata }) => metadata?.uid ?? "")));
      for (const { metadata } of event.items) graph.observe(kind, metadata ?? {});
  }
}

function reportMisplaced(
  recorder: EventRecorder,
  { kind, namespace, name, uid }: OwnershipNode,
  owner: OwnershipNode["owners"][number],
): void {
  if (kind === undefined) return;
  const about = { apiVersion: formatApiVersion(kind.group, kind.version), kind: kind.kind, namespace, name, uid };
  const named = `[${owner.apiVersion}/${owner.kind}, namespace: ${namespace}, name: ${owner.name}, uid: ${owner.uid}]`;
  const message = `ownerRef ${named} does not exist in namespace "${namespace}"`;
  recorder.record(about, "Warning", "OwnerRefInvalidNamespace", message);
}

/** Resolves when every kind was added once, or when waiting for that was given up. */
class Synced {
  readonly wait: Promise<void>;
  readonly giveUp: () => void;
  readonly #count: number;
  readonly #seen = new Set<Kind>();

  constructor(count: number) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.wait = promise;
    this.giveUp = resolve;
    this.#count = count;
  }

  add(kind: Kind): void {
    this.#seen.add(kind);
    if (this.#seen.size === this.#count) this.giveUp();
  }
}
