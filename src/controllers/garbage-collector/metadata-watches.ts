/** Watches the metadata of all deletable kinds, custom ones included, and updates the graph. */

import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition/kind.ts";
import type { CustomResourceDefinition } from "../../api/apiextensions/custom-resource-definition/schema.ts";
import { type ApiObject, type Kind, onePerResource } from "../../api/kind.ts";
import type { Scheme } from "../../api/scheme.ts";
import { type ReflectorEvent, reflect } from "../../client/informer/reflector.ts";
import { metadataOnly } from "../../client/metadata-only.ts";
import type { Timer } from "../../std/time/clock.ts";
import type { ControllerDeps } from "../controller.ts";
import { type CustomKinds, isSameCustomKinds, toCustomKinds } from "./custom-kinds.ts";
import type { OwnerLookup } from "./owner-lookup.ts";
import type { OwnershipGraph } from "./ownership-graph.ts";

/** Bounds the wait for the initial lists, as in Kubernetes. */
const SYNC_TIMEOUT_MS = 30_000;

/**
 * The lists are not of one revision: an owner may be in one that is newer than that of its dependents, which the watch
 * reports right after it.
 */
const SETTLE_MS = 100;

interface GraphAccess {
  /** The scheme for the kinds of owners; custom kinds are added. */
  readonly scheme: Scheme;
  readonly graph: OwnershipGraph;
  readonly owners: OwnerLookup;
}

interface Custom {
  readonly kinds: CustomKinds;
  readonly stop: AbortController;
}

export class MetadataWatches implements AsyncDisposable {
  /** Resolves when all kinds are listed, or after a timeout. */
  readonly synced: Promise<void>;
  readonly #resolveSynced: () => void;
  readonly #deps: ControllerDeps;
  readonly #watched: GraphAccess;
  readonly #unsynced = new Set<Kind>();
  /** By the name of the definition. */
  readonly #custom = new Map<string, Custom>();
  readonly #running = new Set<Promise<void>>();
  #timer: Timer | undefined;

  constructor(deps: ControllerDeps, watched: GraphAccess) {
    this.#deps = deps;
    this.#watched = watched;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.synced = promise;
    this.#resolveSynced = resolve;
  }

  start(): void {
    this.#timer = this.#deps.clock.timer(SYNC_TIMEOUT_MS, this.#resolveSynced);
    const kinds = onePerResource(this.#watched.scheme.kinds()).filter(isDeletable);
    for (const kind of kinds) this.#unsynced.add(kind);
    for (const kind of kinds) this.#watch(kind, this.#deps.signal);
  }

  /** Ends the wait for the initial lists. The watches end with the signal. */
  stop(): void {
    this.#timer?.cancel();
    this.#resolveSynced();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    for (const { stop } of this.#custom.values()) stop.abort(new DOMException("The watch is closed", "AbortError"));
    await Promise.all(this.#running);
  }

  #watch(kind: Kind, signal: AbortSignal): void {
    const { client, clock, random, log } = this.#deps;
    const isDefinition = kind === (customResourceDefinitionKind as Kind);
    const onEvent = (event: ReflectorEvent<ApiObject>): void => {
      if (isDefinition) this.#applyDefinition(event as ReflectorEvent<CustomResourceDefinition>);
      this.#apply(kind, event);
      if (event.type === "replace") this.#markSynced(kind);
    };
    // Definitions are watched as a whole, but not kept.
    const watched = isDefinition ? kind : metadataOnly(kind);
    const running = reflect({ client, clock, random, log, kind: watched, onEvent }, signal).finally(() =>
      this.#running.delete(running),
    );
    this.#running.add(running);
  }

  #markSynced(kind: Kind): void {
    if (!this.#unsynced.delete(kind) || this.#unsynced.size > 0) return;
    this.#timer?.cancel();
    this.#timer = this.#deps.clock.timer(SETTLE_MS, this.#resolveSynced);
  }

  #apply(kind: Kind, event: ReflectorEvent<ApiObject>): void {
    const { graph, owners } = this.#watched;
    switch (event.type) {
      case "put":
        graph.observe(kind, event.object.metadata ?? {});
        return;
      case "delete": {
        const { uid = "" } = event.object.metadata ?? {};
        if ((graph.get(uid)?.dependents?.size ?? 0) > 0) owners.markAbsent(uid);
        graph.forget(uid);
        return;
      }
      case "replace":
        graph.replaceAll(kind, new Set(event.items.map(({ metadata }) => metadata?.uid ?? "")));
        for (const { metadata } of event.items) graph.observe(kind, metadata ?? {});
    }
  }

  #applyDefinition(event: ReflectorEvent<CustomResourceDefinition>): void {
    if (event.type === "replace") {
      const names = new Set(event.items.map(({ metadata }) => metadata?.name ?? ""));
      for (const name of [...this.#custom.keys()]) if (!names.has(name)) this.#stopCustom(name);
      for (const definition of event.items) this.#startCustom(definition);
    } else if (event.type === "put") this.#startCustom(event.object);
    else this.#removeCustom(event.object);
  }

  #startCustom(definition: CustomResourceDefinition): void {
    const { name = "" } = definition.metadata ?? {};
    const kinds = toCustomKinds(definition);
    const known = this.#custom.get(name)?.kinds;
    if (kinds !== undefined && known !== undefined && isSameCustomKinds(kinds, known)) return;
    this.#stopCustom(name);
    if (kinds === undefined) return;
    try {
      this.#watched.scheme.setCustomVersions(kinds.storageName, kinds.versions);
    } catch (error) {
      this.#deps.log.warn("Ignoring custom resource definition with conflicting names", { name, why: String(error) });
      return;
    }
    const stop = new AbortController();
    this.#custom.set(name, { kinds, stop });
    this.#unsynced.add(kinds.watched);
    this.#watch(kinds.watched, AbortSignal.any([this.#deps.signal, stop.signal]));
  }

  /** Deleting a definition deletes its objects. */
  #removeCustom({ metadata }: CustomResourceDefinition): void {
    const { graph, owners } = this.#watched;
    const kinds = this.#stopCustom(metadata?.name ?? "");
    if (kinds === undefined) return;
    for (const uid of graph.uidsOf(kinds.watched)) {
      owners.markAbsent(uid);
      graph.forget(uid);
    }
  }

  #stopCustom(name: string): CustomKinds | undefined {
    const known = this.#custom.get(name);
    if (known === undefined) return undefined;
    this.#custom.delete(name);
    this.#watched.scheme.setCustomVersions(known.kinds.storageName, []);
    known.stop.abort(new DOMException("The custom resource is not served any more", "AbortError"));
    this.#markSynced(known.kinds.watched);
    return known.kinds;
  }
}

/** Events are frequent and have no dependents. Of several versions, the stored one is watched. */
function isDeletable({ kind, verbs }: Kind): boolean {
  const hasVerbs = (["delete", "list", "watch"] as const).every((verb) => verbs.includes(verb));
  return hasVerbs && kind !== "Event";
}
