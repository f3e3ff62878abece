/**
 * Empties namespaces that are being deleted and then lets them go: deletes what they hold, pods before all else, says
 * in the namespace's conditions what is left, and takes its finalizer away when nothing is.
 */

import { namespaceKind } from "../../api/core/namespace/kind.ts";
import type { Namespace } from "../../api/core/namespace/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { startInformer } from "../../client/informer/informer.ts";
import { metadataOnly } from "../../client/metadata-only.ts";
import { formatTime } from "../../schema/value/time.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import { Backoff } from "../../std/time/backoff.ts";
import type { ControllerDeps } from "../controller.ts";
import { builtinContentKinds, customContentKinds } from "./content-kinds.ts";
import { conditionsAfter, type Progress, type Remains } from "./deletion-conditions.ts";

const FINALIZER = "kubernetes";
/** Objects with grace or finalizers of their own are looked after again at this pace. */
const AGAIN = { initialMs: 1_000, maxMs: 15_000, jitter: 0.1 };
/** As Kubernetes' own clients list. */
const PAGE = 500;
const DELETED_AT_ONCE = 8;

export async function runNamespaceController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal } = deps;
  await using namespaces = startInformer({ client, clock, random, log, kind: namespaceKind }, signal);
  const builtin = builtinContentKinds(deps.kinds);
  /** One for each namespace that something holds. */
  const held = new Map<string, Backoff>();
  await using queue = new WorkQueue({
    clock,
    random,
    metrics: deps.queue,
    concurrency: 2,
    backoff: { initialMs: 500, maxMs: 60_000, jitter: 0.1 },
    work: async (name, stopping) => {
      const namespace = namespaces.get(name);
      if (namespace === undefined || !isTerminating(namespace)) return;
      if (await empty(deps, builtin, namespace, stopping)) {
        held.delete(name);
        return;
      }
      const again = held.get(name) ?? new Backoff(AGAIN, random);
      held.set(name, again);
      queue.addAfter(name, again.next());
    },
    onError: (name, error) => log.error("Cannot empty the namespace; trying again", error, { namespace: name }),
  });
  namespaces.subscribe({
    put: (namespace, previous) => {
      if (!isTerminating(namespace)) return;
      // What only its conditions tell is known here.
      if (previous === undefined || !isTerminating(previous)) queue.add(namespace.metadata?.name ?? "");
    },
    delete: ({ metadata }) => {
      held.delete(metadata?.name ?? "");
      queue.forget(metadata?.name ?? "");
    },
  });
  await waitForAbort(signal);
}

function isTerminating(namespace: Namespace): boolean {
  return namespace.metadata?.deletionTimestamp !== undefined && (namespace.spec?.finalizers ?? []).includes(FINALIZER);
}

/** One round. Resolves with whether the namespace was empty and could be let go; rejects when something went wrong. */
async function empty(
  deps: ControllerDeps,
  builtin: readonly Kind[],
  namespace: Namespace,
  signal: AbortSignal,
): Promise<boolean> {
  const errors: unknown[] = [];
  const caught = (error: unknown): string => {
    signal.throwIfAborted();
    errors.push(error);
    return error instanceof Error ? error.message : String(error);
  };
  const remains: Remains[] = [];
  const failures: string[] = [];
  let discovery: string | undefined;
  const custom = await customContentKinds(deps.client, signal).catch((error: unknown) => {
    discovery = caught(error);
    return [];
  });
  const name = namespace.metadata?.name ?? "";
  for (const kind of [...builtin, ...custom]) {
    try {
      const left = await deleteAll(deps.client, kind, name, signal);
      if (left !== undefined) remains.push(left);
    } catch (error) {
      failures.push(caught(error));
    }
    // Ordered deletion: nothing else goes while pods are still stopping.
    if (kind.kind === podKind.kind && remains.length + failures.length > 0) break;
  }
  await report(deps, namespace, { remains, failures, discovery }, signal);
  if (errors.length > 0) throw errors[0];
  if (remains.length > 0) return false;
  await letGo(deps, namespace, signal);
  return true;
}

/** Another controller that does the same may be faster; who changed the namespace otherwise makes the next round. */
async function letGo({ client, log }: ControllerDeps, namespace: Namespace, signal: AbortSignal): Promise<void> {
  const name = namespace.metadata?.name ?? "";
  for (;;) {
    try {
      const live = await client.get(namespaceKind, { name }, signal);
      if (live.metadata?.uid !== namespace.metadata?.uid || !isTerminating(live)) return;
      const finalizers = (live.spec?.finalizers ?? []).filter((finalizer) => finalizer !== FINALIZER);
      await client.updateSubresource(namespaceKind, { ...live, spec: { finalizers } }, "finalize", signal);
      log.v(2)?.info("Let the namespace go", { namespace: name });
      return;
    } catch (error) {
      if (codeOf(error) === 404) return;
      if (codeOf(error) !== 409) throw error;
    }
  }
}

/** Asks for the deletion of every object that is not on its way out; tells what was still there. */
async function deleteAll(
  client: Client,
  kind: Kind,
  namespace: string,
  signal: AbortSignal,
): Promise<Remains | undefined> {
  let isEmpty = true;
  for await (const items of pages(client, kind, namespace, signal)) {
    if (items.length > 0) isEmpty = false;
    const living = items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
    for (let start = 0; start < living.length; start += DELETED_AT_ONCE) {
      await Promise.all(
        living.slice(start, start + DELETED_AT_ONCE).map((item) => deleteOne(client, kind, item, signal)),
      );
    }
  }
  if (isEmpty) return undefined;
  let count = 0;
  const finalizers = new Map<string, number>();
  for await (const items of pages(client, kind, namespace, signal)) {
    count += items.length;
    for (const { metadata } of items) {
      for (const name of metadata?.finalizers ?? []) finalizers.set(name, (finalizers.get(name) ?? 0) + 1);
    }
  }
  if (count === 0) return undefined;
  return { resource: `${kind.plural}.${kubernetesGroup(kind.group)}`, count, finalizers };
}

/** All that it owns goes as well, and needs no orphaning: hence in the background. */
async function deleteOne(client: Client, kind: Kind, { metadata }: ApiObject, signal: AbortSignal): Promise<void> {
  const { name = "", namespace, uid } = metadata ?? {};
  try {
    await client.delete(kind, { name, namespace }, { propagationPolicy: "Background", preconditions: { uid } }, signal);
  } catch (error) {
    // Gone, or another by its name, which the next round sees.
    if (codeOf(error) !== 404 && codeOf(error) !== 409) throw error;
  }
}

async function* pages(
  client: Client,
  kind: Kind,
  namespace: string,
  signal: AbortSignal,
): AsyncGenerator<readonly ApiObject[]> {
  let next: string | undefined;
  do {
    const query = { namespace, limit: PAGE, continue: next };
    try {
      const page = await client.list(metadataOnly(kind), query, signal);
      yield page.items;
      next = page.continue;
    } catch (error) {
      // The definition of a custom kind may have gone meanwhile; pages that took too long are for the next round.
      if ((kind.custom === true && codeOf(error) === 404) || codeOf(error) === 410) return;
      throw error;
    }
  } while (next !== undefined && next !== "");
}

/** Writes the conditions when they say something new; nothing of a namespace that was empty from the start. */
async function report(
  { client, clock }: ControllerDeps,
  { metadata, status }: Namespace,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const before = status?.conditions ?? [];
  const isClean = progress.remains.length + progress.failures.length === 0 && progress.discovery === undefined;
  if (isClean && before.length === 0) return;
  const conditions = conditionsAfter(before, progress, formatTime(clock.now()));
  if (conditions === undefined) return;
  try {
    const name = { name: metadata?.name ?? "" };
    await client.patch(namespaceKind, name, "strategic", { status: { conditions } }, { subresource: "status", signal });
  } catch (error) {
    if (codeOf(error) !== 404) throw error;
  }
}

function codeOf(error: unknown): number | undefined {
  return error instanceof StatusError ? error.status.code : undefined;
}
