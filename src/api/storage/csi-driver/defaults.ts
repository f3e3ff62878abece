import type { CSIDriver } from "./schema.ts";

export function setCSIDriverDefaults(object: CSIDriver): CSIDriver {
  const { spec } = object;
  const { volumeLifecycleModes: modes = [] } = spec;
  return {
    ...object,
    spec: {
      ...spec,
      attachRequired: spec.attachRequired ?? true,
      podInfoOnMount: spec.podInfoOnMount ?? false,
      storageCapacity: spec.storageCapacity ?? false,
      fsGroupPolicy: spec.fsGroupPolicy ?? "ReadWriteOnceWithFSType",
      volumeLifecycleModes: modes.length === 0 ? ["Persistent"] : modes,
      requiresRepublish: spec.requiresRepublish ?? false,
      seLinuxMount: spec.seLinuxMount ?? false,
    },
  };
}
