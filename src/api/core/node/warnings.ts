import { index } from "../../../schema/value/field-path.ts";
import { cidrWarnings } from "../../meta/validation/ip.ts";
import type { Node } from "./schema.ts";

export function nodeWarnings({ spec }: Node): readonly string[] {
  return [
    ...(spec?.externalID ? ["spec.externalID: this field is deprecated, and is unused by Kubernetes"] : []),
    ...(spec?.podCIDRs ?? []).flatMap((cidr, i) => cidrWarnings(cidr, index("spec.podCIDRs", i))),
  ];
}
