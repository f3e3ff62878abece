/** Plays a recorded scenario against an in-memory cluster in fake time, and lists what differs. */
import { deploymentKind } from "../../../api/apps/deployment/kind.ts";
import { replicaSetKind } from "../../../api/apps/replica-set/kind.ts";
import { eventKind } from "../../../api/core/event/kind.ts";
import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { replicationControllerKind } from "../../../api/core/replication-controller/kind.ts";
import { resourceQuotaKind } from "../../../api/core/resource-quota/kind.ts";
import { serviceAccountKind } from "../../../api/core/service-account/kind.ts";
import type { ApiObject, Kind } from "../../../api/kind.ts";
import { StatusError } from "../../../api/status.ts";
import type { Client } from "../../../client/client.ts";
import type { FakeClock } from "../../../testing/std/fake-clock.ts";
import { changesOf, maskJson, maskText, milestonesOf, trim, trimEvent } from "./normalize.ts";
import type { Json, RecordedEvent, Reference, Scenario, Step, Transition } from "./scenario.ts";
import { ScriptedNode } from "./scripted-node.ts";

const COMPARED = [deploymentKind, podKind, replicaSetKind, replicationControllerKind] as readonly Kind[];
const KINDS = [...COMPARED, resourceQuotaKind as Kind];
const TICK_MS = 20;

/** Plays the scenarios at the same time, each in a namespace of its own. Returns the differences of each. */
export async function playScenarios(
  client: Client,
  clock: FakeClock,
  scenarios: readonly Scenario[],
): Promise<readonly (readonly string[])[]> {
  const ticks = new Ticks(clock);
  const playing = Promise.all(scenarios.map((scenario) => new Player(client, clock, ticks, scenario).play()));
  await ticks.runUntil(playing);
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
  readonly #namespace: string;
  readonly #node: ScriptedNode;
  readonly #transitions: Transition[] = [];
  readonly #objects = new Map<string, ApiObject>();
  readonly #stop = new AbortController();
  #changedAt = 0;

  constructor(client: Client, clock: FakeClock, ticks: Ticks, scenario: Scenario) {
    this.#client = client;
    this.#ticks = ticks;
    this.#clock = clock;
    this.#scenario = scenario;
    this.#namespace = `play-${scenario.id}`;
    this.#node = new ScriptedNode(client, clock, scenario.podBehaviour);
  }

  async play(): Promise<readonly string[]> {
    await this.#client.create(namespaceKind, { metadata: { name: this.#namespace } });
    const account = { name: "default", namespace: this.#namespace };
    while ((await this.#client.get(serviceAccountKind, account).catch(() => undefined)) === undefined) {
      await this.#tick();
    }
    const watches = [...KINDS, eventKind as Kind].map((kind) => this.#watch(kind));
    const differences: string[] = [];
    for (const [index, step] of this.#scenario.steps.entries()) {
      try {
        await this.#run(step);
      } catch (error) {
        if (!(error instanceof StatusError) || error.status.code !== 422) {
          differences.push(`step ${index} ${step.op}: ${String(error)}`);
        }
      }
    }
    differences.push(...(await this.#compare()));
    this.#stop.abort();
    await Promise.all(watches);
    return differences;
  }

  async #watch(kind: Kind): Promise<void> {
    try {
      const query = { namespace: this.#namespace, resourceVersion: "0" };
      for await (const event of this.#client.watch(kind, query, this.#stop.signal)) {
        if (event.type === "BOOKMARK") continue;
        this.#changedAt = this.#clock.monotonic();
        if (kind !== (eventKind as Kind)) this.#observe(kind, event.object, event.type === "DELETED");
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    }
  }

  #observe(kind: Kind, object: ApiObject, isDeleted: boolean): void {
    const name = object.metadata?.name ?? "";
    const key = `${kind.kind}/${name}`;
    const before = this.#objects.get(key);
    if (isDeleted) this.#objects.delete(key);
    else this.#objects.set(key, object);
    if (COMPARED.includes(kind)) {
      const common = { kind: kind.kind, name };
      if (isDeleted) this.#transitions.push({ verb: "deleted", ...common });
      else if (before === undefined) this.#transitions.push({ verb: "created", ...common });
      else this.#transitions.push({ verb: "changed", ...common, set: changesOf(trim(before), trim(object)) });
    }
    if (kind === (podKind as Kind) && !isDeleted) this.#node.podChanged(object as Pod);
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
      case "delete": {
        const { kind, name } = this.#find(step.ref);
        return await this.#client.delete(kind, { name, namespace: this.#namespace }, step.options ?? {});
      }
      case "pod":
        return await this.#node.setStatus(this.#find(step.ref).object as Pod, step.set ?? {});
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
        return await this.#waitFor(step);
      default:
        throw new Error(`unknown step ${step.op}`);
    }
  }

  async #create(object: Json): Promise<void> {
    const kind = kindOf(String(object.kind));
    const metadata = { ...(object.metadata as Json), namespace: this.#namespace };
    const text = JSON.stringify({ ...object, metadata }).replace(/\$UID:([^"]+)/g, (_, key) => this.#uidOf(key));
    await this.#client.create(kind, JSON.parse(text) as ApiObject);
  }

  #uidOf(key: string): string {
    return this.#objects.get(key)?.metadata?.uid ?? "";
  }

  async #patch(step: Step, type: "merge" | "strategic" | "json", patch: unknown, sub?: string): Promise<void> {
    const { kind, name } = this.#find(step.ref);
    const options = sub === undefined ? {} : { subresource: sub };
    await this.#client.patch(
      { ...kind, schema: podKind.schema } as Kind,
      { name, namespace: this.#namespace },
      type,
      patch,
      options,
    );
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
    const found = [...this.#objects.values()]
      .filter((object) => object.kind === ref.kind && matches(object, ref))
      .sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
    const object = found.at(ref.nth ?? 0);
    return { kind: kindOf(ref.kind), name: object?.metadata?.name ?? "", object };
  }

  async #pass(milliseconds: number): Promise<void> {
    for (let passed = 0; passed < milliseconds; passed += TICK_MS) await this.#tick();
  }

  async #settle(quiet: number, max: number): Promise<void> {
    const start = this.#clock.monotonic();
    this.#changedAt = start;
    while (this.#clock.monotonic() - this.#changedAt < quiet && this.#clock.monotonic() - start < max) {
      await this.#tick();
    }
  }

  async #waitFor({ ref, path = "", equals }: Step): Promise<void> {
    const type = /\[(.*?)\]\.(\w+)$/.exec(path);
    for (let passed = 0; passed < 30_000; passed += TICK_MS) {
      const { object } = this.#find(ref);
      const conditions = (object as { status?: { conditions?: readonly Json[] } } | undefined)?.status?.conditions;
      const condition = conditions?.find((one) => one.type === type?.[1]);
      if (condition?.[type?.[2] ?? ""] === equals) return;
      await this.#tick();
    }
    throw new Error(`${path} never was ${String(equals)}`);
  }

  async #compare(): Promise<readonly string[]> {
    const { expect, stable } = this.#scenario;
    const names = COMPARED.map(({ kind }) => kind);
    const unstable = Array.isArray(stable.final) ? (stable.final as readonly string[]) : [];
    const isStable = (object: Json): boolean =>
      !unstable.some((path) => path.startsWith(`${object.kind}/`) || path.startsWith("Pod"));
    const left = [...this.#objects.values()].filter(({ kind = "" }) => names.includes(kind)).map(trim);
    const wanted = expect.final.filter(({ kind }) => names.includes(String(kind)));
    const events = await this.#client.list(eventKind, { namespace: this.#namespace });
    const asText = (event: RecordedEvent): string =>
      `${event.type} ${event.reason} ${event.kind}/${maskText(event.name)} ${event.component} ` +
      maskText(event.message) +
      (stable.events === "all" ? ` ${event.count}` : "");
    const differing = (stable.eventsDiffer ?? []).join(" ");
    const isComparable = (event: RecordedEvent): boolean =>
      event.reason !== "FailedCreate" && !differing.includes(event.reason) && names.includes(event.kind);
    return [
      ...compareBags("final", left.filter(isStable).map(maskFinal), wanted.filter(isStable).map(maskFinal)),
      ...compareBags(
        "event",
        events.items.map(trimEvent).filter(isComparable).map(asText),
        expect.events.filter(isComparable).map(asText),
      ),
      ...this.#compareTransitions(),
    ];
  }

  #compareTransitions(): readonly string[] {
    const { expect, stable } = this.#scenario;
    if (stable.transitions === "none") return [];
    const onlyLifetimes = stable.transitions === "creationsAndDeletions";
    const names = COMPARED.map(({ kind }) => kind);
    const recorded = expect.transitions
      .flatMap(({ item, set }) => set ?? (item === undefined ? [] : [item]))
      .filter(({ kind }) => names.includes(kind));
    const isController = (text: string): boolean => !/ spec\.(template|strategy)/.test(text);
    const lists = [this.#transitions, recorded].map((list) =>
      withoutRepeatedMarks(list)
        .flatMap((transition) => milestonesOf(transition, onlyLifetimes))
        .filter(isController),
    );
    return compareBags("transition", lists[0] ?? [], lists[1] ?? []);
  }
}

/** Kubernetes marks a pod again when its grace period becomes 0. */
function withoutRepeatedMarks(list: readonly Transition[]): readonly Transition[] {
  const marked = new Set<string>();
  return list.map((transition) => {
    const { "metadata.deletionTimestamp": mark, ...set } = transition.set ?? {};
    if (mark === undefined) return transition;
    const key = `${transition.kind}/${transition.name}`;
    if (marked.has(key)) return { ...transition, set };
    marked.add(key);
    return transition;
  });
}

/** Nodes are assigned in turn, so they depend on the order of parallel creations. */
function maskFinal(object: Json): string {
  return maskJson(object).replace(/"nodeName":"shared-\d"/, '"nodeName":"shared"');
}

function kindOf(name: string): Kind {
  const kind = KINDS.find((one) => one.kind === name);
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
  return Object.entries(ref.labels ?? {}).every(([name, value]) => metadata?.labels?.[name] === value);
}

function compareBags(what: string, found: readonly string[], wanted: readonly string[]): readonly string[] {
  const rest = [...wanted];
  const extra = found.filter((text) => {
    const index = rest.indexOf(text);
    if (index >= 0) rest.splice(index, 1);
    return index < 0;
  });
  return [...extra.map((text) => `${what} + ${text}`), ...rest.map((text) => `${what} - ${text}`)];
}
