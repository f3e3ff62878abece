/**
 * Empties namespaces that are being deleted and then lets them go: deletes what they hold, pods before all else, says
 * in the namespace's conditions what is left, and takes its finalizer away when nothing is.
 */

import type { Namespace } from "../../api/core/namespace.ts";
import { namespaceKind } from "../../api/core/namespace-kind.ts";
import { podKind } from "../../api/core/pod-kind.ts";
import type { Kind } from "../../api/kind.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { startInformer } from "../../client/informer.ts";
import { deepEqual } from "../../schema/equal.ts";
import { timeOf } from "../../schema/time.ts";
import { WorkQueue } from "../../std/work-queue.ts";
import type { ControllerDeps } from "../controller.ts";
import { builtinContentKinds, customContentKinds } from "./content-kinds.ts";

const FINALIZER = "kubernetes";
/** Objects with grace or finalizers of their own are looked after again at this pace. */
const AGAIN_MS = 1_000;

export async function runNamespaceController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal } = deps;
  await using namespaces = startInformer({ client, clock, random, log, kind: namespaceKind }, signal);
  const builtin = builtinContentKinds();
  await using queue = new WorkQueue({
    clock,
    random,
    metrics: deps.queue,
    concurrency: 2,
    backoff: { initialMs: 500, maxMs: 60_000, jitter: 0.1 },
    work: async (name, stopping) => {
      const namespace = namespaces.get(name);
      if (namespace === undefined || !isTerminating(namespace)) return;
      const kinds = [...builtin, ...(await customContentKinds(client, stopping))];
      if (!(await empty(deps, kinds, namespace, stopping))) queue.addAfter(name, AGAIN_MS);
    },
    onError: (name, error) => log.error("Cannot empty the namespace; trying again", error, { namespace: name }),
  });
  namespaces.subscribe({
    put: (namespace) => {
      if (isTerminating(namespace)) queue.add(namespace.metadata?.name ?? "");
    },
  });
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

function isTerminating(namespace: Namespace): boolean {
  return namespace.metadata?.deletionTimestamp !== undefined && (namespace.spec?.finalizers ?? []).includes(FINALIZER);
}

interface Remains {
  readonly resource: string;
  readonly count: number;
  readonly finalizers: readonly string[];
}

/** One round. Resolves with whether the namespace was empty and could be let go. */
async function empty(
  deps: ControllerDeps,
  kinds: readonly Kind[],
  namespace: Namespace,
  signal: AbortSignal,
): Promise<boolean> {
  const name = namespace.metadata?.name ?? "";
  const remains: Remains[] = [];
  for (const kind of kinds) {
    const left = await deleteAll(deps.client, kind, name, signal);
    if (left !== undefined) remains.push(left);
    // Ordered deletion: nothing else goes while pods are still stopping.
    if (left !== undefined && kind.kind === podKind.kind) break;
  }
  if (remains.length > 0) {
    await report(deps, namespace, remains, signal);
    return false;
  }
  const finalizers = (namespace.spec?.finalizers ?? []).filter((finalizer) => finalizer !== FINALIZER);
  try {
    await deps.client.updateSubresource(namespaceKind, { ...namespace, spec: { finalizers } }, "finalize", signal);
  } catch (error) {
    if (!isGone(error)) throw error;
  }
  deps.log.v(2)?.info("Let the namespace go", { namespace: name });
  return true;
}

/** Asks for the deletion of every object that is not on its way out; tells what was still there. */
async function deleteAll(
  client: Client,
  kind: Kind,
  namespace: string,
  signal: AbortSignal,
): Promise<Remains | undefined> {
  const items = await itemsOf(client, kind, namespace, signal);
  if (items.length === 0) return undefined;
  for (const { metadata } of items) {
    if (metadata?.deletionTimestamp !== undefined) continue;
    try {
      await client.delete(kind, { name: metadata?.name ?? "", namespace }, {}, signal);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
  const left = await itemsOf(client, kind, namespace, signal);
  if (left.length === 0) return undefined;
  const finalizers = new Set(left.flatMap(({ metadata }) => metadata?.finalizers ?? []));
  return {
    resource: `${kind.plural}.${kubernetesGroup(kind.group)}`,
    count: left.length,
    finalizers: [...finalizers].sort(),
  };
}

async function itemsOf(client: Client, kind: Kind, namespace: string, signal: AbortSignal) {
  try {
    return (await client.list(kind, { namespace, limit: 500 }, signal)).items;
  } catch (error) {
    // Its definition may have gone meanwhile.
    if (kind.custom === true && isGone(error)) return [];
    throw error;
  }
}

type Condition = NonNullable<NonNullable<Namespace["status"]>["conditions"]>[number];

/** Writes the conditions when they say something new. */
async function report(
  deps: ControllerDeps,
  namespace: Namespace,
  remains: readonly Remains[],
  signal: AbortSignal,
): Promise<void> {
  const content = remains.map(({ resource, count }) => `${resource} has ${count} resource instances`).join(", ");
  const finalizers = [...new Set(remains.flatMap((left) => left.finalizers))];
  const told: readonly Omit<Condition, "lastTransitionTime">[] = [
    {
      type: "NamespaceContentRemaining",
      status: "True",
      reason: "SomeResourcesRemain",
      message: `Some resources are remaining: ${content}`,
    },
    {
      type: "NamespaceFinalizersRemaining",
      status: finalizers.length > 0 ? "True" : "False",
      reason: finalizers.length > 0 ? "SomeFinalizersRemain" : "ContentHasNoFinalizers",
      message:
        finalizers.length > 0
          ? `Some content in the namespace has finalizers remaining: ${finalizers.join(", ")}`
          : "All content-preserving finalizers finished",
    },
  ];
  const known = (namespace.status?.conditions ?? []).map(({ lastTransitionTime: _, ...rest }) => rest);
  if (told.every((condition) => known.some((other) => deepEqual(other, condition)))) return;
  const now = timeOf(deps.clock.now());
  const conditions = told.map((condition) => ({ ...condition, lastTransitionTime: now }));
  try {
    const name = namespace.metadata?.name ?? "";
    const patch = { status: { conditions } };
    await deps.client.patch(namespaceKind, { name }, "strategic", patch, { subresource: "status", signal });
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

function isGone(error: unknown): boolean {
  return error instanceof StatusError && error.status.code === 404;
}
