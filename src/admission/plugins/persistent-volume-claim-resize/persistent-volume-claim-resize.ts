/** PersistentVolumeClaimResize: allows a claim to grow only if it is bound and its storage class supports expansion. */
import { storageClassNameOf } from "../../../api/core/persistent-volume/storage-class-name.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { compareQuantityTexts } from "../../../api/meta/quantity.ts";
import { storageClassKind } from "../../../api/storage/storage-class/kind.ts";
import { matchesResource, newForbidden } from "../../chain/attributes.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";

export function persistentVolumeClaimResize({ reader }: Pick<PluginDeps, "reader">): AdmissionPlugin {
  return {
    name: "PersistentVolumeClaimResize",
    handles: (attributes) => matchesResource(attributes, persistentVolumeClaimKind, ["UPDATE"]),
    validate(request) {
      const [next, previous] = [request.object, request.oldObject] as readonly PersistentVolumeClaim[];
      if (next === undefined || previous === undefined || !grows(next, previous)) return;
      if (previous.status?.phase !== "Bound") {
        throw newForbidden(request, "Only bound persistent volume claims can be expanded");
      }
      const name = storageClassNameOf(next);
      const check = async (): Promise<void> => {
        const found =
          name === "" || name !== storageClassNameOf(previous)
            ? undefined
            : await reader.get(storageClassKind, "", name, request);
        if (found?.allowVolumeExpansion === true) return;
        const reason = "the storageclass that provisions the pvc must support resize";
        throw newForbidden(request, `only dynamically provisioned pvc can be resized and ${reason}`);
      };
      return check();
    },
  };
}

function grows(next: PersistentVolumeClaim, previous: PersistentVolumeClaim): boolean {
  const size = ({ spec }: PersistentVolumeClaim): string => spec?.resources?.requests?.storage ?? "0";
  return compareQuantityTexts(size(next), size(previous)) > 0;
}
