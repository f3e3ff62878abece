/**
 * Prepares the resource claims of pods by their drivers before a pod's sandbox is created, and releases them when no
 * pod uses them any more. Claims are recorded before their drivers are called, so that an agent that restarts releases
 * them too.
 */
import { join } from "node:path";
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import {
  type AnyClaim,
  explainForeignClaim,
  isReservedFor,
  type PodClaim,
  resolvePodClaim,
} from "../../../api/resource/pod-claims.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { HistogramFamily, MetricRegistry } from "../../../std/metrics/metrics.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { podName, podNamespace, podUid } from "../../pods/pod-fields.ts";
import { type ClaimState, readClaimCheckpoint, writeClaimCheckpoint } from "./claim-checkpoint.ts";
import { type ClaimDrivers, DURATION_BUCKETS } from "./claim-drivers.ts";
import type { DriverClaim, DriverDevice } from "./messages.ts";

export interface ClaimManagerOptions {
  readonly rootDir: string;
  readonly drivers: ClaimDrivers;
  /** Rejects for a claim that does not exist. */
  readonly readClaim: (namespace: string, name: string) => Promise<AnyClaim>;
  readonly registry: MetricRegistry;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A claim with the devices that a container may use of it. */
export interface ContainerClaim {
  readonly name: string;
  readonly namespace: string;
  readonly devices: readonly (DriverDevice & { readonly driver: string })[];
}

interface Claim {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly pods: Set<string>;
  readonly drivers: Map<string, readonly DriverDevice[]>;
  isPrepared: boolean;
}

const STATE_FILE = "dra_manager_state";

export class ClaimManager {
  readonly #options: ClaimManagerOptions;
  readonly #seconds: HistogramFamily;
  /** By namespace and name. */
  readonly #claims = new Map<string, Claim>();
  /** The last operation: one at a time, so that pods that share a claim do not prepare it twice. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(options: ClaimManagerOptions) {
    this.#options = options;
    this.#seconds = options.registry.histogram(
      {
        name: "dra_operations_duration_seconds",
        help: "Latency histogram in seconds for the duration of handling all ResourceClaims referenced by a pod when the pod starts or stops. Identified by the name of the operation (PrepareResources or UnprepareResources) and separated by the success of the operation. The number of failed operations is provided through the histogram's overall count.",
        stability: "ALPHA",
        labels: ["operation_name", "is_error"],
      },
      DURATION_BUCKETS,
    );
  }

  /** Rejects with a message for the operator when the state file is damaged. */
  static async open(options: ClaimManagerOptions): Promise<ClaimManager> {
    const manager = new ClaimManager(options);
    const path = join(options.rootDir, STATE_FILE);
    try {
      for (const state of await readClaimCheckpoint(path)) {
        // Drivers are called again: they return the devices of a claim that they have prepared.
        const claim = { ...state, pods: new Set(state.pods), drivers: new Map(state.drivers), isPrepared: false };
        manager.#claims.set(claimKey(claim.namespace, claim.name), claim);
      }
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      const advice = `please drain this node and delete the claim checkpoint file "${path}" before restarting Kubelet`;
      const failure = "failed to create ClaimInfo cache: error calling GetOrCreate() on checkpoint state";
      throw new Error(`${failure}: ${text}, ${advice}`, { cause: error });
    }
    return manager;
  }

  /** Rejects with Kubernetes' text when a claim of the pod cannot be prepared; a later call tries again. */
  prepare(pod: Pod, signal: AbortSignal): Promise<void> {
    if ((pod.spec?.resourceClaims ?? []).length === 0) return Promise.resolve();
    return this.#enqueue("PrepareResources", () => this.#prepare(pod, signal));
  }

  /** Releases the claims that no other pod uses. Rejects when a driver does not answer. */
  unprepare(pod: Pod, signal: AbortSignal): Promise<void> {
    const uid = podUid(pod);
    if (![...this.#claims.values()].some(({ pods }) => pods.has(uid))) return Promise.resolve();
    return this.#enqueue("UnprepareResources", () => this.#unprepare(uid, signal));
  }

  /** Releases the claims of pods that are not active: their workers have ended without it, or before a restart. */
  async reconcile(active: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const uids = new Set([...this.#claims.values()].flatMap(({ pods }) => [...pods]));
    for (const uid of uids) {
      if (active.has(uid)) continue;
      this.#options.log.info("Releasing the claims of a pod that is gone", { pod: uid });
      await this.#enqueue("UnprepareResources", () => this.#unprepare(uid, signal));
    }
  }

  /** Throws for a claim that is not prepared. */
  listClaims(pod: Pod, { resources }: Container): readonly ContainerClaim[] {
    return (pod.spec?.resourceClaims ?? []).flatMap((podClaim) => {
      const requests = (resources?.claims ?? []).filter(({ name }) => name === podClaim.name);
      const resolved = resolvePodClaim(pod, podClaim);
      if (requests.length === 0 || resolved.problem !== undefined || resolved.name === undefined) return [];
      const { name } = resolved;
      const namespace = podNamespace(pod);
      const claim = this.#claims.get(claimKey(namespace, name));
      if (claim === undefined) {
        const why = `unable to get claim info for claim ${name} in namespace ${namespace}`;
        throw new Error(`locked cache operation: ${why}`);
      }
      const devices = [...claim.drivers].flatMap(([driver, of]) => of.map((device) => ({ ...device, driver })));
      return {
        name,
        namespace,
        devices: devices.filter((device) => requests.some((each) => isOf(device, each.request))),
      };
    });
  }

  /** Names of the claims' devices in the files of the Container Device Interface. */
  listCdiDevices(pod: Pod, container: Container): readonly string[] {
    return this.listClaims(pod, container).flatMap(({ devices }) =>
      devices.flatMap(({ cdiDeviceIds = [] }) => cdiDeviceIds),
    );
  }

  async #enqueue(operation: string, work: () => Promise<void>): Promise<void> {
    const { clock } = this.#options;
    const began = clock.monotonic();
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    const observe = (isError: boolean): void =>
      this.#seconds.with(operation, String(isError)).observe((clock.monotonic() - began) / 1000);
    await done.then(
      () => observe(false),
      (error: unknown) => {
        observe(true);
        throw error;
      },
    );
  }

  async #prepare(pod: Pod, signal: AbortSignal): Promise<void> {
    const batches = new Map<string, Claim[]>();
    for (const podClaim of pod.spec?.resourceClaims ?? []) {
      const claim = await this.#trackClaim(pod, podClaim);
      if (claim === undefined || claim.isPrepared) continue;
      for (const driver of claim.drivers.keys()) batches.set(driver, [...(batches.get(driver) ?? []), claim]);
    }
    await this.#write();
    for (const [driver, claims] of batches) {
      const prepared = await this.#options.drivers.prepare(driver, claims.map(toDriverClaim), signal);
      for (const claim of claims) claim.drivers.set(driver, prepared.get(claim.uid) ?? []);
    }
    for (const claim of new Set([...batches.values()].flat())) claim.isPrepared = true;
    if (batches.size > 0) await this.#write();
  }

  /** Undefined: the pod needs no claim. */
  async #trackClaim(pod: Pod, podClaim: PodClaim): Promise<Claim | undefined> {
    const resolved = resolvePodClaim(pod, podClaim);
    if (resolved.problem !== undefined) throw new Error(`prepare resource claim: ${resolved.problem}`);
    const { name, isOwned } = resolved;
    if (name === undefined) return undefined;
    const namespace = podNamespace(pod);
    const found = await this.#options.readClaim(namespace, name).catch((error: unknown) => {
      const text = error instanceof Error ? error.message : String(error);
      throw new Error(`failed to fetch ResourceClaim ${name} referenced by pod ${podName(pod)}: ${text}`, {
        cause: error,
      });
    });
    validateClaim(pod, found, isOwned);
    const uid = found.metadata?.uid ?? "";
    const known = this.#claims.get(claimKey(namespace, name));
    if (known !== undefined && known.uid !== uid) {
      throw new Error(`old claim with same name ${namespace}/${name} and different UID ${known.uid} still exists`);
    }
    const claim = known ?? makeClaim(found, { uid, name, namespace });
    claim.pods.add(podUid(pod));
    this.#claims.set(claimKey(namespace, name), claim);
    return claim;
  }

  async #unprepare(uid: string, signal: AbortSignal): Promise<void> {
    const batches = new Map<string, Claim[]>();
    const used = [...this.#claims.values()].filter(({ pods }) => pods.has(uid));
    const last = used.filter(({ pods }) => pods.size === 1);
    for (const claim of last) {
      claim.isPrepared = false;
      for (const driver of claim.drivers.keys()) batches.set(driver, [...(batches.get(driver) ?? []), claim]);
    }
    for (const [driver, claims] of batches) {
      await this.#options.drivers.unprepare(driver, claims.map(toDriverClaim), signal);
    }
    for (const claim of used) claim.pods.delete(uid);
    for (const { namespace, name } of last) this.#claims.delete(claimKey(namespace, name));
    await this.#write();
  }

  #write(): Promise<void> {
    const states: readonly ClaimState[] = [...this.#claims.values()];
    return writeClaimCheckpoint(join(this.#options.rootDir, STATE_FILE), states);
  }
}

function validateClaim(pod: Pod, claim: AnyClaim, isOwned: boolean): void {
  const { name = "", namespace = "", uid = "" } = claim.metadata ?? {};
  const problem = isOwned ? explainForeignClaim(pod, claim) : undefined;
  if (problem !== undefined) throw new Error(problem);
  if (!isReservedFor(pod, claim)) {
    const who = `pod ${podName(pod)}(${podUid(pod)})`;
    throw new Error(`${who} is not allowed to use resource claim ${name}(${uid})`);
  }
  if (claim.status?.allocation === undefined) {
    throw new Error(`locked cache operation: claim ${namespace}/${name}: not allocated`);
  }
}

function makeClaim({ status }: AnyClaim, identity: Pick<Claim, "uid" | "name" | "namespace">): Claim {
  const results = status?.allocation?.devices?.results ?? [];
  const drivers = new Map(results.map(({ driver }) => [driver, []] as const));
  return { ...identity, pods: new Set(), drivers, isPrepared: false };
}

function toDriverClaim({ uid, name, namespace }: Claim): DriverClaim {
  return { uid, name, namespace };
}

/** A device of a subrequest (`main/sub`) belongs to its request. */
function isOf({ requestNames = [] }: DriverDevice, request = ""): boolean {
  if (request === "" || requestNames.length === 0) return true;
  return requestNames.some((name) => name === request || name.split("/")[0] === request);
}

function claimKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}
