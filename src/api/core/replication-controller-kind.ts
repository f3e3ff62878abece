import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type ReplicationController, replicationController } from "./replication-controller.ts";

export const replicationControllerKind: Kind<ReplicationController> = {
  group: "",
  version: "v1",
  kind: "ReplicationController",
  listKind: "ReplicationControllerList",
  plural: "replicationcontrollers",
  singular: "replicationcontroller",
  shortNames: ["rc"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [statusSubresource("ReplicationController")],
  storageName: "controllers",
  schema: replicationController,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
