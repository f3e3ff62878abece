/**
 * The garbage collector: deletes objects whose owners were deleted, and completes foreground deletion and orphaning.
 *
 *     metadata watches, one for each kind → ownership graph → queue of uids → verify with the server, then act
 *
 * The graph may be stale, so the state is verified with the server before each deletion.
 */
import { schemeOf } from "../../api/builtin.ts";
import { formatApiVersion } from "../../api/scheme.ts";
import { createEventRecorder, type EventRecorder } from "../../client/events/event-recorder.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { attemptToDelete } from "./attempt-to-delete.ts";
import { MetadataWatches } from "./metadata-watches.ts";
import { OwnerLookup, UnknownOwnerError } from "./owner-lookup.ts";
import { OwnershipGraph, type OwnershipNode } from "./ownership-graph.ts";

export async function runGarbageCollector(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal } = deps;
  const scheme = schemeOf(deps.kinds);
  await using recorder = createEventRecorder({ client, clock, random, log, component: "garbage-collector-controller" });
  const owners = new OwnerLookup(scheme, client);
  const graph = new OwnershipGraph({
    enqueue: (uid) => queue.add(uid),
    invalidNamespace: (dependent, owner) => recordInvalidNamespace(recorder, dependent, owner),
  });
  // Reading the kinds of the cluster never fails here: custom kinds come from a watch of their definitions.
  deps.registry
    ?.counter({
      name: "garbagecollector_controller_resources_sync_error_total",
      help: "Failed reads of the kinds to watch.",
      stability: "ALPHA",
    })
    .with();
  await using watches = new MetadataWatches(deps, { scheme, graph, owners });
  const collector = { client, graph, owners, log, enqueue: (uid: string) => queue.addAfter(uid, RETRY_DELAY_MS) };
  await using queue = createControllerQueue(deps, {
    name: "garbage_collector_attempt_to_delete",
    workers: 8,
    backoff: { initialMs: 50, maxMs: 1_000_000, jitter: 0.1 },
    sync: syncObject,
    onError: (uid, error) => {
      if (error instanceof UnknownOwnerError) log.v(2)?.info("Unknown kind of owner", { uid, why: error.message });
      else log.error("Failed to process object, will retry", error, { uid });
    },
  });

  async function syncObject(uid: string, stopping: AbortSignal): Promise<void> {
    await watches.synced;
    stopping.throwIfAborted();
    await attemptToDelete(collector, uid, stopping);
  }

  watches.start();
  await waitForAbort(signal);
  watches.stop();
}

/** Delay before an object that changed meanwhile is processed again. */
const RETRY_DELAY_MS = 50;

function recordInvalidNamespace(
  recorder: EventRecorder,
  { kind, namespace, name, uid }: OwnershipNode,
  owner: OwnershipNode["owners"][number],
): void {
  if (kind === undefined) return;
  const involvedObject = {
    apiVersion: formatApiVersion(kind.group, kind.version),
    kind: kind.kind,
    namespace,
    name,
    uid,
  };
  const identity = `namespace: ${namespace}, name: ${owner.name}, uid: ${owner.uid}`;
  const reference = `[${owner.apiVersion}/${owner.kind}, ${identity}]`;
  const message = `ownerRef ${reference} does not exist in namespace "${namespace}"`;
  recorder.record(involvedObject, "Warning", "OwnerRefInvalidNamespace", message);
}
