/** Feeds the graph: one watch of every kind that can be deleted, custom ones as they come and go. */

import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition/kind.ts";
import type { CustomResourceDefinition } from "../../api/apiextensions/custom-resource-definition/schema.ts";
import { type ApiObject, type Kind, onePerResource } from "../../api/kind.ts";
import type { Scheme } from "../../api/scheme.ts";
import { type ReflectorEvent, reflect } from "../../client/informer/reflector.ts";
import { metadataOnly } from "../../client/metadata-only.ts";
import type { Timer } from "../../std/time/clock.ts";
import type { ControllerDeps } from "../controller.ts";
import { type CustomKinds, customKindsOf, isSameCustomKinds } from "./custom-kinds.ts";
import type { OwnerLookup } from "./owner-lookup.ts";
import type { OwnershipGraph } from "./ownership-graph.ts";

/** Waiting for all kinds to be seen once ends after this long. As Kubernetes. */
const SYNC_MS = 30_000;

interface Watched {
  /** Where owners' kinds are looked up; custom kinds are added to it. */
  readonly scheme: Scheme;
  readonly graph: OwnershipGraph;
  readonly owners: OwnerLookup;
}

interface Custom {
  readonly kinds: CustomKinds;
  readonly stop: AbortController;
}

export class MetadataWatches implements AsyncDisposable {
  /** Resolves when every kind was seen once, or when waiting for that was given up. */
  readonly synced: Promise<void>;
  readonly #settle: () => void;
  readonly #deps: ControllerDeps;
  readonly #watched: Watched;
  readonly #unseen = new Set<Kind>();
  /** By the names of their definitions. */
  readonly #custom = new Map<string, Custom>();
  readonly #running = new Set<Promise<void>>();
  #timer: Timer | undefined;

  constructor(deps: ControllerDeps, watched: Watched) {
    this.#deps = deps;
    this.#watched = watched;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.synced = promise;
    this.#settle = resolve;
  }

  start(): void {
    this.#timer = this.#deps.clock.timer(SYNC_MS, this.#settle);
    const kinds = onePerResource(this.#watched.scheme.kinds()).filter(isCollected);
    for (const kind of kinds) this.#unseen.add(kind);
    for (const kind of kinds) this.#watch(kind, this.#deps.signal);
  }

  /** Nobody waits any longer. The watches themselves end with the signal. */
  stop(): void {
    this.#timer?.cancel();
    this.#settle();
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
      if (isDefinition) this.#define(event as ReflectorEvent<CustomResourceDefinition>);
      this.#apply(kind, event);
      if (event.type === "replace") this.#seen(kind);
    };
    // Of definitions more is needed than their metadata, and no more is kept.
    const asked = isDefinition ? kind : metadataOnly(kind);
    const running = reflect({ client, clock, random, log, kind: asked, onEvent }, signal).finally(() =>
      this.#running.delete(running),
    );
    this.#running.add(running);
  }

  #seen(kind: Kind): void {
    this.#unseen.delete(kind);
    if (this.#unseen.size === 0) this.stop();
  }

  #apply(kind: Kind, event: ReflectorEvent<ApiObject>): void {
    const { graph, owners } = this.#watched;
    switch (event.type) {
      case "put":
        graph.observe(kind, event.object.metadata ?? {});
        return;
      case "delete": {
        const { uid = "" } = event.object.metadata ?? {};
        if ((graph.get(uid)?.dependents?.size ?? 0) > 0) owners.isGone(uid);
        graph.forget(uid);
        return;
      }
      case "replace":
        graph.retain(kind, new Set(event.items.map(({ metadata }) => metadata?.uid ?? "")));
        for (const { metadata } of event.items) graph.observe(kind, metadata ?? {});
    }
  }

  #define(event: ReflectorEvent<CustomResourceDefinition>): void {
    if (event.type === "replace") {
      const names = new Set(event.items.map(({ metadata }) => metadata?.name ?? ""));
      for (const name of [...this.#custom.keys()]) if (!names.has(name)) this.#stop(name);
      for (const definition of event.items) this.#serve(definition);
    } else if (event.type === "put") this.#serve(event.object);
    else this.#withdraw(event.object);
  }

  #serve(definition: CustomResourceDefinition): void {
    const { name = "" } = definition.metadata ?? {};
    const kinds = customKindsOf(definition);
    const known = this.#custom.get(name)?.kinds;
    if (kinds !== undefined && known !== undefined && isSameCustomKinds(kinds, known)) return;
    this.#stop(name);
    if (kinds === undefined) return;
    try {
      this.#watched.scheme.setCustomVersions(kinds.storageName, kinds.versions);
    } catch (error) {
      this.#deps.log.warn("Does not collect a custom resource whose names are taken", { name, why: String(error) });
      return;
    }
    const stop = new AbortController();
    this.#custom.set(name, { kinds, stop });
    this.#unseen.add(kinds.watched);
    this.#watch(kinds.watched, AbortSignal.any([this.#deps.signal, stop.signal]));
  }

  /** With a definition all that it defined is gone: whatever of it owned something does not own it any more. */
  #withdraw({ metadata }: CustomResourceDefinition): void {
    const { graph, owners } = this.#watched;
    const kinds = this.#stop(metadata?.name ?? "");
    if (kinds === undefined) return;
    for (const uid of graph.uidsOf(kinds.watched)) {
      owners.isGone(uid);
      graph.forget(uid);
    }
  }

  #stop(name: string): CustomKinds | undefined {
    const known = this.#custom.get(name);
    if (known === undefined) return undefined;
    this.#custom.delete(name);
    this.#watched.scheme.setCustomVersions(known.kinds.storageName, []);
    known.stop.abort(new DOMException("The custom resource is not served any more", "AbortError"));
    this.#seen(known.kinds.watched);
    return known.kinds;
  }
}

/** Events are many, own nothing and go by themselves. Of a kind with several versions, the stored one is watched. */
function isCollected({ kind, verbs }: Kind): boolean {
  const isPossible = (["delete", "list", "watch"] as const).every((verb) => verbs.includes(verb));
  return isPossible && kind !== "Event";
}
