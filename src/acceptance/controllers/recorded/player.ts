/** Plays a recorded scenario against an in-memory cluster in fake time, and lists what differs. */
import { builtinKinds } from "../../../api/builtin.ts";
import { eventKind } from "../../../api/core/event/kind.ts";
import type { Event } from "../../../api/core/event/schema.ts";
import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import type { Node } from "../../../api/core/node/schema.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { serviceAccountKind } from "../../../api/core/service-account/kind.ts";
import type { ApiObject, Kind } from "../../../api/kind.ts";
import { StatusError } from "../../../api/status.ts";
import type { Client } from "../../../client/client.ts";
import { formatTime } from "../../../schema/value/time.ts";
import type { FakeClock } from "../../../testing/std/fake-clock.ts";
import { compareWithRecording } from "./compare.ts";
import { changesOf, Mask, trim } from "./normalize.ts";
import type { Json, Reference, Scenario, Step, Transition } from "./scenario.ts";
import { ScriptedNode, SHARED_NODES } from "./scripted-node.ts";

const TICK_MS = 20;
const WAIT_MS = 30_000;
/** Until controllers have observed new nodes and namespaces. */
const BEFORE_MS = 2000;
/** In these no pod is bound: their pods stay pending. */
const UNSCHEDULED = ["eps-pending", "node-gc-unscheduled"];
/** What every namespace gets, and the areas that compare it. */
const NAMESPACE_OBJECTS = ["ServiceAccount/default", "ConfigMap/kube-root-ca.crt"];
const NAMESPACE_AREAS = ["namespace", "serviceaccount"];

/**
 * Plays the scenarios at the same time, each in a namespace of its own, and compares objects of the kinds. Returns the
 * differences of each.
 */
export async function playScenarios(
  client: Client,
  clock: FakeClock,
  scenarios: readonly Scenario[],
  kinds: readonly string[],
): Promise<readonly (readonly string[])[]> {
  const ticks = new Ticks(clock);
  const shared = new ScriptedNode(client, clock, [], false);
  // The controllers of nodes do nothing if no node of the cluster is ready; endpoints have the zones of their nodes.
  if (kinds.includes("Node") || kinds.includes("EndpointSlice")) {
    for (const [index, name] of SHARED_NODES.entries()) {
      await shared.addNode({
        metadata: { name, labels: { "topology.kubernetes.io/zone": index % 2 === 0 ? "za" : "zb" } },
      });
    }
  }
  const playing = Promise.all(scenarios.map((scenario) => new Player(client, clock, ticks, scenario, kinds).play()));
  await ticks.runUntil(playing);
  shared.stop();
  return await playing;
}

/** Moves the clock for all players. */
class Ticks {
  readonly #clock: FakeClock;
  #waiting: (() => void)[] = [];

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async runUntil(end: Promise<unknown>): Promise<void> {
    let ended = false;
    const stop = (): void => {
      ended = true;
    };
    end.then(stop, stop);
    while (!ended) {
      await this.#clock.advance(TICK_MS);
      for (let turn = 0; turn < 6; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const resolve of waiting) resolve();
    }
  }
}

class Player {
  readonly #client: Client;
  readonly #clock: FakeClock;
  readonly #ticks: Ticks;
  readonly #scenario: Scenario;
  readonly #compared: readonly string[];
  /** The kinds that are watched: those compared and those of the steps. */
  readonly #kinds: readonly Kind[];
  readonly #namespace: string;
  readonly #mask: Mask;
  readonly #node: ScriptedNode;
  readonly #transitions: Transition[] = [];
  readonly #objects = new Map<string, ApiObject>();
  readonly #events = new Map<string, Event>();
  readonly #stop = new AbortController();
  #changedAt = 0;

  constructor(client: Client, clock: FakeClock, ticks: Ticks, scenario: Scenario, compared: readonly string[]) {
    this.#client = client;
    this.#ticks = ticks;
    this.#clock = clock;
    // The names of cluster-scoped objects of one scenario start with no other scenario's namespace.
    this.#namespace = `play-${scenario.id}-ns`;
    this.#scenario = JSON.parse(JSON.stringify(scenario).replaceAll(/\$NS|<ns>/g, this.#namespace)) as Scenario;
    this.#compared = compared;
    const created = scenario.steps.flatMap(({ objects = [] }) => objects.map(({ kind }) => String(kind)));
    const own = Array.isArray(scenario.nodes) ? ["Node"] : [];
    this.#kinds = [...new Set([...compared, ...created, ...own, "Pod"])].map(kindOf);
    this.#mask = new Mask(this.#namespace);
    this.#node = new ScriptedNode(client, clock, scenario.podBehaviour, !UNSCHEDULED.includes(scenario.id));
  }

  async play(): Promise<readonly string[]> {
    await this.#client.create(namespaceKind, { metadata: { name: this.#namespace } });
    const account = { name: "default", namespace: this.#namespace };
    while ((await this.#client.get(serviceAccountKind, account).catch(() => undefined)) === undefined) {
      await this.#tick();
    }
    const watches = [...this.#kinds, eventKind as Kind].map((kind) => this.#watch(kind));
    const { nodes, results = {} } = this.#scenario;
    for (const node of nodes === "shared" ? [] : nodes) await this.#node.addNode(node as Node);
    if (nodes !== "shared" || NAMESPACE_AREAS.includes(this.#scenario.area)) await this.#pass(BEFORE_MS);
    // Only of accounts does the recording contain what happens before the first step.
    if (this.#scenario.area !== "serviceaccount") this.#transitions.length = 0;
    const differences: string[] = [];
    for (const [index, step] of this.#scenario.steps.entries()) {
      const code = await this.#codeOf(step);
      const wanted = results[index]?.code ?? 200;
      const isSame = wanted < 400 ? code === 200 : code === wanted;
      if (!isSame) differences.push(`step ${index} ${step.op}: ${code} instead of ${wanted}`);
    }
    this.#node.stop();
    const clusterEvents = await this.#client.list(eventKind, { namespace: "default" });
    const isOwn = ({ involvedObject }: { readonly involvedObject: { readonly name?: string | undefined } }): boolean =>
      involvedObject.name?.startsWith(`${this.#namespace}-`) === true;
    const events = [...this.#events.values(), ...clusterEvents.items.filter(isOwn)];
    const objects = [...this.#objects.values()].filter(({ kind = "" }) => this.#compared.includes(kind));
    const observed = { objects, events, transitions: this.#transitions };
    differences.push(...compareWithRecording(this.#scenario, observed, this.#compared, this.#mask));
    this.#stop.abort();
    await Promise.all(watches);
    return differences;
  }

  /** The status of the step's request; 0 for an error of the player. */
  async #codeOf(step: Step): Promise<number> {
    try {
      await this.#run(step);
      return 200;
    } catch (error) {
      if (error instanceof StatusError) return error.status.code ?? 0;
      return 0;
    }
  }

  async #watch(kind: Kind): Promise<void> {
    try {
      const query = { ...(kind.namespaced ? { namespace: this.#namespace } : {}), resourceVersion: "0" };
      for await (const event of this.#client.watch(kind, query, this.#stop.signal)) {
        if (event.type === "BOOKMARK") continue;
        if (!kind.namespaced && !this.#isOwn(event.object)) continue;
        this.#changedAt = this.#clock.monotonic();
        if (kind === (eventKind as Kind)) {
          // Kept when they are deleted with their namespace.
          this.#events.set(event.object.metadata?.name ?? "", event.object as Event);
        } else this.#observe(kind, event.object, event.type === "DELETED");
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    }
  }

  #observe(kind: Kind, object: ApiObject, isDeleted: boolean): void {
    const name = object.metadata?.name ?? "";
    const key = `${kind.kind}/${name}`;
    if (NAMESPACE_OBJECTS.includes(key) && !this.#isRecorded(kind.kind, name)) return;
    this.#mask.observe(object);
    const before = this.#objects.get(key);
    if (isDeleted) this.#objects.delete(key);
    else this.#objects.set(key, object);
    if (this.#compared.includes(kind.kind)) {
      const common = { kind: kind.kind, name, revision: Number(object.metadata?.resourceVersion) };
      if (isDeleted) this.#transitions.push({ verb: "deleted", ...common });
      else if (before === undefined) this.#transitions.push({ verb: "created", ...common });
      else this.#transitions.push({ verb: "changed", ...common, set: changesOf(trim(before), trim(object)) });
    }
    if (kind === (podKind as Kind) && !isDeleted) this.#node.podChanged(object as Pod);
  }

  #isRecorded(kind: string, name: string): boolean {
    const { transitions, final } = this.#scenario.expect;
    const changed = transitions.flatMap(({ item, set }) => set ?? (item === undefined ? [] : [item]));
    return (
      changed.some((transition) => transition.kind === kind && transition.name === name) ||
      final.some((object) => object.kind === kind && (object.metadata as Json).name === name)
    );
  }

  #tick(): Promise<void> {
    return this.#ticks.next();
  }

  async #run(step: Step): Promise<void> {
    switch (step.op) {
      case "create":
        for (const object of step.objects ?? []) await this.#create(object);
        return;
      case "patch":
        return await this.#patch(step, step.type ?? "merge", step.patch, step.sub);
      case "scale":
        return await this.#patch(step, "merge", { spec: { replicas: step.replicas } }, "scale");
      case "missSchedule": {
        const lastScheduleTime = formatTime(this.#clock.now() - (step.minutes ?? 0) * 60_000);
        return await this.#patch(step, "merge", { status: { lastScheduleTime } }, "status");
      }
      case "approve": {
        const condition = { ...step.condition, status: "True" };
        return await this.#patch(step, "strategic", { status: { conditions: [condition] } }, "approval");
      }
      case "delete": {
        const { kind, name } = this.#find(step.ref);
        return await this.#client.delete(kind, this.#nameOf(kind, name), step.options ?? {});
      }
      case "evict": {
        const { name } = this.#find(step.ref);
        const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace: this.#namespace } };
        await this.#client.createSubresource(podKind, { name, namespace: this.#namespace }, "eviction", body);
        return;
      }
      case "pod":
        return await this.#node.setStatus(this.#find(step.ref).object as Pod, step.set ?? {});
      case "node": {
        const { name = "", ...change } = step;
        return await this.#node.setNode(name, change as { readonly beat?: boolean; readonly ready?: string });
      }
      case "behave":
        this.#node.rules = step.pods ?? [];
        return;
      case "rollbackTo":
        return await this.#rollBack(step);
      case "sleep":
        return await this.#pass(step.ms ?? 0);
      case "settle":
        return await this.#settle(step.quiet ?? 1300, step.max ?? 20_000);
      case "wait":
        return await this.#waitUntil(() => this.#isFulfilled(step), step);
      case "event":
        return await this.#waitUntil(
          () => [...this.#events.values()].some(({ reason }) => reason === step.reason),
          step,
        );
      default:
        throw new Error(`unknown step ${step.op}`);
    }
  }

  async #create(object: Json): Promise<void> {
    const kind = kindOf(String(object.kind));
    const namespace = kind.namespaced ? { namespace: this.#namespace } : {};
    const metadata = { ...(object.metadata as Json), ...namespace };
    const draft = JSON.stringify({ ...object, metadata });
    // The watch must have shown the object that it refers to.
    if (draft.includes("$UID:")) await this.#tick();
    const text = draft.replace(/\$UID:([^"]+)/g, (_, key) => this.#uidOf(key));
    const complete = JSON.parse(text) as ApiObject;
    if (kind.kind === "Node") return await this.#node.addNode(complete);
    await this.#client.create(kind, complete);
  }

  #uidOf(key: string): string {
    return this.#objects.get(key)?.metadata?.uid ?? "";
  }

  /** Whether a cluster-scoped object is of this scenario: by its name, or as the VolumeAttachment of a node. */
  #isOwn(object: ApiObject): boolean {
    const { nodeName } = (object as { readonly spec?: { readonly nodeName?: string } }).spec ?? {};
    return (
      object.metadata?.name === this.#namespace ||
      [object.metadata?.name, nodeName].some((name) => name?.startsWith(`${this.#namespace}-`) === true)
    );
  }

  #nameOf(kind: Kind, name: string) {
    return kind.namespaced ? { name, namespace: this.#namespace } : { name };
  }

  async #patch(step: Step, type: "merge" | "strategic" | "json", patch: unknown, sub?: string): Promise<void> {
    const { kind, name } = this.#find(step.ref);
    const options = sub === undefined ? {} : { subresource: sub };
    // The response may be of another kind: `Scale`.
    const lenient = { ...kind, schema: podKind.schema } as Kind;
    await this.#client.patch(lenient, this.#nameOf(kind, name), type, patch, options);
  }

  async #rollBack(step: Step): Promise<void> {
    const set = [...this.#objects.values()].find(
      ({ kind, metadata }) =>
        kind === "ReplicaSet" && metadata?.annotations?.["deployment.kubernetes.io/revision"] === step.revision,
    );
    const template = structuredClone((set as { spec?: { template?: Json } } | undefined)?.spec?.template ?? {});
    const { labels } = template.metadata as { labels: Record<string, string> };
    delete labels["pod-template-hash"];
    await this.#patch(step, "json", [{ op: "replace", path: "/spec/template", value: template }]);
  }

  #find(ref: Reference = ""): { readonly kind: Kind; readonly name: string; readonly object: ApiObject | undefined } {
    if (typeof ref === "string") {
      const [kind = "", name = ""] = ref.split("/");
      return { kind: kindOf(kind), name, object: this.#objects.get(ref) };
    }
    const object = this.#matching(ref).at(ref.nth ?? 0);
    return { kind: kindOf(ref.kind), name: object?.metadata?.name ?? "", object };
  }

  #matching(ref: Exclude<Reference, string>): readonly ApiObject[] {
    return [...this.#objects.values()]
      .filter((object) => object.kind === ref.kind && matches(object, ref))
      .sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
  }

  async #pass(milliseconds: number): Promise<void> {
    for (let passed = 0; passed < milliseconds; passed += TICK_MS) await this.#tick();
  }

  async #settle(quiet: number, max: number): Promise<void> {
    const start = this.#clock.monotonic();
    this.#changedAt = start;
    const isCalm = (): boolean => this.#clock.monotonic() - this.#changedAt >= quiet && !this.#node.isEndingPods;
    while (!isCalm() && this.#clock.monotonic() - start < max) await this.#tick();
  }

  async #waitUntil(isFulfilled: () => boolean, { max = WAIT_MS }: Step): Promise<void> {
    for (let passed = 0; passed < Math.max(max, WAIT_MS); passed += TICK_MS) {
      if (isFulfilled()) return;
      await this.#tick();
    }
    throw new Error("the condition was never fulfilled");
  }

  #isFulfilled({ ref = "", path, equals, gone, count }: Step): boolean {
    if (count !== undefined) return typeof ref !== "string" && this.#matching(ref).length >= count;
    const { object } = this.#find(ref);
    if (gone === true) return object === undefined;
    const value = object === undefined ? undefined : valueAt(object, path ?? "");
    return equals === undefined ? value !== undefined : value === equals;
  }
}

/** The value at a path such as `.status.conditions[Ready].status`. */
function valueAt(object: ApiObject, path: string): unknown {
  let value: unknown = object;
  for (const [, name = "", type] of path.matchAll(/\.(\w+)(?:\[(\w+)\])?/g)) {
    value = (value as Json | undefined)?.[name];
    if (type !== undefined) value = (value as readonly Json[] | undefined)?.find((member) => member.type === type);
  }
  return value;
}

function kindOf(name: string): Kind {
  const kind = builtinKinds.find((one) => one.kind === name);
  if (kind === undefined) throw new Error(`unknown kind ${name}`);
  return kind;
}

function sortKey({ metadata }: ApiObject): string {
  return `${metadata?.creationTimestamp ?? ""} ${metadata?.name ?? ""}`;
}

function matches(object: ApiObject, ref: Exclude<Reference, string>): boolean {
  const { metadata, status } = object as Pod;
  const isFinished = status?.phase === "Succeeded" || status?.phase === "Failed";
  if (ref.live === true && (metadata?.deletionTimestamp !== undefined || isFinished)) return false;
  if (ref.nameEndsWith !== undefined && metadata?.name?.endsWith(ref.nameEndsWith) !== true) return false;
  if (ref.ready === true && status?.conditions?.find(({ type }) => type === "Ready")?.status !== "True") return false;
  return Object.entries(ref.labels ?? {}).every(([name, value]) => metadata?.labels?.[name] === value);
}
