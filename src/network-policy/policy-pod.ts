/** What policies use of a pod. */
import type { Pod } from "../api/core/pod/schema.ts";
import type { ApiObject } from "../api/kind.ts";
import { formatIp, type IpFamily, parseIp } from "../std/net/ip.ts";
import { type Protocol, toProtocol } from "./compiled-policy.ts";

export interface PodAddress {
  readonly family: IpFamily;
  /** In canonical text: it becomes a part of commands. */
  readonly text: string;
}

export interface PodPort {
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
}

export interface PolicyPod {
  readonly uid: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly addresses: readonly PodAddress[];
  /** Those with names. */
  readonly ports: readonly PodPort[];
  /** Whether it runs on this node. */
  readonly isLocal: boolean;
  /** When it started: of two pods with one address, the later one has it. Milliseconds since 1970. */
  readonly since: number;
}

/** Undefined for pods that have ended, and for those in the network of their node. */
export function toPolicyPod(pod: Pod, nodeName: string): PolicyPod | undefined {
  const { metadata, spec, status } = pod;
  const uid = metadata?.uid ?? "";
  const hasEnded = status?.phase === "Succeeded" || status?.phase === "Failed";
  if (uid === "" || spec?.hostNetwork === true || hasEnded) return undefined;
  const ips = (status?.podIPs ?? []).flatMap(({ ip }) => ip ?? []);
  return {
    uid,
    namespace: metadata?.namespace ?? "",
    labels: metadata?.labels ?? {},
    addresses: toAddresses(ips.length > 0 ? ips : [status?.podIP ?? ""]),
    ports: namedPorts(pod),
    isLocal: spec?.nodeName === nodeName,
    since: Date.parse(status?.startTime ?? metadata?.creationTimestamp ?? "") || 0,
  };
}

export function toAddresses(texts: readonly string[]): readonly PodAddress[] {
  return texts.flatMap((text) => {
    const ip = parseIp(text);
    return ip === undefined ? [] : { family: ip.family, text: formatIp(ip) };
  });
}

/** Sidecars included. */
function namedPorts({ spec }: Pod): readonly PodPort[] {
  const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  return [...(spec?.containers ?? []), ...sidecars].flatMap(({ ports = [] }) =>
    ports.flatMap(({ name = "", protocol, containerPort }) =>
      name === "" || !Number.isInteger(containerPort)
        ? []
        : { name, protocol: toProtocol(protocol), port: containerPort },
    ),
  );
}

interface ReducedObject extends ApiObject {
  readonly spec?: Pod["spec"];
  readonly status?: Pod["status"];
}

/** For informers: keeps what `toPolicyPod` reads, and the labels of namespaces. */
export function keepPolicyFields<T extends ApiObject>(object: T): T {
  const { metadata, spec, status }: ReducedObject = object;
  const { name, namespace, uid, labels, creationTimestamp, resourceVersion } = metadata ?? {};
  const ports = (containers: NonNullable<Pod["spec"]>["containers"] | undefined) =>
    (containers ?? []).flatMap((container) =>
      (container.ports ?? []).length === 0
        ? []
        : { name: container.name, ports: container.ports, restartPolicy: container.restartPolicy },
    );
  const kept = {
    ...object,
    metadata: { name, namespace, uid, labels, creationTimestamp, resourceVersion },
    ...(spec === undefined
      ? {}
      : {
          spec: {
            nodeName: spec.nodeName,
            hostNetwork: spec.hostNetwork,
            containers: ports(spec.containers),
            initContainers: ports(spec.initContainers),
          },
        }),
    ...(status === undefined
      ? {}
      : {
          status: {
            phase: status.phase,
            podIP: status.podIP,
            podIPs: status.podIPs,
            startTime: status.startTime,
          },
        }),
  };
  return kept;
}
