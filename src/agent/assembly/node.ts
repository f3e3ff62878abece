/** The node itself: its object on the API server, what is told of it there, and the control groups of all pods. */
import type { Node, NodeStatus } from "../../api/core/node/schema.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { ServingNames } from "../certificates/serving-certificate.ts";
import { pressuresOf } from "../node/status/conditions.ts";
import { NodeCgroups } from "../cgroups/node-cgroups.ts";
import { SchedulableTeller } from "../node/node-events.ts";
import { NodeKeeper } from "../node/status/node-status-manager.ts";
import { machineLabels, type NodeStatusOptions, nodeStatus } from "../node/status/node-status.ts";
import { OwnNode } from "../node/node-object.ts";
import { PodNetwork } from "../node/network/pod-cidr-updater.ts";
import type { Foundation } from "./foundation.ts";
import type { Reporting } from "./reporting.ts";

export interface NodeLinks extends Pick<NodeStatusOptions, "port" | "relistHealthy" | "manifestProblems"> {
  readonly volumesInUse: () => readonly string[];
  readonly nodeChanged: () => void;
}

export interface NodeParts {
  readonly own: OwnNode;
  /** Names and addresses that the serving certificate has to bear. */
  readonly names: ServingNames;
  readonly cgroups: NodeCgroups;
  readonly network: PodNetwork;
  /** Undefined: nobody is told of the node. */
  readonly keeper: NodeKeeper | undefined;
  /** As last told. */
  pressures(): readonly string[];
}

export function openNode(at: Foundation, { teller, tellOfNode }: Reporting, links: NodeLinks): NodeParts {
  const { config, client, clock, log, machine, signal, stack } = at;
  const random = systemRandom;
  const schedulable = new SchedulableTeller(tellOfNode);
  const names = new ServingNames();
  const network = new PodNetwork({
    runtime: at.cri.runtime,
    podCidr: config.node.podCidr,
    clock,
    log: log.child("network"),
  });
  const onChange = (node: Node): void => {
    network.seen(node);
    names.note(node);
    links.nodeChanged();
    schedulable.seen(node);
  };
  const initial = initialNode(at);
  const own = stack.use(new OwnNode({ client, clock, random, log: log.child("own-node"), initial, onChange }));
  const shown = statusOptions(at, links);
  let reported: NodeStatus | undefined;
  const keeper =
    teller &&
    new NodeKeeper({
      client: teller,
      clock,
      random,
      log: log.child("node"),
      nodeName: config.nodeName,
      // Nobody but the agent makes the node's object where it shows itself.
      config: at.standalone === undefined ? config.node : { ...config.node, register: true },
      ownLabels: machineLabels(machine, config.nodeName),
      controllerAttach: config.volumes.controllerAttach,
      status: async (previous) => {
        reported = await nodeStatus(shown, previous);
        return reported;
      },
      event: tellOfNode,
      signal,
    });
  const cgroups = new NodeCgroups({
    settings: config.runtime,
    capacity: at.capacity.capacity,
    tree: at.tree,
    slices: at.slices,
    event: tellOfNode,
    clock,
    log: log.child("cgroups"),
    signal,
  });
  return { own, names, cgroups, network, keeper, pressures: () => pressuresOf(reported) };
}

function statusOptions(at: Foundation, links: NodeLinks): NodeStatusOptions {
  return {
    config: at.config,
    machine: at.machine,
    runtime: at.cri.runtime,
    images: at.images.images,
    ips: () => at.ips.look(),
    port: links.port,
    relistHealthy: links.relistHealthy,
    manifestProblems: links.manifestProblems,
    now: () => at.clock.now(),
    volumesInUse: links.volumesInUse,
  };
}

/** The node as it is before the API server says more. */
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
