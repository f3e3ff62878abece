/** The columns of `kubectl get nodes`, as in Kubernetes' `printNode`. */
import { ageColumn, column, nameColumn, wideColumn } from "../../columns/columns.ts";
import type { Column } from "../../kind.ts";
import type { Node } from "./schema.ts";

const ROLE_PREFIX = /^node-role\.(?:kubernetes|svc)\.io\/(.+)$/;
const ROLE_LABEL = /^(?:kubernetes|svc)\.io\/role$/;

export const nodeColumns: readonly Column<Node>[] = [
  nameColumn,
  column("Status", statusText),
  column("Roles", rolesText),
  ageColumn,
  column("Version", (node) => node.status?.nodeInfo?.kubeletVersion ?? ""),
  wideColumn("Internal-IP", (node) => addressOf(node, "InternalIP")),
  wideColumn("External-IP", (node) => addressOf(node, "ExternalIP")),
  wideColumn("OS-Image", (node) => orUnknown(node.status?.nodeInfo?.osImage)),
  wideColumn("Kernel-Version", (node) => orUnknown(node.status?.nodeInfo?.kernelVersion)),
  wideColumn("Container-Runtime", (node) => orUnknown(node.status?.nodeInfo?.containerRuntimeVersion)),
];

function orUnknown(text: string | undefined): string {
  return text === undefined || text === "" ? "<unknown>" : text;
}

function statusText(node: Node): string {
  const ready = node.status?.conditions?.find((condition) => condition.type === "Ready");
  const words = [ready === undefined ? "Unknown" : ready.status === "True" ? "Ready" : "NotReady"];
  if (node.spec?.unschedulable === true) words.push("SchedulingDisabled");
  return words.join(",");
}

function rolesText(node: Node): string {
  const found = new Set<string>();
  for (const [key, value] of Object.entries(node.metadata?.labels ?? {})) {
    const role = ROLE_PREFIX.exec(key)?.[1] ?? (ROLE_LABEL.test(key) ? value : undefined);
    if (role !== undefined && role !== "") found.add(role);
  }
  return found.size === 0 ? "<none>" : [...found].sort().join(",");
}

function addressOf(node: Node, type: string): string {
  return node.status?.addresses?.find((a) => a.type === type)?.address ?? "<none>";
}
