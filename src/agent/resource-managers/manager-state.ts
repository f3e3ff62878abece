/** What a manager keeps in a file of kubelet's format: a value of its own, and what each container has. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { allContainers, podUid } from "../pods/pod-fields.ts";
import { explainStateError, readStateFile, writeStateFile } from "./state-file.ts";

/** By pod and container. */
export type Assignments<A> = ReadonlyMap<string, ReadonlyMap<string, A>>;

export interface StateContent<S, A> {
  readonly policy: string;
  /** What belongs to no container alone. */
  readonly shared: S;
  readonly assignments: Assignments<A>;
}

export interface StateFormat<S, A> {
  /** Name of the manager in messages. */
  readonly manager: string;
  /** Before the message about a file of another policy. */
  readonly prefix: string;
  /** The shared value of a new file. */
  readonly initial: S;
  format(content: StateContent<S, A>): string;
  /** Throws for a damaged file. */
  parse(text: string): StateContent<S, A>;
}

interface AssignedContainer {
  readonly uid: string;
  readonly container: string;
}

export class ManagerState<S, A> {
  readonly #path: string;
  readonly #policy: string;
  readonly #format: StateFormat<S, A>;
  #shared: S;
  readonly #assignments = new Map<string, Map<string, A>>();
  #isChanged = false;

  private constructor(path: string, policy: string, format: StateFormat<S, A>) {
    this.#path = path;
    this.#policy = policy;
    this.#format = format;
    this.#shared = format.initial;
  }

  /** Rejects with a message for the operator when the file is of another policy, or damaged. */
  static async open<S, A>(path: string, policy: string, format: StateFormat<S, A>): Promise<ManagerState<S, A>> {
    const state = new ManagerState(path, policy, format);
    try {
      const text = await readStateFile(path);
      if (text !== undefined) state.#restore(text);
      else await state.#write();
    } catch (error) {
      throw explainStateError(error, format.manager, path);
    }
    return state;
  }

  get shared(): S {
    return this.#shared;
  }

  get assignments(): Assignments<A> {
    return this.#assignments;
  }

  get(uid: string, container: string): A | undefined {
    return this.#assignments.get(uid)?.get(container);
  }

  setShared(shared: S): void {
    this.#shared = shared;
    this.#isChanged = true;
  }

  set(uid: string, container: string, assigned: A): void {
    const ofPod = this.#assignments.get(uid) ?? new Map<string, A>();
    this.#assignments.set(uid, ofPod.set(container, assigned));
    this.#isChanged = true;
  }

  delete(uid: string, container: string): void {
    const ofPod = this.#assignments.get(uid);
    ofPod?.delete(container);
    if (ofPod?.size === 0) this.#assignments.delete(uid);
    this.#isChanged = true;
  }

  /** Containers with an assignment that are in none of the pods. */
  listStale(pods: readonly Pod[]): readonly AssignedContainer[] {
    const active = new Map(pods.map((pod) => [podUid(pod), new Set(allContainers(pod).map(({ spec }) => spec.name))]));
    return [...this.#assignments].flatMap(([uid, containers]) =>
      [...containers.keys()]
        .filter((name) => active.get(uid)?.has(name) !== true)
        .map((container) => ({ uid, container })),
    );
  }

  /** Writes what has changed. A container starts only after its assignment is on disk. */
  async flush(): Promise<void> {
    if (!this.#isChanged) return;
    await this.#write();
    this.#isChanged = false;
  }

  #write(): Promise<void> {
    const content = { policy: this.#policy, shared: this.#shared, assignments: this.#assignments };
    return writeStateFile(this.#path, this.#format.format(content));
  }

  #restore(text: string): void {
    const { policy, shared, assignments } = this.#format.parse(text);
    if (policy !== this.#policy) {
      const difference = `configured policy "${this.#policy}" differs from state checkpoint policy "${policy}"`;
      throw new Error(`${this.#format.prefix}${difference}`);
    }
    this.#shared = shared;
    for (const [uid, containers] of assignments) this.#assignments.set(uid, new Map(containers));
  }
}
