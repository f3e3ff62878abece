/** The node's components: its Node object, its status and events, and its cgroups. */
import type { Node } from "../../api/core/node/schema.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { ServingNames } from "../certificates/serving-certificate.ts";
import { NodeCgroups } from "../cgroups/node-cgroups.ts";
import { type NodeStartup, recordNodeStartup } from "../metrics/startup-metrics.ts";
import { PodCidrUpdater } from "../node/network/pod-cidr-updater.ts";
import { SchedulableEvents } from "../node/node-events.ts";
import { NodeObject } from "../node/node-object.ts";
import { collectNodeStatus, machineLabels, type NodeStatusOptions } from "../node/status/node-status.ts";
import { NodeStatusManager } from "../node/status/node-status-manager.ts";
import { readBootTime } from "../stats/proc-file.ts";
import type { Foundation } from "./foundation.ts";
import type { Reporting } from "./reporting.ts";

export interface NodeLinks
  extends Pick<
    NodeStatusOptions,
    "port" | "relistProblem" | "manifestProblems" | "pressures" | "tunnel" | "isShuttingDown"
  > {
  readonly volumesInUse: () => readonly string[];
  readonly nodeChanged: () => void;
  readonly devices: NonNullable<NodeStatusOptions["devices"]>;
}

export interface NodeComponents {
  readonly nodeObject: NodeObject;
  /** Names and addresses of the serving certificate. */
  readonly servingNames: ServingNames;
  readonly cgroups: NodeCgroups;
  readonly network: PodCidrUpdater;
  readonly isShuttingDown: () => boolean;
  /** Undefined: there is nowhere to report to. */
  readonly statusManager: NodeStatusManager | undefined;
}

export function openNode(
  foundation: Foundation,
  { client: reportingClient, recordNodeEvent }: Reporting,
  links: NodeLinks,
): NodeComponents {
  const { config, client, clock, log, machine, signal, stack } = foundation;
  const random = systemRandom;
  if (client !== undefined && config.node.podCidr !== "") {
    log.warn("Ignoring the pod CIDR of the configuration: the API server has the node's", {
      podCidr: config.node.podCidr,
    });
  }
  const schedulableEvents = new SchedulableEvents(recordNodeEvent);
  const servingNames = new ServingNames();
  const network = new PodCidrUpdater({
    runtime: foundation.cri.runtime,
    // The Node object's, where there is an API server.
    podCidr: client === undefined ? config.node.podCidr : "",
    clock,
    log: log.child("network"),
  });
  const onChange = (node: Node): void => {
    network.nodeChanged(node);
    servingNames.update(node);
    links.nodeChanged();
    schedulableEvents.nodeChanged(node);
  };
  const initial = initialNode(foundation);
  const nodeObject = stack.use(
    new NodeObject({ client, clock, random, log: log.child("own-node"), initial, onChange }),
  );
  const statusSources = statusOptions(foundation, links);
  const statusManager =
    reportingClient &&
    new NodeStatusManager({
      client: reportingClient,
      clock,
      random,
      log: log.child("node"),
      nodeName: config.nodeName,
      // Without an API server only the agent can create the Node object.
      config: foundation.standalone === undefined ? config.node : { ...config.node, register: true },
      machineLabels: machineLabels(machine, config.nodeName),
      controllerAttach: config.volumes.controllerAttach,
      status: (previous) => collectNodeStatus(statusSources, previous),
      recordEvent: recordNodeEvent,
      onFirstReady: (times) => recordStartup(foundation, times),
      signal,
    });
  const cgroups = new NodeCgroups({
    settings: config.runtime,
    protectsMemory: foundation.memoryQos !== undefined,
    capacity: foundation.capacity.capacity,
    tree: foundation.tree,
    slices: foundation.slices,
    recordEvent: recordNodeEvent,
    clock,
    log: log.child("cgroups"),
    signal,
  });
  const { isShuttingDown } = links;
  return { nodeObject, servingNames, cgroups, network, isShuttingDown, statusManager };
}

function recordStartup(
  { metrics, clock }: Foundation,
  times: Pick<NodeStartup, "registeringAt" | "registeredAt">,
): void {
  const agentStartedAt = performance.timeOrigin;
  recordNodeStartup(metrics, { ...times, bootedAt: readBootTime(), agentStartedAt, readyAt: clock.now() });
}

function statusOptions(foundation: Foundation, links: NodeLinks): NodeStatusOptions {
  return {
    config: foundation.config,
    machine: foundation.machine,
    runtime: foundation.cri.runtime,
    images: foundation.images.images,
    ips: () => foundation.ips.refresh(),
    port: links.port,
    relistProblem: links.relistProblem,
    manifestProblems: links.manifestProblems,
    pressures: links.pressures,
    isShuttingDown: links.isShuttingDown,
    tunnel: links.tunnel,
    now: () => foundation.clock.now(),
    volumesInUse: links.volumesInUse,
    devices: links.devices,
  };
}

/** The node before its object is read from the API server. */
function initialNode({ config, machine, capacity }: Foundation): Node {
  const { nodeName: name, node } = config;
  const labels = { ...machineLabels(machine, name), ...node.labels };
  const { allocatable } = capacity;
  return {
    metadata: { name, labels },
    spec: { taints: node.taints as NonNullable<Node["spec"]>["taints"] },
    status: { allocatable },
  };
}
