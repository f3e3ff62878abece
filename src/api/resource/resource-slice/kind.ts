import { deepEqual } from "../../../schema/value/equal.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { setTaintTime } from "../device-taints.ts";
import { storedSlices } from "../flat-versions/stored.ts";
import { type ResourceSlice, resourceSlice } from "../schemas.ts";
import { validateSlice } from "./validation.ts";

export const resourceSliceKind: Kind<ResourceSlice> = {
  group: "resource.svc.io",
  version: "v1beta2",
  since: "1.33",
  storageVersion: "v1beta1",
  storedVersions: storedSlices,
  kind: "ResourceSlice",
  listKind: "ResourceSliceList",
  plural: "resourceslices",
  singular: "resourceslice",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "resourceslices",
  schema: resourceSlice,
  columns: [
    nameColumn,
    column("Node", ({ spec }) => spec.nodeName ?? ""),
    column("Driver", ({ spec }) => spec.driver),
    column("Pool", ({ spec }) => spec.pool.name),
    ageColumn,
  ],
  selectableFields: {
    "spec.nodeName": ({ spec }) => spec.nodeName ?? "",
    "spec.driver": ({ spec }) => spec.driver,
  },
  indexedFields: ["spec.nodeName"],
  updateChecks: ["metadataUpdate", "spec"],
  strategy: {
    prepareForCreate: (object, now) => setFirstGeneration(setTaintTimes(object, now)),
    prepareForUpdate: (next, previous, now) => {
      const timed = setTaintTimes(next, now);
      return updateGeneration(timed, previous, !deepEqual(timed.spec, previous.spec));
    },
    validate: validateSlice,
  },
};

function setTaintTimes(object: ResourceSlice, now: string): ResourceSlice {
  const { devices } = object.spec;
  if (devices?.some(({ taints }) => taints?.some(({ timeAdded }) => timeAdded === undefined)) !== true) return object;
  const timed = devices.map((device) =>
    device.taints === undefined
      ? device
      : { ...device, taints: device.taints.map((taint) => setTaintTime(taint, now)) },
  );
  return { ...object, spec: { ...object.spec, devices: timed } };
}
