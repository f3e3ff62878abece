/** The pods: who wants them, what they need, who runs them, and what the runtime shows of them. */
import { systemRandom } from "../../std/crypto/random.ts";
import { NodeObjects } from "../checkpoint/node-objects.ts";
import { ObjectReader } from "../pod-objects/object-reader.ts";
import { makeServices } from "./pod-services.ts";
import type { PodServices } from "../pods/pod-context.ts";
import { podUid } from "../pods/pod-fields.ts";
import { PodManager } from "../pods/pod-manager.ts";
import { RunOnce } from "../standalone/run-once.ts";
import { Relister } from "../runtime/relister.ts";
import { RuntimeClasses } from "../pod-objects/runtime-classes.ts";
import { PodSources } from "../sources/pod-sources.ts";
import { StaticPods } from "../sources/static-pods.ts";
import { systemMounter } from "../volumes/mount/mounter.ts";
import { NodeVolumes } from "../volumes/drivers/node-volumes.ts";
import type { Foundation } from "./foundation.ts";
import type { NodeParts } from "./node.ts";
import type { Reporting } from "./reporting.ts";

export interface PodParts {
  readonly pods: PodManager;
  readonly services: PodServices;
  readonly volumes: NodeVolumes;
  readonly relister: Relister;
  readonly statics: StaticPods;
  readonly sources: PodSources;
  readonly once: RunOnce;
  /** Asks the runtime for its name, which is part of every container's id. */
  noteRuntime(): Promise<void>;
}

export function openPods(at: Foundation, reporting: Reporting, node: NodeParts): PodParts {
  const { config, clock, log, client, checkpoint, signal } = at;
  const { status, mirrors } = reporting;
  const random = systemRandom;
  const changed = (uid: string): void => pods.runtimeChanged(uid);
  const reader = at.stack.use(
    new ObjectReader({
      client,
      clock,
      random,
      log: log.child("objects"),
      onChange: changed,
      goodForMs: goodForMs(config.pods.changeDetection, node),
    }),
  );
  const statics = openStatics(at, reporting, () => pods);
  const objects = new NodeObjects({ reader, statics, checkpoint });
  const volumes = openVolumes(at, reporting, node, { reader, objects, pods: () => pods });
  let runtimeName = "containerd";
  const services = makeServices(
    { ...at, classes: new RuntimeClasses(client) },
    {
      events: reporting.tellOfPod,
      objects,
      claims: reader,
      drivers: volumes.drivers,
      accounts: reader,
      runtimeName: () => runtimeName,
      changed,
      expectChange: () => relister.requestRelist(),
      finished: (pod) => status?.podFinished(pod),
      active: () => pods.active,
      terminate: (uid, termination) => pods.terminate(uid, termination),
      node: () => node.own.read(),
      pressures: () => node.pressures(),
    },
  );
  const once = new RunOnce();
  const pods = new PodManager({
    services,
    isAbsentFromRuntime: (uid) => relister.isAbsent(uid),
    onStatus(pod, state) {
      if (config.sources.runOnce) once.note(pod, state);
      const uid = podUid(pod);
      reporting.podIs(pod, state, !pods.isWanted(uid) && pods.worker(uid)?.stateName === "terminated");
    },
    onRemoved: (pod) => reporting.podIsGone(pod),
  });
  const { runtime } = at.cri;
  const onChange = (uid: string, ...told: [digest: string, askedAt: number]): boolean => pods.compareListing(uid, ...told);
  const relister = new Relister({ runtime, clock, log: log.child("relist"), onChange, signal });
  const api = client && status && mirrors && checkpoint && { client, status, mirrors, checkpoint };
  const sources = new PodSources({ config, clock, random, log, pods, relister, objects, statics, api, signal });
  const noteRuntime = async (): Promise<void> => {
    runtimeName = (await runtime.version({}, signal)).runtimeName ?? runtimeName;
  };
  return { pods, services, volumes, relister, statics, sources, once, noteRuntime };
}

/** Large clusters say on their nodes how old what pods refer to may be. */
const TTL = "node.alpha.kubernetes.io/ttl";
const TTL_SECONDS = 60;

/** Undefined: what pods refer to is watched. */
function goodForMs(
  how: Foundation["config"]["pods"]["changeDetection"],
  { own }: NodeParts,
): (() => Promise<number>) | undefined {
  if (how === "Watch") return undefined;
  if (how === "Get") return async () => 0;
  return async () => {
    const { metadata } = await own.read();
    const seconds = Number(metadata?.annotations?.[TTL] ?? TTL_SECONDS);
    return 1000 * (Number.isInteger(seconds) ? seconds : TTL_SECONDS);
  };
}

function openStatics(at: Foundation, { mirrors, tellOfNode }: Reporting, pods: () => PodManager): StaticPods {
  return new StaticPods({
    nodeName: at.config.nodeName,
    clock: at.clock,
    log: at.log.child("manifests"),
    onPut(pod) {
      mirrors?.put(pod);
      pods().put(pod);
    },
    onDelete: (pod) => pods().delete(podUid(pod)),
    onObjects: (objects) => at.standalone?.showObjects(objects),
    onProblem: (text) => tellOfNode("Warning", "FailedValidation", `Error in manifest ${text}`),
  });
}

interface VolumeLinks {
  readonly reader: ObjectReader;
  readonly objects: NodeObjects;
  readonly pods: () => PodManager;
}

function openVolumes(at: Foundation, reporting: Reporting, node: NodeParts, links: VolumeLinks): NodeVolumes {
  const { config, client, clock, log } = at;
  const { reader, objects, pods } = links;
  return new NodeVolumes({
    directories: config,
    nodeName: config.nodeName,
    ...config.volumes,
    client,
    clock,
    random: systemRandom,
    log: log.child("volumes"),
    mounter: systemMounter,
    events: reporting.tellOfPod,
    secret: (namespace, name) => objects.secret(namespace, name),
    tokens: objects,
    claims: reader,
    node: () => node.own.read(),
    onUse: () => node.keeper?.reportSoon(),
    changed: (uid) => pods().runtimeChanged(uid),
    anyChanged() {
      for (const worker of pods().workers) worker.runtimeChanged();
    },
  });
}
