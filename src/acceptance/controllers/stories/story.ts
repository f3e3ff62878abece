/** Stories of controllers that are played again with every fault between them and the API server. */
import type { Client } from "../../../client/client.ts";
import type { ControllerOptions } from "../../../controllers/controller-options.ts";
import type { HttpRequest, HttpResponse } from "../../../http/message.ts";
import type { FakeClock } from "../../../testing/std/fake-clock.ts";
import type { Fault } from "../faults.ts";
import type { PodRule } from "../recorded/scenario.ts";
import { plainConnection, type WorkloadCluster } from "../workload-cluster.ts";

const QUIET_MS = 3000;

export interface Story {
  readonly title: string;
  readonly controllers: readonly string[];
  /** The controllers of the server itself, which have no faults; those of every cluster by default. */
  readonly embedded?: readonly string[];
  readonly options?: Partial<ControllerOptions>;
  /** How many nodes of its own the story has. */
  readonly nodes?: number;
  /** How pods behave; `isSlow` when the fault is that pods are slow. */
  readonly rules?: (isSlow: boolean) => readonly PodRule[];
  /** Answers requests of the controllers for which the server has no API. */
  readonly answer?: (scene: Scene, request: HttpRequest) => HttpResponse | undefined;
  readonly play: (scene: Scene) => Promise<void>;
}

type Read = () => Promise<unknown>;
type Condition = () => Promise<boolean>;

export class Scene {
  readonly namespace: string;
  readonly nodes: readonly string[];
  /** What was there after each step. */
  readonly states: unknown[] = [];
  /** What the story shares with its answers. */
  readonly shared = new Map<string, string>();
  readonly #cluster: WorkloadCluster;
  readonly #fault: Fault;

  constructor(cluster: WorkloadCluster, namespace: string, nodes: readonly string[], fault: Fault) {
    this.#cluster = cluster;
    this.#fault = fault;
    this.namespace = namespace;
    this.nodes = nodes;
  }

  /** Whether more pods than wanted may exist for a while. */
  get mayExceed(): boolean {
    return this.#fault.mayExceed === true;
  }

  get client(): Client {
    return this.#cluster.client;
  }

  get clock(): FakeClock {
    return this.#cluster.clock;
  }

  /** Stops the heartbeats of a node, or starts them. */
  async setHeartbeats(node: string, beat: boolean): Promise<void> {
    await this.#cluster.player?.setNode(node, { beat });
  }

  /** Waits until nothing changes and `isDone`, then adds what `read` finds to the states. */
  async step(read: Read, isDone: Condition = async () => true): Promise<void> {
    await this.#cluster.settle(this.#fault.quietMs ?? QUIET_MS, isDone).catch(async (cause: unknown) => {
      throw new Error(`${this.#fault.name}: ${JSON.stringify(await read())}`, { cause });
    });
    this.states.push(await read());
    this.#fault.between?.(this.#cluster);
  }
}

/** Plays the story with the fault in a namespace of its own; resolves with what was there after each step. */
export async function playStory(
  cluster: WorkloadCluster,
  namespace: string,
  story: Story,
  fault: Fault,
): Promise<readonly unknown[]> {
  const stop = new AbortController();
  const nodes = Array.from({ length: story.nodes ?? 0 }, (_, index) => `${namespace}-${index + 1}`);
  const scene = new Scene(cluster, namespace, nodes, fault);
  const connection = fault.connection?.(cluster) ?? plainConnection;
  cluster.connection = async (request, send) => story.answer?.(scene, request) ?? (await connection(request, send));
  for (let instance = 0; instance < (fault.instances ?? 1); instance++) cluster.startControllers();
  const rules = [...(story.rules?.(fault.rules !== undefined) ?? []), ...(fault.rules ?? [])];
  const own = nodes.map((name) => ({ metadata: { name } }));
  await cluster.openNamespace(namespace, rules, own, stop.signal);
  await story.play(scene);
  cluster.connection = plainConnection;
  await cluster.stop();
  stop.abort();
  return scene.states;
}
