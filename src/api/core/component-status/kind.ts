import { column, nameColumn } from "../../columns/columns.ts";
import type { Kind } from "../../kind.ts";
import { type ComponentCondition, type ComponentStatus, componentStatus } from "./schema.ts";

function healthyCondition(object: ComponentStatus): ComponentCondition | undefined {
  return (object.conditions ?? []).find(({ type }) => type === "Healthy");
}

const WORDS: Readonly<Record<string, string>> = { True: "Healthy", False: "Unhealthy" };

/** The server computes component statuses for each request; nothing is stored. */
export const componentStatusKind: Kind<ComponentStatus> = {
  group: "",
  version: "v1",
  kind: "ComponentStatus",
  listKind: "ComponentStatusList",
  plural: "componentstatuses",
  singular: "componentstatus",
  shortNames: ["cs"],
  categories: [],
  namespaced: false,
  verbs: ["get", "list"],
  subresources: [],
  storageName: "",
  schema: componentStatus,
  deprecation: "v1 ComponentStatus is deprecated in v1.19+",
  columns: [
    nameColumn,
    column("Status", (object) => WORDS[healthyCondition(object)?.status ?? ""] ?? "Unknown"),
    column("Message", (object) => healthyCondition(object)?.message ?? ""),
    column("Error", (object) => healthyCondition(object)?.error ?? ""),
  ],
  selectableFields: {},
  strategy: {},
};
