/** Resolves fieldRef and resourceFieldRef of the downward API. */
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { ResourceFieldSelector } from "../../../api/core/references/field-selectors.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import { allContainers } from "../pod-fields.ts";
import { divideRoundingUp, parseNanos } from "../resources/quantities.ts";

export interface NodeInfo {
  readonly name: string;
  readonly ips: readonly string[];
  readonly allocatable: { readonly cpuMillis: number; readonly memoryBytes: number; readonly storageBytes: number };
}

const subscript = /^metadata\.(labels|annotations)\['(.+)'\]$/;

/** Throws with Kubernetes' text for an unsupported path. */
export function resolveFieldRef(pod: Pod, path: string, node: NodeInfo, podIps: readonly string[]): string {
  const found = subscript.exec(path);
  if (found !== null) {
    return getMember(pod.metadata?.[found[1] as "labels" | "annotations"], found[2] ?? "") ?? "";
  }
  switch (path) {
    case "metadata.name":
      return pod.metadata?.name ?? "";
    case "metadata.namespace":
      return pod.metadata?.namespace ?? "";
    case "metadata.uid":
      return pod.metadata?.uid ?? "";
    case "metadata.labels":
      return formatMap(pod.metadata?.labels ?? {});
    case "metadata.annotations":
      return formatMap(pod.metadata?.annotations ?? {});
    case "spec.nodeName":
      return node.name;
    case "spec.serviceAccountName":
      return pod.spec?.serviceAccountName ?? "";
    case "status.hostIP":
      return node.ips[0] ?? "";
    case "status.hostIPs":
      return node.ips.join(",");
    case "status.podIP":
      return podIps[0] ?? "";
    case "status.podIPs":
      return podIps.join(",");
    default:
      throw new Error(`unsupported fieldPath: ${path}`);
  }
}

/** Thousands of variables and files may have the same text. */
const formattedMaps = new WeakMap<object, string>();

/** A line `key="value"` for each entry, sorted, with values quoted as Go does. */
function formatMap(map: Readonly<Record<string, string>>): string {
  const known = formattedMaps.get(map);
  if (known !== undefined) return known;
  const text = Object.keys(map)
    .sort()
    .map((key) => `${key}=${goQuote(map[key] ?? "")}`)
    .join("\n");
  formattedMaps.set(map, text);
  return text;
}

export function resolveResourceFieldRef(
  pod: Pod,
  container: Container | undefined,
  reference: ResourceFieldSelector,
  node: NodeInfo,
): string {
  const named =
    reference.containerName === undefined || reference.containerName === ""
      ? container
      : allContainers(pod).find(({ spec }) => spec.name === reference.containerName)?.spec;
  if (named === undefined) throw new Error(`container ${reference.containerName} not found`);
  const [list, name] = splitAtDot(reference.resource);
  if (list !== "limits" && list !== "requests") {
    throw new Error(`unsupported container resource : ${reference.resource}`);
  }
  const divisor = reference.divisor === undefined || parseNanos(reference.divisor) === 0n ? "1" : reference.divisor;
  const quantity = getMember(named.resources?.[list], name);
  // Without a limit, which 0 is too, the limit is the node's allocatable resources.
  const isUnlimited = list === "limits" && parseNanos(quantity) === 0n;
  const value = (isUnlimited ? allocatable(name, node) : undefined) ?? quantity ?? "0";
  return String(divideRoundingUp(parseNanos(value), parseNanos(divisor)));
}

function allocatable(name: string, node: NodeInfo): string | undefined {
  if (name === "cpu") return `${node.allocatable.cpuMillis}m`;
  if (name === "memory") return String(node.allocatable.memoryBytes);
  return name === "ephemeral-storage" ? String(node.allocatable.storageBytes) : undefined;
}

function splitAtDot(text: string): readonly [string, string] {
  const at = text.indexOf(".");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
