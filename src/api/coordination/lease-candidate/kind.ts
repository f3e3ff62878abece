import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { configMapKey } from "../../meta/validation/names.ts";
import { type LeaseCandidate, leaseCandidate } from "./schema.ts";
import { validateLeaseCandidate, validateLeaseCandidateUpdate } from "./validation.ts";

export const leaseCandidateKind: Kind<LeaseCandidate> = {
  group: "coordination.svc.io",
  version: "v1beta1",
  since: "1.33",
  kind: "LeaseCandidate",
  listKind: "LeaseCandidateList",
  plural: "leasecandidates",
  singular: "leasecandidate",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "leasecandidates",
  schema: leaseCandidate,
  nameFormat: configMapKey,
  columns: [
    nameColumn,
    column("LeaseName", ({ spec }) => spec?.leaseName ?? ""),
    column("BinaryVersion", ({ spec }) => spec?.binaryVersion ?? ""),
    column("EmulationVersion", ({ spec }) => spec?.emulationVersion ?? ""),
    ageColumn,
  ],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "spec"],
  strategy: {
    validate: validateLeaseCandidate,
    validateUpdate: validateLeaseCandidateUpdate,
    allowCreateOnUpdate: true,
    allowUnconditionalUpdate: false,
  },
};
