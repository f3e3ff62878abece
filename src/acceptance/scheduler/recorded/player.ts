/** Plays a recorded scenario, and lists what differs. */

import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { eventsV1EventKind } from "../../../api/events/event/kind.ts";
import { type ScenarioCluster, startScenarioCluster } from "./cluster.ts";
import { comparePhase, type PhaseState } from "./compare-phase.ts";
import type { Json, RecordedEvent, Scenario, ScenarioRequest } from "./scenario.ts";

/** As the recorder waited. */
const SETTLE_MS = 350;
const QUIET_MS = 300;
const WAIT_POD_MS = 5000;
const WAIT_REMOVAL_MS = 3500;
const WAIT_STEP_MS = 3000;

interface Metadata {
  readonly name: string;
  readonly namespace?: string;
}

export async function playScenario(scenario: Scenario): Promise<readonly string[]> {
  await using cluster = await startScenarioCluster(scenario);
  return await new Player(scenario, cluster).play();
}

class Player {
  readonly #scenario: Scenario;
  readonly #cluster: ScenarioCluster;
  readonly #pods = new Map<string, Pod>();
  /** The last state of pods that are gone. */
  readonly #deleted = new Map<string, Pod>();
  readonly #order: string[] = [];
  readonly #uids = new Map<string, string>();
  readonly #differences: string[] = [];
  #phase = 0;

  constructor(scenario: Scenario, cluster: ScenarioCluster) {
    this.#scenario = scenario;
    this.#cluster = cluster;
  }

  async play(): Promise<readonly string[]> {
    const { objects = [], nodes, existing = [], pods = [], steps = [], settleMs = SETTLE_MS } = this.#scenario;
    const stop = new AbortController();
    const watching = this.#watch(stop.signal);
    await this.#cluster.advance(200);
    for (const object of objects) await this.#create(object);
    for (const node of nodes) await this.#create(node);
    for (const pod of existing) await this.#create(pod);
    await this.#cluster.advance(settleMs);
    await this.#createPods(pods);
    await this.#cluster.advance(QUIET_MS);
    await this.#finishPhase("pods");
    for (const [index, step] of steps.entries()) {
      const { method, path, body, sleep = 0 } = step;
      const single = method === undefined || path === undefined ? [] : [{ method, path, ...(body && { body }) }];
      if (sleep > 0) await this.#cluster.advance(sleep);
      for (const request of step.requests ?? single) await this.#send(request);
      await this.#cluster.advance(step.wait ?? WAIT_STEP_MS);
      await this.#finishPhase(`step ${index + 1}`);
    }
    await this.#compareEvents();
    this.#compareOrder();
    stop.abort();
    await watching;
    return this.#differences;
  }

  async #watch(signal: AbortSignal): Promise<void> {
    try {
      for await (const event of this.#cluster.client.watch(podKind, { resourceVersion: "0" }, signal)) {
        if (event.type === "BOOKMARK") continue;
        this.#observe(event.object, event.type === "DELETED");
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #observe(pod: Pod, isDeleted: boolean): void {
    const key = keyOf(pod.metadata as Metadata);
    this.#uids.set(pod.metadata?.uid ?? "", key);
    const before = this.#pods.get(key);
    if (before !== undefined && !before.spec?.nodeName && pod.spec?.nodeName && !isDeleted) this.#order.push(key);
    if (isDeleted) {
      this.#pods.delete(key);
      this.#deleted.set(key, pod);
    } else {
      this.#pods.set(key, pod);
      this.#deleted.delete(key);
    }
  }

  async #createPods(pods: readonly Json[]): Promise<void> {
    const { hang = WAIT_POD_MS, together, waitPods = WAIT_POD_MS } = this.#scenario;
    const isDecided = (pod: Json): boolean => {
      const current = this.#pods.get(keyOf(pod.metadata as Metadata));
      return Boolean(current?.spec?.nodeName) || (current?.status?.conditions ?? []).length > 0;
    };
    for (const pod of pods) {
      await this.#create(pod);
      if (together !== true) await this.#cluster.advanceUntil(() => isDecided(pod), hang);
    }
    if (together === true) await this.#cluster.advanceUntil(() => pods.every(isDecided), waitPods);
  }

  /** Removes terminating pods, as their nodes would, unless the scenario has none that do so. */
  async #finishPhase(name: string): Promise<void> {
    const terminating = [...this.#pods.values()].filter(
      ({ metadata, spec }) => metadata?.deletionTimestamp !== undefined && spec?.nodeName,
    );
    if (terminating.length > 0 && this.#scenario.kubelet !== false) {
      await this.#compare(`${name}, before removal`);
      for (const { metadata } of terminating) {
        const path = `/api/v1/namespaces/${metadata?.namespace}/pods/${metadata?.name}`;
        await this.#cluster.send("DELETE", path, { gracePeriodSeconds: 0 });
      }
      await this.#cluster.advance(this.#scenario.wait ?? WAIT_REMOVAL_MS);
    }
    await this.#compare(name);
  }

  async #compare(name: string): Promise<void> {
    const expected = this.#scenario.expect.phases[this.#phase++];
    if (expected?.after !== name) {
      this.#differences.push(`phase ${name}: expected ${expected?.after}`);
      return;
    }
    const differences = comparePhase(expected, await this.#state(), this.#scenario);
    this.#differences.push(...differences.map((difference) => `${name}: ${difference}`));
  }

  async #state(): Promise<PhaseState> {
    const { client } = this.#cluster;
    return {
      pods: this.#pods,
      deleted: this.#deleted,
      claims: (await client.list(persistentVolumeClaimKind)).items,
      volumes: (await client.list(persistentVolumeKind)).items,
    };
  }

  async #compareEvents(): Promise<void> {
    const { items } = await this.#cluster.client.list(eventsV1EventKind);
    const { events, moreEvents } = this.#scenario.expect;
    const actual = new Set(
      items
        .filter(({ reason }) => reason !== "Scheduled")
        .map(({ reason, action, note, type, reportingController, regarding, related }) =>
          eventText({
            reason: reason ?? "",
            action: action ?? "",
            note: this.#maskUids(note ?? ""),
            type: type ?? "",
            reportingController: reportingController ?? "",
            ...(related === undefined ? {} : { related: keyOf(related as Metadata) }),
            pod: keyOf(regarding as Metadata),
          }),
        ),
    );
    const expected = new Set(events.map(eventText));
    for (const text of expected) if (!actual.has(text)) this.#differences.push(`missing event ${text}`);
    if (moreEvents === true) return;
    for (const text of actual) if (!expected.has(text)) this.#differences.push(`unexpected event ${text}`);
  }

  #compareOrder(): void {
    const { order, extenderCalls } = this.#scenario.expect;
    if (order !== undefined && this.#order.join() !== order.join() && this.#scenario.quirk !== true) {
      this.#differences.push(`order ${this.#order.join()}, expected ${order.join()}`);
    }
    const calls = this.#cluster.extenderCalls.join();
    if (extenderCalls !== undefined && calls !== extenderCalls.join()) {
      this.#differences.push(`extender calls ${calls}, expected ${extenderCalls.join()}`);
    }
  }

  #maskUids(note: string): string {
    return note.replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (uid) => `<uid:${this.#uids.get(uid)}>`);
  }

  async #send({ method, path, body, sleep = 0 }: ScenarioRequest): Promise<void> {
    if (sleep > 0) await this.#cluster.advance(sleep);
    if (method === "POST" && (body?.status !== undefined || body?.kind === "Pod")) await this.#create(body);
    else await this.#cluster.send(method, path, body);
  }

  async #create(object: Json): Promise<void> {
    const metadata = object.metadata as Metadata;
    const path = pathOf(object, metadata);
    if (object.kind === "Namespace" && metadata.name === "default") return;
    await this.#cluster.send("POST", path, object);
    const hasStatus = ["PersistentVolumeClaim", "PersistentVolume", "PodDisruptionBudget", "Pod"];
    if (object.status !== undefined && hasStatus.includes(String(object.kind))) {
      await this.#cluster.send("PATCH", `${path}/${metadata.name}/status`, { status: object.status });
    }
  }
}

const CLUSTER_KINDS = [
  "Namespace",
  "Node",
  "PersistentVolume",
  "PriorityClass",
  "StorageClass",
  "CSINode",
  "RuntimeClass",
];

function pathOf({ apiVersion, kind }: Json, { namespace = "default" }: Metadata): string {
  const plural = `${String(kind).toLowerCase()}${/s$/.test(String(kind)) ? "es" : "s"}`;
  const group = String(apiVersion);
  const root = group.includes("/") ? `/apis/${group}` : `/api/${group}`;
  return CLUSTER_KINDS.includes(String(kind)) ? `${root}/${plural}` : `${root}/namespaces/${namespace}/${plural}`;
}

function keyOf({ name, namespace = "default" }: Metadata): string {
  return namespace === "default" ? name : `${namespace}/${name}`;
}

function eventText({ reason, action, note, type, reportingController, related, pod }: RecordedEvent): string {
  return JSON.stringify({ reason, action, note, type, reportingController, related, pod });
}
