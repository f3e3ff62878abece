/** DefaultIngressClass: sets the default ingress class on ingresses that request none. */
import { ingressKind } from "../../../api/networking/ingress/kind.ts";
import type { Ingress } from "../../../api/networking/ingress/schema.ts";
import { CLASS_ANNOTATION } from "../../../api/networking/ingress/validation.ts";
import { ingressClassKind } from "../../../api/networking/ingress-class/kind.ts";
import { matchesResource, metadataOf } from "../../chain/attributes.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";
import { findDefaultClass } from "../default-storage-class/default-class.ts";

const DEFAULT_ANNOTATIONS = ["ingressclass.kubernetes.io/is-default-class"];

export function defaultIngressClass({ reader }: Pick<PluginDeps, "reader">): AdmissionPlugin {
  return {
    name: "DefaultIngressClass",
    handles: (attributes) => matchesResource(attributes, ingressKind, ["CREATE"]),
    async mutate(request) {
      const ingress = request.object as Ingress;
      const hasAnnotation = CLASS_ANNOTATION in (metadataOf(ingress).annotations ?? {});
      if (ingress.spec?.ingressClassName !== undefined || hasAnnotation) return undefined;
      const ingressClassName = await findDefaultClass(ingressClassKind, DEFAULT_ANNOTATIONS, reader, request);
      return ingressClassName === undefined ? undefined : { ...ingress, spec: { ...ingress.spec, ingressClassName } };
    },
  };
}
