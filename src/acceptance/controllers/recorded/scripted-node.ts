/** The scripted scheduler and node agent of recorded scenarios. */
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { StatusError } from "../../../api/status.ts";
import type { Client } from "../../../client/client.ts";
import { formatTime } from "../../../schema/value/time.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { PodChange, PodRule } from "./scenario.ts";

const BIND_MS = 10;
const READY_MS = 100;
const DELETE_MS = 100;

export class ScriptedNode {
  rules: readonly PodRule[];
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #ruleOf = new Map<string, PodRule>();
  readonly #ending = new Set<string>();
  #nextNode = 0;

  constructor(client: Client, clock: Clock, rules: readonly PodRule[]) {
    this.#client = client;
    this.#clock = clock;
    this.rules = rules;
  }

  podChanged(pod: Pod): void {
    const uid = pod.metadata?.uid ?? "";
    const isNew = !this.#ruleOf.has(uid);
    const rule = this.#ruleOf.get(uid) ?? this.#findRule(pod);
    this.#ruleOf.set(uid, rule);
    if (isNew && rule.unscheduled !== true) this.#later(BIND_MS, () => this.#bind(pod, rule));
    if (pod.metadata?.deletionTimestamp === undefined || rule.stuck === true || this.#ending.has(uid)) return;
    this.#ending.add(uid);
    this.#later(rule.deleteMs ?? DELETE_MS, () => this.#end(pod));
  }

  async setStatus(pod: Pod, { phase = "Running", ready = true, reason }: PodChange): Promise<void> {
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
    const { name = "", namespace } = pod.metadata ?? {};
    const patch = { status: { phase, reason, conditions: [condition] } };
    await this.#client.patch(podKind, { name, namespace }, "strategic", patch, { subresource: "status" });
  }

  #findRule(pod: Pod): PodRule {
    const image = pod.spec?.containers[0]?.image;
    return this.rules.find((rule) => rule.image === undefined || rule.image === image) ?? {};
  }

  async #bind(pod: Pod, rule: PodRule): Promise<void> {
    const { name = "", namespace, uid } = pod.metadata ?? {};
    this.#nextNode = (this.#nextNode % 4) + 1;
    await this.#client.createSubresource(podKind, { name, namespace }, "binding", {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name, namespace, uid },
      target: { apiVersion: "v1", kind: "Node", name: `shared-${this.#nextNode}` },
    });
    if (rule.ready === null) this.#later(READY_MS, () => this.setStatus(pod, { ready: false }));
    else this.#later(rule.ready ?? READY_MS, () => this.#start(pod));
  }

  async #start(pod: Pod): Promise<void> {
    if (!this.#ending.has(pod.metadata?.uid ?? "")) await this.setStatus(pod, {});
  }

  async #end(pod: Pod): Promise<void> {
    const { name = "", namespace } = pod.metadata ?? {};
    const { status } = await this.#client.get(podKind, { name, namespace });
    const isEnded = status?.phase === "Succeeded" || status?.phase === "Failed";
    if (!isEnded) await this.setStatus(pod, { phase: "Failed" });
    await this.#client.delete(podKind, { name, namespace }, { gracePeriodSeconds: 0 });
  }

  #later(milliseconds: number, action: () => Promise<void>): void {
    this.#clock.timer(milliseconds, () => {
      // The pod may be gone or changed by then.
      action().catch((error: unknown) => {
        if (!(error instanceof StatusError)) throw error;
      });
    });
  }
}
