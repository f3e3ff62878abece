/** The scripted scheduler and node agents of recorded scenarios. */
import { leaseKind } from "../../../api/coordination/lease/kind.ts";
import { nodeKind } from "../../../api/core/node/kind.ts";
import type { Node } from "../../../api/core/node/schema.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { StatusError } from "../../../api/status.ts";
import type { Client } from "../../../client/client.ts";
import { formatMicroTime, formatTime } from "../../../schema/value/time.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { PodChange, PodRule } from "./scenario.ts";

const BIND_MS = 10;
const READY_MS = 100;
const DELETE_MS = 100;
/** Pods that take longer to become ready are running before. */
const SLOW_READY_MS = 300;
const SLOW_START_MS = 20;
const START_MS = 30;
const END_MS = 400;
const HEARTBEAT_MS = 3500;
const KILLED_CODE = 137;
export const SHARED_NODES = ["shared-1", "shared-2", "shared-3", "shared-4"];
const COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index";

interface NodeState {
  isBeating: boolean;
  ready: string;
}

export class ScriptedNode {
  readonly #client: Client;
  readonly #clock: Clock;
  #rules: readonly PodRule[];
  /** How many pods have matched a rule. */
  readonly #matched = new Map<PodRule, number>();
  readonly #ruleOf = new Map<string, PodRule>();
  readonly #ending = new Set<string>();
  /** Pods being deleted whose end is not scheduled: their node is stopped. */
  readonly #terminating = new Map<string, Pod>();
  /** By the time when they are due. */
  readonly #due = new Map<number, (() => Promise<void>)[]>();
  #endsPending = 0;
  /** The scenario's own nodes. */
  readonly #nodes = new Map<string, NodeState>();
  #nextNode = 0;
  #nextAddress = 0;
  #isStopped = false;
  readonly #isScheduling: boolean;

  constructor(client: Client, clock: Clock, rules: readonly PodRule[], isScheduling: boolean) {
    this.#client = client;
    this.#clock = clock;
    this.#rules = rules;
    this.#isScheduling = isScheduling;
  }

  set rules(rules: readonly PodRule[]) {
    this.#rules = rules;
  }

  /** Whether pods are being deleted whose end it will report. */
  get isEndingPods(): boolean {
    return this.#endsPending > 0;
  }

  /** Ends the heartbeats. */
  stop(): void {
    this.#isStopped = true;
  }

  /** The node gets heartbeats and becomes ready. */
  async addNode(node: Node): Promise<void> {
    const name = node.metadata?.name ?? "";
    const labels = { ...node.metadata?.labels, "kubernetes.io/hostname": name };
    this.#nodes.set(name, { isBeating: true, ready: "True" });
    await this.#client.create(nodeKind, { ...node, metadata: { ...node.metadata, labels } });
    await this.#client.create(leaseKind, {
      metadata: { name, namespace: "kube-node-lease" },
      spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: formatMicroTime(this.#clock.now()) },
    });
    await this.#reportNode(name);
    this.#beat(name);
  }

  async setNode(name: string, { beat, ready }: { readonly beat?: boolean; readonly ready?: string }): Promise<void> {
    const state = this.#nodes.get(name);
    if (state === undefined) throw new Error(`unknown node ${name}`);
    state.isBeating = beat ?? state.isBeating;
    state.ready = ready ?? state.ready;
    if (ready !== undefined) await this.#reportNode(name);
    if (beat === true) for (const pod of [...this.#terminating.values()]) this.podChanged(pod);
  }

  #beat(name: string): void {
    this.#later(HEARTBEAT_MS, async () => {
      if (this.#isStopped || !this.#nodes.has(name)) return;
      this.#beat(name);
      if (this.#nodes.get(name)?.isBeating !== true) return;
      const patch = { spec: { renewTime: formatMicroTime(this.#clock.now()) } };
      await this.#client.patch(leaseKind, { name, namespace: "kube-node-lease" }, "merge", patch);
    });
  }

  async #reportNode(name: string): Promise<void> {
    const now = formatTime(this.#clock.now());
    const isReady = this.#nodes.get(name)?.ready === "True";
    const conditions = [
      ["MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"],
      ["DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"],
      ["PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"],
      isReady
        ? ["Ready", "True", "KubeletReady", "kubelet is posting ready status"]
        : ["Ready", "False", "KubeletNotReady", "container runtime is down"],
    ].map(([type, status, reason, message]) => ({
      type,
      status,
      reason,
      message,
      lastHeartbeatTime: now,
      lastTransitionTime: now,
    }));
    const patch = {
      status: {
        conditions,
        capacity: { cpu: "64", memory: "256Gi", pods: "250" },
        allocatable: { cpu: "64", memory: "256Gi", pods: "250" },
      },
    };
    await this.#client.patch(nodeKind, { name }, "strategic", patch, { subresource: "status" });
  }

  podChanged(pod: Pod): void {
    const uid = pod.metadata?.uid ?? "";
    const isNew = !this.#ruleOf.has(uid);
    const rule = this.#ruleOf.get(uid) ?? this.#findRule(pod);
    this.#ruleOf.set(uid, rule);
    const isGated = (pod.spec?.schedulingGates ?? []).length > 0;
    const nodeName = pod.spec?.nodeName ?? "";
    if (isNew && nodeName !== "") this.#start(pod, rule);
    else if (isNew && this.#isScheduling && rule.unscheduled !== true && !isGated) {
      this.#later(BIND_MS, () => this.#bind(pod, rule));
    }
    if (pod.metadata?.deletionTimestamp === undefined || rule.stuck === true || this.#ending.has(uid)) return;
    if (nodeName === "") return;
    this.#terminating.set(uid, pod);
    if (this.#nodes.size > 0 && this.#nodes.get(nodeName)?.isBeating !== true) return;
    this.#terminating.delete(uid);
    this.#ending.add(uid);
    this.#endsPending++;
    this.#later(rule.deleteMs ?? DELETE_MS, () => this.#end(pod, rule).finally(() => this.#endsPending--));
  }

  async setStatus(pod: Pod, change: PodChange): Promise<void> {
    const { phase = "Running", ready = true, reason, code, restarts = 0, conditions = [] } = change;
    const isEnded = phase === "Succeeded" || phase === "Failed";
    const isReady = ready && !isEnded;
    const now = formatTime(this.#clock.now());
    const cause = isEnded ? (phase === "Succeeded" ? "PodCompleted" : "PodFailed") : "ContainersNotReady";
    const condition = {
      type: "Ready",
      status: isReady ? "True" : "False",
      lastTransitionTime: now,
      reason: isReady ? undefined : cause,
      message: isReady || isEnded ? undefined : "containers with unready status: [c]",
    };
    const exitCode = code ?? (phase === "Succeeded" ? 0 : 1);
    const state = isEnded
      ? { terminated: { exitCode, reason: exitCode === 0 ? "Completed" : "Error", startedAt: now, finishedAt: now } }
      : { running: { startedAt: now } };
    const containerStatuses = (pod.spec?.containers ?? []).map(({ name, image }) => ({
      name,
      image,
      imageID: "",
      ready: isReady,
      restartCount: restarts,
      state,
    }));
    const { name = "", namespace } = pod.metadata ?? {};
    const podIP = pod.status?.podIP ?? this.#newAddress();
    const patch = {
      status: {
        phase,
        reason,
        hostIP: "10.200.0.1",
        podIP,
        podIPs: [{ ip: podIP }],
        conditions: [condition, ...conditions.map((other) => ({ ...other, lastTransitionTime: now }))],
        containerStatuses,
      },
    };
    await this.#client.patch(podKind, { name, namespace }, "strategic", patch, { subresource: "status" });
  }

  #newAddress(): string {
    this.#nextAddress++;
    return `10.200.${1 + (this.#nextAddress >> 8)}.${this.#nextAddress & 255}`;
  }

  #findRule(pod: Pod): PodRule {
    const found = this.#rules.find((rule) => this.#matches(rule, pod));
    if (found === undefined) return {};
    this.#matched.set(found, (this.#matched.get(found) ?? 0) + 1);
    return found;
  }

  #matches(rule: PodRule, { metadata, spec }: Pod): boolean {
    const { image, name, labels = {}, index, first } = rule;
    if (first !== undefined && (this.#matched.get(rule) ?? 0) >= first) return false;
    if (image !== undefined && image !== spec?.containers[0]?.image) return false;
    if (name !== undefined && !new RegExp(name).test(metadata?.name ?? "")) return false;
    const own = Number(metadata?.annotations?.[COMPLETION_INDEX]);
    if (index !== undefined && ![index].flat().includes(own)) return false;
    return Object.entries(labels).every(([key, value]) => metadata?.labels?.[key] === value);
  }

  async #bind(pod: Pod, rule: PodRule): Promise<void> {
    const { name = "", namespace, uid } = pod.metadata ?? {};
    const target = (await this.#nodeByAffinity(pod)) ?? (await this.#nextFreeNode(pod));
    if (target === undefined) {
      this.#later(READY_MS, async () => {
        if (!this.#ending.has(uid ?? "")) await this.#bind(pod, rule);
      });
      return;
    }
    await this.#client.createSubresource(podKind, { name, namespace }, "binding", {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name, namespace, uid },
      target: { apiVersion: "v1", kind: "Node", name: target },
    });
    this.#start(pod, rule);
  }

  async #nodeByAffinity({ spec }: Pod): Promise<string | undefined> {
    const terms = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
    const fields = terms.flatMap(({ matchFields = [] }) => matchFields);
    return fields.find(({ key }) => key === "metadata.name")?.values?.[0];
  }

  async #nextFreeNode(pod: Pod): Promise<string | undefined> {
    const names = this.#nodes.size === 0 ? SHARED_NODES : [...this.#nodes.keys()];
    for (let tried = 0; tried < names.length; tried++) {
      const name = names[this.#nextNode++ % names.length] ?? "";
      if (this.#nodes.size === 0 || (await this.#isFree(name, pod))) return name;
    }
    return undefined;
  }

  async #isFree(name: string, { spec }: Pod): Promise<boolean> {
    if (this.#nodes.get(name)?.isBeating !== true) return false;
    const node = await this.#client.get(nodeKind, { name });
    return (node.spec?.taints ?? []).every(({ key, value, effect }) =>
      (spec?.tolerations ?? []).some(
        (toleration) =>
          (toleration.key === undefined || toleration.key === key) &&
          (toleration.operator === "Exists" || (toleration.value ?? "") === (value ?? "")) &&
          (toleration.effect === undefined || toleration.effect === effect),
      ),
    );
  }

  #start(pod: Pod, rule: PodRule): void {
    const { succeed, fail, ready, after = END_MS, reason, conditions } = rule;
    if (succeed !== undefined || fail !== undefined) {
      this.#later(START_MS, () => this.#setUnlessEnding(pod, {}));
      const phase = succeed === undefined ? "Failed" : "Succeeded";
      const end = { phase, code: succeed ?? fail, reason, conditions } as PodChange;
      this.#later(START_MS + after, () => this.#setUnlessEnding(pod, end));
    } else if (ready === null) this.#later(READY_MS, () => this.#setUnlessEnding(pod, { ready: false }));
    else {
      if ((ready ?? 0) > SLOW_READY_MS) this.#later(SLOW_START_MS, () => this.#setUnlessEnding(pod, { ready: false }));
      this.#later(ready ?? READY_MS, () => this.#setUnlessEnding(pod, {}));
    }
  }

  async #setUnlessEnding(pod: Pod, change: PodChange): Promise<void> {
    if (this.#ending.has(pod.metadata?.uid ?? "")) return;
    const current = await this.#read(pod);
    if (current !== undefined) await this.setStatus(current, change);
  }

  async #end(pod: Pod, { exitOnDelete = KILLED_CODE }: PodRule): Promise<void> {
    const { name = "", namespace } = pod.metadata ?? {};
    const current = await this.#read(pod);
    if (current === undefined) return;
    const isEnded = current.status?.phase === "Succeeded" || current.status?.phase === "Failed";
    const phase = exitOnDelete === 0 ? "Succeeded" : "Failed";
    if (!isEnded) await this.setStatus(current, { phase, code: exitOnDelete });
    await this.#client.delete(podKind, { name, namespace }, { gracePeriodSeconds: 0 });
  }

  /** Undefined if another pod has the name by now. */
  async #read({ metadata }: Pod): Promise<Pod | undefined> {
    const { name = "", namespace, uid } = metadata ?? {};
    const current = await this.#client.get(podKind, { name, namespace });
    return current.metadata?.uid === uid ? current : undefined;
  }

  /** Actions that are due at the same time run together: pods of one batch become ready at once. */
  #later(milliseconds: number, action: () => Promise<void>): void {
    const at = this.#clock.monotonic() + milliseconds;
    const due = this.#due.get(at);
    if (due !== undefined) {
      due.push(action);
      return;
    }
    const actions = [action];
    this.#due.set(at, actions);
    this.#clock.timer(milliseconds, () => {
      this.#due.delete(at);
      for (const each of actions) {
        // The pod may be gone or changed by then.
        each().catch((error: unknown) => {
          if (!(error instanceof StatusError)) throw error;
        });
      }
    });
  }
}
