/** Claims and ingresses that name no class get the one that is marked as the default. */
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import { STORAGE_CLASS_ANNOTATION } from "../../../api/core/persistent-volume/storage-class-name.ts";
import type { ApiObject, Kind } from "../../../api/kind.ts";
import type { Ingress } from "../../../api/networking/ingress/schema.ts";
import { ingressClassKind } from "../../../api/networking/ingress-class/kind.ts";
import { ingressKind } from "../../../api/networking/ingress/kind.ts";
import { CLASS_ANNOTATION } from "../../../api/networking/ingress/validation.ts";
import { storageClassKind } from "../../../api/storage/storage-class/kind.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import { matchesResource, metadataOf } from "../../chain/attributes.ts";
import type { AdmissionPlugin, AdmissionRequest, ObjectReader } from "../../chain/plugin.ts";

const DEFAULT_STORAGE = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];
const DEFAULT_INGRESS = ["ingressclass.kubernetes.io/is-default-class"];

export function defaultStorageClass({ reader: lookup }: Pick<PluginDeps, "lookup">): AdmissionPlugin {
  return {
    name: "DefaultStorageClass",
    handles: (place) => matchesResource(place, persistentVolumeClaimKind, ["CREATE"]),
    async mutate(request) {
      const claim = request.object as PersistentVolumeClaim;
      const { storageClassName } = claim.spec ?? {};
      if (storageClassName !== undefined || STORAGE_CLASS_ANNOTATION in (metadataOf(claim).annotations ?? {})) return;
      const name = await defaultOf(storageClassKind, DEFAULT_STORAGE, lookup, request);
      return name === undefined ? undefined : withMembers(claim, { storageClassName: name });
    },
  };
}

export function defaultIngressClass({ reader: lookup }: Pick<PluginDeps, "lookup">): AdmissionPlugin {
  return {
    name: "DefaultIngressClass",
    handles: (place) => matchesResource(place, ingressKind, ["CREATE"]),
    async mutate(request) {
      const ingress = request.object as Ingress;
      const { ingressClassName } = ingress.spec ?? {};
      if (ingressClassName !== undefined || CLASS_ANNOTATION in (metadataOf(ingress).annotations ?? {})) return;
      const name = await defaultOf(ingressClassKind, DEFAULT_INGRESS, lookup, request);
      return name === undefined ? undefined : withMembers(ingress, { ingressClassName: name });
    },
  };
}

function withMembers(object: ApiObject, members: object): ApiObject {
  const { spec } = object as { readonly spec?: object };
  return { ...object, spec: { ...spec, ...members } } as ApiObject;
}

/** The youngest of those that are marked; among several of the same second, the first by name. */
async function defaultOf<T extends ApiObject>(
  kind: Kind<T>,
  annotations: readonly string[],
  lookup: ObjectReader,
  request: AdmissionRequest,
): Promise<string | undefined> {
  const marked = (await lookup.list(kind, "", request)).filter((one) => {
    const own = metadataOf(one).annotations ?? {};
    return annotations.some((name) => own[name] === "true");
  });
  const [first] = marked.map(metadataOf).sort((a, b) => {
    const [made, other] = [a.creationTimestamp ?? "", b.creationTimestamp ?? ""];
    if (made !== other) return made > other ? -1 : 1;
    return (a.name ?? "") < (b.name ?? "") ? -1 : 1;
  });
  return first?.name;
}
