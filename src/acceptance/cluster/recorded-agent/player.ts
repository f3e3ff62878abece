/** Replays a recorded case on a node and records the same streams. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../../testing/std/until.ts";
import type { ApiJson, Case, EventJson, Json, PodRecord, PodStatusJson, RunLog, Snapshot, Step } from "./cases.ts";
import { cgroupDifferences, readCgroups } from "./cgroups.ts";
import { differences } from "./compare.ts";
import { containersOf, holds, type Observation } from "./conditions.ts";
import type { ApiResponse } from "./raw-api-client.ts";
import { heldMs, lastChangeMs } from "./recording-times.ts";
import { NODE, type ReplayNode } from "./replay-node.ts";
import { traitsOf } from "./settings.ts";
import { matchesText } from "./texts.ts";

const POLL_MS = 100;
/** Delay between a running pod and the start of the following case. */
const FOLLOWER_MS = 2000;
/** Delay after the last condition, for its consequences. */
const AFTERWARDS_MS = 1500;
const AFTERWARDS_MAX_MS = 5000;
const SLACK_MS = 700;
/** Additional time of a replay that differs. */
const LATE_MAX_MS = 4000;

/** Actions on the node that several cases wait for together. */
export interface HostActions {
  act(step: Step, seen: Observation): Promise<void>;
}

export interface PlayedCase extends PodRecord {
  /** Steps whose responses differ from the recording. */
  readonly problems: readonly string[];
  readonly differences: readonly string[];
}

/** Calls `follower` shortly after the pod runs. */
export async function play(
  node: ReplayNode,
  one: Case,
  actions: HostActions,
  follower?: () => Promise<void>,
): Promise<PlayedCase> {
  await using player = new Player(node, one);
  await player.start();
  const following = follower === undefined ? undefined : player.running().then(follower);
  for (const step of one.steps ?? []) await player.step(step, actions);
  await player.wait(one.until);
  await player.rest();
  await following;
  return await player.compare();
}

class Player implements AsyncDisposable {
  readonly #node: ReplayNode;
  readonly #case: Case;
  readonly #namespace: string;
  readonly #limitMs: number;
  readonly #stopping = new AbortController();
  readonly #snapshots: Snapshot[] = [];
  readonly #events = new Map<string, EventJson>();
  readonly #logs = new Map<string, Map<string, RunLog>>();
  readonly #problems: string[] = [];
  readonly #background: Promise<void>[] = [];
  /** Of the pod, and of its mirror pods if its manifest is a file; empty: any. */
  readonly #podNames: ReadonlySet<string>;
  #began = 0;
  #pod: ApiJson | undefined;

  constructor(node: ReplayNode, one: Case) {
    this.#node = node;
    this.#case = one;
    this.#namespace = `rec-${one.id}`.slice(0, 63);
    this.#podNames = new Set(podNames(one));
    const recordedTimes = [one.until].flat().map(({ s = 0 }) => s * 1000);
    this.#limitMs = Math.max(lastChangeMs(one), ...recordedTimes) * 1.5 + 45_000;
  }

  async start(): Promise<void> {
    const { api } = this.#node;
    const { objects = [], pod } = this.#case;
    const metadata = { name: this.#namespace };
    await api.expect("POST", "/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata });
    await until("the service account", async () => {
      const { code } = await api.send("GET", `/api/v1/namespaces/${this.#namespace}/serviceaccounts/default`);
      return code === 200 ? true : undefined;
    });
    for (const object of objects) await this.#create(this.#filled(object));
    this.#background.push(this.#watchPods(), this.#watchEvents(), this.#followLogs());
    await sleep(POLL_MS);
    this.#began = performance.now();
    if (pod !== undefined) await this.#createPod(this.#filled(pod));
  }

  async #createPod(pod: ApiJson): Promise<void> {
    const { rejected } = this.#case;
    if (rejected === undefined) return await this.#create(pod);
    const { code, body } = await this.#node.api.send("POST", await this.#collection(pod), pod);
    const message = this.#named(messageOf(body));
    if (code !== rejected.code || !matchesText(rejected.message, message, traitsOf(this.#case))) {
      this.#problems.push(`creating the pod: ${code} ${message}; not ${rejected.code} ${rejected.message}`);
    }
  }

  async #create(object: ApiJson): Promise<void> {
    const { code, body } = await this.#node.api.send("POST", await this.#collection(object), object);
    if (code !== 201)
      this.#problems.push(`creating ${object.kind} ${object.metadata.name}: ${code} ${messageOf(body)}`);
  }

  #collection({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): Promise<string> {
    return this.#node.api.collectionPath(apiVersion, kind, this.#namespace);
  }

  /** Replaces the recorder's placeholders with the values of this machine. */
  #filled<T>(value: T): T {
    const values: Json = {
      node: NODE,
      namespace: this.#namespace,
      "node-ip": this.#node.ip,
      dir: this.#node.scratch,
      uid: this.#pod?.metadata.uid ?? "",
      "pod-ip": (this.#pod?.status as { podIP?: string } | undefined)?.podIP ?? "",
    };
    return JSON.parse(
      JSON.stringify(value)
        .replace(/<([a-z-]+)>/g, (whole, name: string) => (values[name] as string) ?? whole)
        // A pod on the host's network sees the host's interfaces.
        .replace(/\/sys\/class\/net\/(?!lo\b)[a-z]+\d+/g, "/sys/class/net/lo"),
    ) as T;
  }

  async #watchPods(): Promise<void> {
    const path = `/api/v1/namespaces/${this.#namespace}/pods`;
    let last = "";
    for await (const { type, object } of this.#node.api.watch(path, "", this.#stopping.signal)) {
      if (!this.#isOurs(object.metadata.name)) continue;
      this.#pod = object;
      const { deletionTimestamp } = object.metadata as { readonly deletionTimestamp?: string };
      const snapshot: Snapshot = {
        status: object.status as PodStatusJson,
        ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
        ...(type === "DELETED" ? { gone: true } : {}),
      };
      const text = JSON.stringify(snapshot);
      if (text !== last) this.#snapshots.push(snapshot);
      last = text;
    }
  }

  async #watchEvents(): Promise<void> {
    const path = `/api/v1/namespaces/${this.#namespace}/events`;
    for await (const { type, object } of this.#node.api.watch(path, "", this.#stopping.signal)) {
      if (type === "DELETED") continue;
      const event = object as unknown as EventJson & { readonly involvedObject: InvolvedObject };
      if (event.involvedObject.kind !== "Pod" || !this.#isOurs(event.involvedObject.name)) continue;
      this.#events.set(object.metadata.name, { ...event, fieldPath: event.involvedObject.fieldPath ?? "" });
    }
  }

  #isOurs(podName: string): boolean {
    return this.#podNames.size === 0 || this.#podNames.has(podName);
  }

  /** Polls the log files, since they are removed with the pod. */
  async #followLogs(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.#readLogs();
      await sleep(POLL_MS);
    }
  }

  #readLogs(): void {
    const start = `${this.#namespace}_`;
    for (const folder of entries(this.#node.podLogs)) {
      if (!folder.startsWith(start) || !this.#isOurs(folder.split("_")[1] ?? "")) continue;
      for (const container of entries(join(this.#node.podLogs, folder))) {
        for (const file of entries(join(this.#node.podLogs, folder, container))) {
          const restart = /^(\d+)\.log$/.exec(file)?.[1];
          if (restart === undefined) continue;
          const runs = this.#logs.get(container) ?? new Map<string, RunLog>();
          this.#logs.set(container, runs);
          const path = join(this.#node.podLogs, folder, container, file);
          // Static pods of one name may have several directories.
          runs.set(`${folder}/${restart}`, { restart: Number(restart), lines: linesOf(path) });
        }
      }
    }
  }

  #seen(): Observation {
    const last = this.#snapshots.at(-1);
    const gone = last?.gone === true;
    return {
      exists: last !== undefined && !gone,
      gone,
      status: last?.status ?? {},
      events: [...this.#events.values()],
      logOf: (container) =>
        [...(this.#logs.get(container)?.values() ?? [])]
          .flatMap(({ lines }) => lines.map(([, , text]) => text))
          .join("\n"),
      seconds: (performance.now() - this.#began) / 1000,
    };
  }

  async wait(conditions: Case["until"] | undefined): Promise<void> {
    while (!holds(conditions, this.#seen())) {
      if (performance.now() - this.#began > this.#limitMs) {
        this.#problems.push(`timeout: ${JSON.stringify(conditions)}`);
        return;
      }
      await sleep(POLL_MS / 2);
    }
  }

  /** Waits as long as the recording lasted, within bounds. */
  async rest(): Promise<void> {
    const went = lastChangeMs(this.#case) - heldMs(this.#case) + SLACK_MS;
    await sleep(Math.min(Math.max(went, AFTERWARDS_MS), AFTERWARDS_MAX_MS));
  }

  /** Resolves a while after the pod runs. */
  async running(): Promise<void> {
    while (!holds({ phase: "Running" }, this.#seen()) && !this.#stopping.signal.aborted && !this.#isLate()) {
      await sleep(POLL_MS);
    }
    await sleep(FOLLOWER_MS);
  }

  #isLate(): boolean {
    return performance.now() - this.#began > this.#limitMs;
  }

  async step(step: Step, actions: HostActions): Promise<void> {
    await this.wait(step.after);
    await sleep((step.waitSeconds ?? 0) * 1000);
    if (step.op === "host") return await this.#onHost(step, actions);
    if (step.op === "exec") return await this.#exec(this.#filled(step));
    const { code, body } = await this.#request(this.#filled(step));
    if (typeof step.result === "number" && code !== step.result) {
      this.#problems.push(`${step.op}: ${code} ${messageOf(body)}, not ${step.result}`);
    }
  }

  /** The recorded result is the output, or an object with output and exit code. */
  async #exec({ container, command = [], result }: Step): Promise<void> {
    const found = containersOf(this.#seen().status).filter(
      ({ name, state }) => state.running && name === (container ?? name),
    );
    const id = found.at(-1)?.containerID?.replace(/^.*:\/\//, "") ?? "";
    const { code, output } = this.#named(await this.#node.exec(id, command));
    const recorded = typeof result === "object" && result !== null ? (result as Json) : { output: result };
    const wanted = recorded.output ?? recorded.stdout ?? recorded.out;
    if (typeof wanted === "string" && !matchesText(wanted, output, traitsOf(this.#case))) {
      this.#problems.push(`exec: ${output}, not ${wanted}`);
    }
    const exitCode = recorded.exitCode ?? recorded.code;
    if (typeof exitCode === "number" && exitCode !== code)
      this.#problems.push(`exec: exit code ${code}, not ${exitCode}`);
  }

  async #request(step: Step): Promise<ApiResponse> {
    const { api } = this.#node;
    if (step.op === "create") return await api.send("POST", await this.#collection(step.object!), step.object);
    const name = step.name ?? this.#case.pod?.metadata.name ?? this.#pod?.metadata.name ?? "";
    const kind = step.kind ?? "Pod";
    const apiVersion = await api.apiVersionOf(kind);
    const path = `${await this.#collection({ apiVersion, kind })}/${name}`;
    switch (step.op) {
      case "patch": {
        const type = step.type ?? "application/strategic-merge-patch+json";
        return await api.send("PATCH", step.sub === undefined ? path : `${path}/${step.sub}`, step.body, type);
      }
      default: {
        const options = step.grace === undefined ? {} : { gracePeriodSeconds: step.grace };
        return await api.send("DELETE", path, { apiVersion: "v1", kind: "DeleteOptions", ...options });
      }
    }
  }

  async #onHost(step: Step, actions: HostActions): Promise<void> {
    const file = join(this.#node.manifests, step.file ?? "");
    switch (step.do) {
      case "writeStatic": {
        const { manifest, text } = step;
        return writeFileSync(
          file,
          text === undefined
            ? JSON.stringify(inNamespace(manifest, this.#namespace))
            : textInNamespace(text, this.#namespace),
        );
      }
      case "removeStatic":
        return rmSync(file, { force: true });
      case "cgroups": {
        const recorded = step.result as Json;
        const running = containersOf(this.#seen().status).map(
          ({ name, containerID = "" }) => [name, containerID.replace(/^.*:\/\//, "")] as const,
        );
        const found = readCgroups(this.#pod?.metadata.uid as string, new Map(running), recorded);
        this.#problems.push(...cgroupDifferences(recorded, this.#named(found)));
        return;
      }
      default:
        return await actions.act(step, this.#seen());
    }
  }

  /** A busy machine may be late: compares until there is no difference, or the recording has ended long ago. */
  async compare(): Promise<PlayedCase> {
    const deadline = performance.now() + LATE_MAX_MS;
    for (;;) {
      const played = this.#played();
      const found = differences(this.#case, played, traitsOf(this.#case));
      if (found.length === 0 || performance.now() > deadline) return { ...played, differences: found };
      await sleep(POLL_MS * 2);
    }
  }

  #played(): Omit<PlayedCase, "differences"> {
    this.#readLogs();
    const logs = [...this.#logs].map(([name, runs]) => [name, [...runs.values()]] as const);
    return {
      snapshots: this.#snapshots.map((each) => this.#named(each)),
      events: [...this.#events.values()].map((each) => this.#named(each)),
      logs: this.#named(Object.fromEntries(logs)),
      problems: this.#problems,
    };
  }

  /** Replaces the values of this machine with the recorder's placeholders. */
  #named<T>(value: T): T {
    const { podIP, hostIP } = (this.#pod?.status ?? {}) as { readonly podIP?: string; readonly hostIP?: string };
    const known: readonly (readonly [string | undefined, string])[] = [
      [this.#pod?.metadata.uid as string | undefined, "<uid>"],
      [this.#namespace, "<namespace>"],
      [podIP === hostIP ? undefined : podIP, "<pod-ip>"],
      [this.#node.ip, "<node-ip>"],
      [this.#node.scratch, "<dir>"],
      [this.#node.rootDir, "<kubelet-root>"],
      // Static pods are named after their node.
      ...[...this.#podNames].map((name) => [name, name.replace(new RegExp(`-${NODE}$`), "-localhost")] as const),
    ];
    let text = JSON.stringify(value);
    for (const [from, to] of known) if (from) text = text.replaceAll(from, to);
    return JSON.parse(text) as T;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const path = `/api/v1/namespaces/${this.#namespace}`;
    await this.#node.api.send("DELETE", `${path}/pods`, { gracePeriodSeconds: 0 });
    await this.#node.api.send("DELETE", path);
    this.#stopping.abort();
    await Promise.allSettled(this.#background);
  }
}

interface InvolvedObject {
  readonly kind: string;
  readonly name: string;
  readonly fieldPath?: string;
}

/** Names of the pod's objects; none if the server generates the name. */
function podNames({ pod, steps = [] }: Case): readonly string[] {
  if (pod !== undefined) return pod.metadata.name === undefined ? [] : [pod.metadata.name];
  return steps.flatMap(({ manifest, text = "" }) => {
    const { metadata } = (manifest ?? {}) as { readonly metadata?: { readonly name?: string } };
    const name = metadata?.name ?? /^metadata:(?:\n +.*)*?\n +name: (\S+)/m.exec(text)?.[1];
    return name === undefined ? [] : [`${name}-${NODE}`];
  });
}

/** A manifest in YAML; other texts stay as they are. */
function textInNamespace(text: string, namespace: string): string {
  return /^ +namespace:/m.test(text) ? text : text.replace(/^metadata: *$/m, `metadata:\n  namespace: ${namespace}`);
}

function inNamespace(manifest: unknown, namespace: string): unknown {
  const { metadata = {}, ...rest } = manifest as { readonly metadata?: object };
  return { ...rest, metadata: { ...metadata, namespace } };
}

function entries(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** A line in the CRI log format: time, stream, F or P, text. */
const LOG_LINE = /^\S+ (stdout|stderr) ([FP]) (.*)$/;

function linesOf(path: string): RunLog["lines"] {
  let text = "";
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return [];
  }
  return text.split("\n").flatMap((line) => {
    const [, stream, , content] = LOG_LINE.exec(line) ?? [];
    return content === undefined ? [] : [[0, stream === "stderr" ? "e" : "o", content] as const];
  });
}

function messageOf(body: unknown): string {
  return (body as { readonly message?: string } | undefined)?.message ?? "";
}
