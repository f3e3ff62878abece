/**
 * Deletes what its owners left behind, and lets owners that are deleted in the foreground, or with their dependents
 * orphaned, go when that is done.
 *
 *     watches of metadata, one a kind ──► graph ──► queue of uids (each once) ──► asks the server, then acts
 *
 * Whatever the graph says is verified before anything is deleted.
 */
import { schemeOf } from "../../api/builtin.ts";
import { formatApiVersion } from "../../api/scheme.ts";
import { createEventRecorder, type EventRecorder } from "../../client/events/event-recorder.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import type { ControllerDeps } from "../controller.ts";
import { collect } from "./attempt-to-delete.ts";
import { MetadataWatches } from "./metadata-watches.ts";
import { OwnerLookup, UnknownOwnerError } from "./owner-lookup.ts";
import { OwnershipGraph, type OwnershipNode } from "./ownership-graph.ts";

export async function runGarbageCollector(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal } = deps;
  const scheme = schemeOf(deps.kinds);
  await using recorder = createEventRecorder({ client, clock, random, log, component: "garbage-collector-controller" });
  const owners = new OwnerLookup(scheme, client);
  const graph = new OwnershipGraph({
    look: (uid) => queue.add(uid),
    misplaced: (dependent, owner) => reportMisplaced(recorder, dependent, owner),
  });
  await using watches = new MetadataWatches(deps, { scheme, graph, owners });
  const collector = { client, graph, owners, log, look: (uid: string) => queue.addAfter(uid, AGAIN_MS) };
  await using queue = new WorkQueue({
    clock,
    random,
    metrics: deps.queue,
    concurrency: 8,
    backoff: { initialMs: 50, maxMs: 1_000_000, jitter: 0.1 },
    work: async (uid, stopping) => {
      await watches.synced;
      stopping.throwIfAborted();
      await collect(collector, uid, stopping);
    },
    onError: (uid, error) => {
      if (error instanceof UnknownOwnerError) log.v(2)?.info("Cannot judge an owner", { uid, why: error.message });
      else log.error("Cannot collect garbage; trying again", error, { uid });
    },
  });
  watches.start();
  await waitForAbort(signal);
  watches.stop();
}

/** An object that changed while it was looked at is looked at again so soon. */
const AGAIN_MS = 50;

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
